// sandglass run: runs a command in an isolated world that changes the real project; what it did is a step that undo takes back.
#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/reports.h"
#include "cli/run_options.h"
#include "session/session.h"

namespace sandglass::cli {
namespace {

constexpr Option kSummaryOption{
    .name = "summary",
    .help = "say at the end what changed, also where the error stream is no terminal"};
constexpr Option kOptions[] = {
    kProjectOption,  kStoreOption,     kCwdOption,     kEnvOption,  kEphemeralOption,
    kReadOnlyOption, kReadWriteOption, kMemoryOption,  kCpusOption, kPidsOption,
    kTimeoutOption,  kWholeHomeOption, kSummaryOption, kHelpOption};
constexpr Operand kOperands[] = {
    {"COMMAND", ValueKind::kWords, Arity::kOneOrMore, "the program and its arguments"}};

std::string Flagged(const session::CommandReport& report) {
  std::vector<undo::Change> all;
  for (const session::ProjectStep& step : report.projects)
    all.insert(all.end(), step.changes.begin(), step.changes.end());
  return FlagsText(all);
}

std::string Summary(const session::CommandReport& report) {
  size_t counts[4] = {};
  for (const session::ProjectStep& step : report.projects) {
    for (const undo::Change& change : step.changes) ++counts[static_cast<size_t>(change.kind)];
  }
  std::string text;
  for (undo::ChangeKind kind : {undo::ChangeKind::kCreated, undo::ChangeKind::kModified,
                                undo::ChangeKind::kDeleted, undo::ChangeKind::kRenamed}) {
    if (const size_t count = counts[static_cast<size_t>(kind)]; count > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, undo::ChangeName(kind));
  }
  if (text.empty()) return fmt::format("step {}: no changes", report.step.value);
  if (const std::string flagged = Flagged(report); !flagged.empty())
    text += fmt::format("; look at {}", flagged);
  return fmt::format("step {}: {}; `sandglass undo` takes it back", report.step.value, text);
}

Status Run(const Arguments& arguments, Console& console) {
  TRY_ASSIGN(const session::SessionOptions options, SessionFor(arguments));
  TRY_ASSIGN(const session::CommandSpec command,
             CommandFor(arguments, options.projects.front().paths.project));
  const StandardStreams& streams = console.streams();
  TRY_ASSIGN(auto host, session::HostStreams::Open({streams.in, streams.out, streams.err}));
  TRY_ASSIGN(auto session, session::Session::Start(options));
  TellRecovery(*session, console);
  TRY_ASSIGN(const session::CommandReport report, session->Run(command, host));
  for (const std::string& warning : report.warnings) console.Note(warning);
  const control::Outcome& outcome = report.outcome;
  if (!outcome.error.empty()) console.Note(outcome.error);
  if (outcome.ending == control::Ending::kTimedOut)
    console.Note(
        fmt::format("the command was ended after {}", arguments.Value(kTimeoutOption.name)));
  if (outcome.ending == control::Ending::kLost)
    return Error(Code::kIo, "the world ended before the command did");
  if (arguments.Has(kSummaryOption.name) || ::isatty(streams.err) == 1)
    console.Note(Summary(report));
  console.SetExitCode(static_cast<uint8_t>(outcome.exit_code));
  return Ok();
}

}  // namespace

constinit const Command kRunCommand{
    .name = "run",
    .summary = "run a command in an isolated world; undo takes back what it did",
    .description =
        "The command sees this machine's programs, but not your home folder, secrets, sockets, "
        "other processes or the "
        "network. It changes the real project folder, live; everything that it does there is one "
        "step of the history.\n\n"
        "Its home folder, /tmp and /run are the world's own and stay from one run to the next, "
        "unless --ephemeral. "
        "Standard streams are the command's own; on a terminal it gets a terminal. Processes that "
        "it leaves behind end with it.",
    .options = kOptions,
    .operands = kOperands,
    .run = Run,
    .exit_codes = Command::ExitCodes::kOfTheProgram,
};

}  // namespace sandglass::cli
