#include "cli/rewind_output.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "cli/printable.h"
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
std::string NextStep(const session::RewindRequest& request, const Error& error) {
  if (request.force == undo::Force::kYes) return "";
  const bool incomplete = error.code() == Code::kUnprotected || error.code() == Code::kCorrupt;
  if (incomplete && request.kind == session::RewindKind::kUndo)
    return "\nundo --force takes back what was kept and leaves the rest as it is; restore "
           "brings back single paths";
  if (error.code() != Code::kConflict) return "";
  return fmt::format(
      "\nnothing was touched; `sandglass {} --force` goes on in spite of that, and keeps what it "
      "replaces",
      session::NameOf(request.kind));
}

Error WithNextStep(const session::RewindRequest& request, const session::RewindAnswer& answer) {
  const Error& error = *answer.error;
  return Error(error.code(), error.message() + NextStep(request, error), error.sys_errno());
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
  const auto log = OpenLog(paths, console, tell);
  if (!log.ok()) {
    TRY_ASSIGN(const session::RewindAnswer answer, AskOwner(paths, request, log.error(), tell));
    bar.Clear();
    return PrintAnswer(request, answer, {}, console);
  }
  const session::RewindAnswer answer = Perform(**log, request);
  bar.Clear();
  return PrintAnswer(request, answer, (*log)->recovery(), console);
}

std::string AnswerText(const session::RewindRequest& request, const session::RewindAnswer& answer) {
  if (answer.report) return ReportText(request, *answer.report, "");
  return fmt::format("sandglass: {}\n", PrintableText(WithNextStep(request, answer).message()));
}

}  // namespace sandglass::cli
