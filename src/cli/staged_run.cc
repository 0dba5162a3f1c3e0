#include "cli/staged_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/io.h"
#include "base/printable.h"
#include "cli/reports.h"
#include "cli/run_options.h"
#include "cli/store_access.h"
#include "session/open_log.h"
#include "session/project_checks.h"
#include "session/stage_diff.h"
#include "undo/report_json.h"

namespace sandglass::cli {
namespace {

// What is shown at once; choosing file by file shows all of it.
constexpr size_t kShownBytes = size_t{256} << 10;

Status CheckOptions(const Arguments& arguments, const Console& console) {
  const bool apply = arguments.Has(kApplyOption.name);
  const bool discard = arguments.Has(kDiscardOption.name);
  if (!arguments.Has(kStageOption.name)) {
    if (!apply && !discard) return Ok();
    return Error(Code::kInvalid, "--apply and --discard go with --stage");
  }
  if (apply && discard) return Error(Code::kInvalid, "either --apply or --discard, not both");
  if (apply || discard || console.can_ask()) return Ok();
  return Error(Code::kInvalid,
               "nobody can be asked here what to do with the changes: add --apply or --discard");
}

std::string Line(const session::StagedChange& change) {
  const undo::Change& what = change.change;
  const std::string folder =
      fmt::format("{:<9} {}/", undo::ChangeName(what.kind), PrintableName(what.path));
  std::string line = change.folder ? folder : ChangeText(what);
  if (const auto flag = FlagOf(what)) line += fmt::format("  ! {}", *flag);
  if (!change.conflict.empty()) line += fmt::format("  ! {}", change.conflict);
  return fmt::format("  {}\n", line);
}

}  // namespace

Result<StagedRun> StagedRun::Prepare(const Arguments& arguments, session::SessionOptions& options,
                                     const Console& console) {
  StagedRun run;
  TRY(CheckOptions(arguments, console));
  if (!arguments.Has(kStageOption.name)) return run;
  TRY(session::CheckProjects(options));  // before a store is made for one that cannot be had
  if (arguments.Has(kApplyOption.name)) run.decision_ = Decision::kApply;
  if (arguments.Has(kDiscardOption.name)) run.decision_ = Decision::kDiscard;
  run.undo_ = options.undo;
  TRY_ASSIGN(run.undo_.external, session::UndoPolicyFor(options.watch.policy));
  run.tells_ = arguments.Has(kSummaryOption.name) || ::isatty(console.streams().err) == 1;
  for (session::SessionProject& project : options.projects) {
    if (project.access == world::Access::kReadWrite) TRY(run.Add(project, options, console));
  }
  if (!run.wanted()) return Error(Code::kInvalid, "there is no project whose changes to stage");
  return run;
}

// The log is opened to put right what was interrupted, and to see that the result can be recorded; meanwhile others may use it.
Status StagedRun::Add(session::SessionProject& project, session::SessionOptions& options,
                      const Console& console) {
  TRY(OpenLog(project.paths, console));
  const std::filesystem::path store = project.paths.store;
  TRY_ASSIGN(const std::string registry, undo::RegistryLocation());
  const std::filesystem::path state = std::filesystem::path(registry).parent_path();
  const std::vector<std::string> places = {
      state / "stages", store.parent_path() / fmt::format("{}.stages", store.filename().native())};
  TRY_ASSIGN(session::Stage stage, session::Stage::Make(project.paths.project, places));
  project.access = world::Access::kStaged;
  project.stage_upper = stage.upper();
  project.stage_work = stage.work();
  options.hidden_paths.push_back(std::filesystem::path(stage.folder()).parent_path());
  stages_.push_back({project.paths, std::move(stage)});
  return Ok();
}

Status StagedRun::Decide(const std::string& label, session::CommandReport& report,
                         const Console& console) {
  if (!wanted()) return Ok();
  report.step = StepId{0};
  for (Staged& staged : stages_) {
    TRY_ASSIGN(const session::StageScan scan, session::ScanStage(staged.stage));
    StageOutcome outcome{.project = staged.paths.project};
    for (const session::StagedChange& change : scan.changes)
      outcome.staged.push_back(change.change);
    outcomes_.push_back(std::move(outcome));
    if (scan.changes.empty()) continue;
    TRY(Show(staged, scan, console));
    TRY_ASSIGN(const std::set<std::string> paths, Choose(staged, scan, console));
    if (!paths.empty()) TRY(Apply(staged, paths, label, report));
  }
  return Ok();
}

Status StagedRun::Show(const Staged& staged, const session::StageScan& scan,
                       const Console& console) const {
  if (!tells_) return Ok();
  std::string list, diffs;
  size_t shown = 0;
  for (const session::StagedChange& change : scan.changes) {
    if (list.size() + diffs.size() > kShownBytes) break;
    TRY_ASSIGN(const std::string diff, session::DiffOf(staged.stage, change));
    list += Line(change);
    diffs += diff;
    ++shown;
  }
  std::string text = fmt::format("staged in {}:\n{}", PrintableName(staged.paths.project), list);
  if (shown < scan.changes.size())
    text += fmt::format("  and {} more, which choosing file by file shows\n",
                        scan.changes.size() - shown);
  return WriteFully(console.streams().err, AsBytes(text + PrintableText(diffs)));
}

Result<std::set<std::string>> StagedRun::Choose(const Staged& staged,
                                                const session::StageScan& scan,
                                                const Console& console) const {
  std::set<std::string> all;
  for (const session::StagedChange& change : scan.changes) all.insert(change.change.path);
  if (decision_ == Decision::kDiscard) return std::set<std::string>();
  if (decision_ == Decision::kApply) return all;
  TRY_ASSIGN(const char answer,
             console.Choose("[a]pply all, [d]iscard all, or choose [f]ile by file?", "adf", 'd'));
  if (answer != 'f') return answer == 'a' ? all : std::set<std::string>();
  std::set<std::string> chosen;
  for (const session::StagedChange& change : scan.changes) {
    const std::string& path = change.change.path;
    if (change.change.kind == undo::ChangeKind::kCreated && chosen.contains(path)) continue;
    TRY_ASSIGN(const std::string diff, session::DiffOf(staged.stage, change));
    TRY(WriteFully(console.streams().err, AsBytes(Line(change) + PrintableText(diff))));
    TRY_ASSIGN(const char wanted, console.Choose("[a]pply or [d]iscard this?", "ad", 'd'));
    if (wanted == 'a') chosen.insert(path);
  }
  return chosen;
}

Status StagedRun::Apply(Staged& staged, const std::set<std::string>& paths,
                        const std::string& label, session::CommandReport& report) {
  TRY_ASSIGN(auto log, session::OpenLogSoon(staged.paths, undo_));
  undo::StepSpec step{.label = label};
  if (report.step.value > 0) step.id = std::max(report.step, log->next_step_id());
  auto applied = session::ApplyStage(staged.stage, paths, *log, step);
  StageOutcome& outcome = outcomes_.back();
  if (!applied.ok() || !applied->conflicts.empty()) {
    TRY_ASSIGN(outcome.kept, staged.stage.Keep());
  }
  if (!applied.ok())
    return applied.error().WithContext(
        fmt::format("what the command did is kept in {}; {}", outcome.kept, staged.paths.project));
  outcome.conflicts = std::move(applied->conflicts);
  report.step = applied->step;
  report.projects.push_back(
      {.project = staged.paths.project, .changes = std::move(applied->changes)});
  return Ok();
}

bool StagedRun::has_conflicts() const {
  return std::ranges::any_of(
      outcomes_, [](const StageOutcome& outcome) { return !outcome.conflicts.empty(); });
}

std::vector<std::string> StageLines(const std::vector<StageOutcome>& outcomes) {
  std::vector<std::string> lines;
  for (const StageOutcome& outcome : outcomes) {
    if (outcome.conflicts.empty()) continue;
    std::string text = fmt::format("not applied in {}:\n", PrintableName(outcome.project));
    for (const session::StageRefusal& conflict : outcome.conflicts)
      text += fmt::format("  {}: {}\n", PrintableName(conflict.path), conflict.why);
    lines.push_back(text + fmt::format("the command's version is kept in {}", outcome.kept));
  }
  return lines;
}

Json ToJson(const std::vector<StageOutcome>& outcomes) {
  Json list = Json::Array();
  for (const StageOutcome& outcome : outcomes) {
    Json staged = Json::Array(), conflicts = Json::Array();
    for (const undo::Change& change : outcome.staged) staged.Append(undo::ToJson(change));
    for (const session::StageRefusal& conflict : outcome.conflicts)
      conflicts.Append(Json::Object({{"path", BytesToJson(conflict.path)}, {"why", conflict.why}}));
    Json json = Json::Object({{"project", BytesToJson(outcome.project)},
                              {"staged", std::move(staged)},
                              {"conflicts", std::move(conflicts)}});
    list.Append(json.Set("kept", outcome.kept.empty() ? Json() : BytesToJson(outcome.kept)));
  }
  return list;
}

}  // namespace sandglass::cli
