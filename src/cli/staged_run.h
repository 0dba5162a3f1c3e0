// `run --stage`: the command works on an overlay of each project; afterwards its changes are shown, and applied or dropped.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "session/session.h"
#include "session/stage.h"
#include "session/stage_apply.h"

namespace sandglass::cli {

inline constexpr Option kStageOption{
    .name = "stage",
    .help =
        "the command changes a copy that only it sees; its changes are shown at the end, and you "
        "choose which of them are applied, as one step"};
inline constexpr Option kApplyOption{.name = "apply",
                                     .help = "with --stage: apply all changes without asking"};
inline constexpr Option kDiscardOption{.name = "discard",
                                       .help = "with --stage: apply nothing and do not ask"};

// What became of the changes in one project.
struct StageOutcome {
  std::string project;
  std::vector<undo::Change> staged;
  std::vector<session::StageRefusal> conflicts;
  std::string kept;  // where the command's version of these is
};

class StagedRun {
 public:
  // Before anything runs. kInvalid: the options contradict each other, or nobody could be asked. Without --stage it does nothing.
  static Result<StagedRun> Prepare(const Arguments& arguments, session::SessionOptions& options,
                                   const Console& console);

  bool wanted() const { return !stages_.empty(); }
  // When the world is gone. The report gets the step that was made, if any.
  Status Decide(const std::string& label, session::CommandReport& report, const Console& console);
  const std::vector<StageOutcome>& outcomes() const { return outcomes_; }
  bool has_conflicts() const;

 private:
  enum class Decision : uint8_t { kAsk, kApply, kDiscard };
  struct Staged {
    undo::UndoPaths paths;
    session::Stage stage;
  };
  StagedRun() = default;
  Status Add(session::SessionProject& project, session::SessionOptions& options,
             const Console& console);
  Status Show(const Staged& staged, const session::StageScan& scan, const Console& console) const;
  Result<std::set<std::string>> Choose(const Staged& staged, const session::StageScan& scan,
                                       const Console& console) const;
  Status Apply(Staged& staged, const std::set<std::string>& paths, const std::string& label,
               session::CommandReport& report);

  Decision decision_ = Decision::kAsk;
  undo::UndoOptions undo_;
  bool tells_ = false;
  std::vector<Staged> stages_;
  std::vector<StageOutcome> outcomes_;
};

// For people: what was left out, and why.
std::vector<std::string> StageLines(const std::vector<StageOutcome>& outcomes);
Json ToJson(const std::vector<StageOutcome>& outcomes);

}  // namespace sandglass::cli
