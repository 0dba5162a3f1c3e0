// Trial: one scenario, set up afresh, run once with or without a deed of the tracer, reopened and judged.
//
//   setup -> run (killed, or one call made to fail) -> reopen -> open again and roll everything back
//
// Every trial sets up its own folder, because a copied store would name other inodes than its project has. Trials share nothing;
// each belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/crash/ledger.h"
#include "tests/crash/tracer.h"

namespace sandglass::crash {

// A scenario as `crash_scenario list` describes it.
struct ScenarioInfo {
  std::string name;
  std::string about;
  Eviction eviction = Eviction::kNone;
  std::string after_crash_of;  // set up by killing this scenario
  uint32_t crash_percent = 0;  // when: the share of its calls that it gets to make
  uint32_t pause_ms = 0;       // what passes after each kill before the log is opened again
  std::vector<std::string>
      edits;  // files that a person writes to between the last kill and the opening

  const std::string& base() const { return after_crash_of.empty() ? name : after_crash_of; }
};

enum class OnRefusal : uint8_t {
  kAbort,
  kClose
};  // what a scenario does with its step when an operation is refused

struct Deal {
  CallSelection selection = CallSelection::kChanging;
  Deed deed = Deed::kNothing;
  size_t point = 0;
  OnRefusal on_refusal = OnRefusal::kAbort;
};

// What is known about a scenario before the sweep over it.
struct Knowledge {
  Reference reference;          // of the scenario, or of the one that was killed to set it up
  std::vector<SeenCall> calls;  // of an undisturbed run
  size_t crash_point = 0;       // with after_crash_of: where that one is killed
};

struct Verdict {
  std::vector<std::string> problems;  // empty: as it must be
  Trace trace;
  Reference states;  // of the run itself
  bool refused = false;
};

class Trial {
 public:
  // `folder` is created; what is in it stays for whoever wants to look. `knowledge` must outlive the trial.
  Trial(std::string program, const ScenarioInfo& scenario, const Knowledge& knowledge,
        std::string folder);

  // An Error means that the harness itself could not work.
  Result<Verdict> Run(const Deal& deal);

 private:
  // What a run of the program in one of its modes printed and where it ended.
  struct Answer {
    ChildEnd end;
    std::string line;  // the last line of its output
  };
  struct Reopened {
    History history;
    bool recovered = false;
    TreePtr tree;
  };

  Status MakeFolders() const;
  Status SetUp();
  void Pause() const;
  Result<Trace> RunTraced(const std::string& name, const Deal& deal);
  Result<Answer> RunPlainly(const std::string& mode, const std::vector<std::string>& more,
                            const MarkerSink& sink);
  std::vector<std::string> Arguments(const std::string& mode, const std::string& name) const;
  Result<TreePtr> ReadTree() const;
  MarkerSink LedgerSink();

  Status JudgeEnd(const Trace& trace, const Deal& deal);
  Status EditAsPerson();
  Status JudgeEdits();
  Status JudgeReopening(const TreePtr& at_end);
  Status JudgeSecondOpening(const Reopened& first);
  void CompareWith(const std::string& what, const Result<ExpectedTree>& expected,
                   const TreePtr& got);
  void Report(const std::string& what, const std::vector<std::string>& details);

  const std::string program_;
  const ScenarioInfo& scenario_;
  const Knowledge& knowledge_;
  const std::string folder_;
  Ledger ledger_;
  std::vector<std::string> edited_;
  std::vector<std::string> problems_;
};

}  // namespace sandglass::crash
