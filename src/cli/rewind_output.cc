#include "cli/rewind_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/printable.h"
#include "cli/open_step.h"
#include "cli/progress_bar.h"
#include "cli/reports.h"
#include "cli/store_access.h"
#include "session/request_server.h"
#include "undo/report_json.h"

namespace sandglass::cli {
namespace {

Json ReportToJson(const undo::RewindReport& report, const undo::RecoveryReport& recovery) {
  Json json = ToJson(report);
  if (recovery.recovered || recovery.interrupted_rewind) json.Set("recovery", ToJson(recovery));
  return json;
}

bool IsEmpty(const undo::RewindReport& report) {
  return report.steps.empty() && report.changes.empty() && report.conflicts.empty();
}

std::string Heading(const undo::RewindReport& report, std::string_view verb) {
  if (IsEmpty(report)) return "nothing to do: everything is so already\n";
  if (report.steps.empty()) return fmt::format("a new step {}\n", verb);
  return fmt::format("{} {}: {}\n", report.steps.size() == 1 ? "step" : "steps",
                     StepsText(report.steps), verb);
}

// The library says what is wrong; what a person can do about it are words of this program.
std::string CommandOf(const session::RewindRequest& request) {
  const bool counts = request.kind != session::RewindKind::kRestore && request.count > 1;
  return fmt::format("sandglass {}{}", session::NameOf(request.kind),
                     counts ? fmt::format(" {}", request.count) : "");
}

// Git writes its index anew whenever it has looked at the files, and who asked it to look would not think of that.
bool IsIndexOfGit(const undo::Conflict& conflict) {
  return conflict.path == ".git/index" || conflict.path.ends_with("/.git/index");
}

std::string NextStep(const session::RewindRequest& request, const session::RewindAnswer& answer) {
  const Error& error = *answer.error;
  if (request.force == undo::Force::kYes) return "";
  const bool incomplete = error.code() == Code::kUnprotected || error.code() == Code::kCorrupt;
  if (incomplete && request.kind == session::RewindKind::kUndo)
    return "\nundo --force takes back what was kept and leaves the rest as it is; restore "
           "brings back single paths";
  if (error.code() != Code::kConflict) return "";
  const bool by_git = std::any_of(answer.conflicts.begin(), answer.conflicts.end(), IsIndexOfGit);
  return fmt::format(
      "\nnothing was touched; `{} --force` goes on in spite of that; redo brings back what it "
      "replaces until the next step{}",
      CommandOf(request),
      by_git ? "\n(git rewrites .git/index whenever it looks at the files, also for `git status`)"
             : "");
}

Error WithNextStep(const session::RewindRequest& request, const session::RewindAnswer& answer) {
  const Error& error = *answer.error;
  return Error(error.code(), error.message() + NextStep(request, answer), error.sys_errno());
}

std::string ReportText(const session::RewindRequest& request, const undo::RewindReport& report,
                       std::string_view all) {
  const RewindWords& words = WordsFor(request.kind);
  const bool planned = request.deed == session::Deed::kPlanned;
  return Heading(report, planned ? words.planned : words.done) + RewindText(report, all);
}

// For --json; the message itself names them for people.
void AddErrorDetails(const session::RewindAnswer& answer, Console& console) {
  if (!answer.conflicts.empty()) console.AddErrorDetail("conflicts", ToJson(answer.conflicts));
  if (answer.running.empty()) return;
  Json pids = Json::Array();
  for (const pid_t pid : answer.running) pids.Append(pid);
  console.AddErrorDetail("pids", std::move(pids));
}

// A dry run fails as the rewind itself would if conflicts are in its way and it is not to be forced.
Status PrintAnswer(const session::RewindRequest& request, const session::RewindAnswer& answer,
                   const undo::RecoveryReport& recovery, Console& console) {
  if (answer.error) {
    AddErrorDetails(answer, console);
    return WithNextStep(request, answer);
  }
  const undo::RewindReport& report = *answer.report;
  const bool planned = request.deed == session::Deed::kPlanned;
  if (console.wants_json())
    console.PrintJson(ReportToJson(report, recovery).Set("dry_run", planned));
  else
    console.Print(ReportText(request, report, "--json lists all"));
  if (!planned || report.conflicts.empty() || request.force == undo::Force::kYes) return Ok();
  console.KeepOutput();
  return Error(undo::RefusalCode(report.conflicts), "without --force it would be refused");
}

// Opening the log would take the interrupted step back, and a dry run changes nothing.
Status PlanBeforeRecovery(const session::RewindRequest& request, const OpenStep& open,
                          Console& console) {
  const int64_t step = open.header.id.value;
  if (request.kind != session::RewindKind::kUndo)
    return Error(Code::kConflict,
                 fmt::format("step {} was interrupted and has to be taken back first; `sandglass "
                             "undo` does that and no more",
                             step));
  if (console.wants_json())
    console.PrintJson(Json::Object({{"dry_run", true}, {"interrupted", ToJson(open)}}));
  else
    console.Print(
        fmt::format("step {}: would be undone; it was interrupted, and what it changed is "
                    "known when it is taken back\n",
                    step));
  return Ok();
}

// The interrupted step is the newest one to whoever wants it undone.
Status PrintRecovered(const session::RewindRequest& request, const undo::RecoveryReport& recovery,
                      Console& console) {
  if (console.wants_json())
    return PrintAnswer(request, {.report = recovery.rewind}, recovery, console);
  console.Print(fmt::format("step {}: undone; the steps before it are as they were\n",
                            StepsText(recovery.rewind.steps)));
  return Ok();
}

// Whoever has the store locked may be a session that can do it for us.
Result<session::RewindAnswer> AskOwner(const undo::UndoPaths& paths,
                                       const session::RewindRequest& request, const Error& refusal,
                                       const session::TellProgress& tell) {
  if (refusal.code() != Code::kLocked) return refusal;
  auto answer = session::AskSession(paths.store, request, tell);
  if (!answer.ok() && answer.error().code() == Code::kNotFound) return refusal;
  return answer;
}

}  // namespace

const RewindWords& WordsFor(session::RewindKind kind) {
  switch (kind) {
    case session::RewindKind::kUndo:
      return kUndoWords;
    case session::RewindKind::kRedo:
      return kRedoWords;
    case session::RewindKind::kRestore:
      break;
  }
  return kRestoreWords;
}

void TakeRewindOptions(const Arguments& arguments, session::RewindRequest& request) {
  if (arguments.Has(kForceOption.name)) request.force = undo::Force::kYes;
  if (arguments.Has(kDryRunOption.name)) request.deed = session::Deed::kPlanned;
  if (arguments.Has(kStopOption.name)) request.runners = session::Runners::kEnd;
}

Status RunRewind(const Arguments& arguments, session::RewindRequest request, Console& console) {
  TakeRewindOptions(arguments, request);
  TRY_ASSIGN(const undo::UndoPaths paths, FindExistingStore(arguments));
  request.project = paths.project;
  for (std::string& path : request.paths) {
    TRY_ASSIGN(path, PathInProject(paths.project, path));
  }
  ProgressBar bar(console.err_is_for_people() ? console.streams().err : -1);
  const session::TellProgress tell = bar.teller();
  if (tell) request.progress = session::ProgressWanted::kYes;
  if (request.deed == session::Deed::kPlanned) {
    const auto open = FindOpenStep(paths.store);
    if (open && !open->owner) return PlanBeforeRecovery(request, *open, console);
  }
  const auto log = OpenLog(paths, console, tell);
  if (!log.ok()) {
    TRY_ASSIGN(const session::RewindAnswer answer, AskOwner(paths, request, log.error(), tell));
    bar.Clear();
    return PrintAnswer(request, answer, {}, console);
  }
  const undo::RecoveryReport recovery = (*log)->recovery();
  if (request.kind == session::RewindKind::kUndo && !recovery.rewind.steps.empty() &&
      --request.count == 0) {
    bar.Clear();
    return PrintRecovered(request, recovery, console);
  }
  const session::RewindAnswer answer = Perform(**log, request);
  bar.Clear();
  return PrintAnswer(request, answer, recovery, console);
}

std::string AnswerText(const session::RewindRequest& request, const session::RewindAnswer& answer) {
  if (answer.report) return ReportText(request, *answer.report, "");
  return fmt::format("sandglass: {}\n", PrintableText(WithNextStep(request, answer).message()));
}

}  // namespace sandglass::cli
