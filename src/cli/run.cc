// sandglass run: runs a command in an isolated world that changes the real project; what it did is a step that undo takes back.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/project_choice.h"
#include "cli/run_options.h"
#include "cli/run_report.h"
#include "cli/safeguard_options.h"
#include "cli/safeguard_prompt.h"
#include "cli/staged_run.h"
#include "session/session.h"

namespace sandglass::cli {
namespace {

constexpr Option kReportOption{
    .name = "json",
    .value = ValueKind::kPath,
    .value_name = "FILE",
    .help =
        "write a report as one line of JSON: the last line of the error stream, or into FILE, "
        "which may be one like /dev/fd/3. The command's own output is never touched",
    .need = ValueNeed::kOptional};
constexpr Option kOptions[] = {kProjectsOption,
                               kStoreOption,
                               kUndoDirOption,
                               kCwdOption,
                               kEnvOption,
                               kEphemeralOption,
                               kNoUndoForOption,
                               kReadOnlyOption,
                               kReadWriteOption,
                               kMemoryOption,
                               kCpusOption,
                               kPidsOption,
                               kFileSizeOption,
                               kWithoutLandlockOption,
                               kTimeoutOption,
                               kAllowBroadOption,
                               kSummaryOption,
                               kReportOption,
                               kWatchOption,
                               kDeleteThresholdOption,
                               kOverwriteThresholdOption,
                               kRenameOverOption,
                               kAnswerTimeOption,
                               kNoSafeguardsOption,
                               kStageOption,
                               kApplyOption,
                               kDiscardOption,
                               kHelpOption};
constexpr Operand kOperands[] = {
    {"COMMAND", ValueKind::kWords, Arity::kOneOrMore, "the program and its arguments"}};

// Where --json wants the report: behind the last line of the error stream, or in a file that is opened before anything runs.
class ReportPlace {
 public:
  static Result<ReportPlace> Open(const Arguments& arguments) {
    ReportPlace place;
    place.wanted_ = arguments.Has(kReportOption.name);
    const std::string file = arguments.Value(kReportOption.name);
    if (file.empty()) return place;
    place.file_ =
        Fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0644));
    if (!place.file_.valid()) return Error::FromErrno(errno, fmt::format("write to {}", file));
    return place;
  }

  bool is_error_stream() const { return wanted_ && !file_.valid(); }
  Status Write(const Json& json, const StandardStreams& streams) const {
    if (!wanted_) return Ok();
    const std::string line = WriteJson(json) + '\n';
    auto written = WriteFully(file_.valid() ? file_.get() : streams.err, AsBytes(line));
    return written.ok() ? Ok() : written.error().WithContext("write the report");
  }

 private:
  bool wanted_ = false;
  Fd file_;
};

std::vector<ReportedProject> Reported(const Arguments& arguments,
                                      const session::SessionOptions& options) {
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).native();
  std::vector<ReportedProject> projects;
  for (const session::SessionProject& project : options.projects) {
    const std::string& path = project.paths.project;
    projects.push_back({.path = path,
                        .undo_command = UndoCommandFor(arguments, project.paths),
                        .named = options.projects.size() > 1 || path != here,
                        .is_filtered = !options.undo.unrecorded.empty() ||
                                       options.undo.gitignore != undo::GitignoreMode::kOff});
  }
  return projects;
}

void TellEnding(const Arguments& arguments, const session::CommandReport& report,
                const Console& console) {
  for (const std::string& warning : report.warnings) console.Note(warning, report.step);
  const control::Outcome& outcome = report.outcome;
  if (!outcome.error.empty()) console.Note(outcome.error, report.step);
  if (outcome.ending == control::Ending::kTimedOut)
    console.Note(
        fmt::format("the command was ended by --timeout {}", arguments.Value(kTimeoutOption.name)),
        report.step);
}

struct WorldRun {
  Result<session::CommandReport> report;
  std::vector<std::string> limits;  // by which means they were enforced
};

// The host's streams and signals are its own for so long. An error: nothing ran.
Result<WorldRun> RunInWorld(const Arguments& arguments, const session::SessionOptions& options,
                            const session::CommandSpec& command, const ReportPlace& place,
                            const Console& console) {
  const StandardStreams& streams = console.streams();
  TRY_ASSIGN(auto host, session::HostStreams::Open({streams.in, streams.out, streams.err}));
  SafeguardPrompt prompt(console, WordsFor("approve", arguments, options.projects.front().paths));
  PromptedStreams prompted(host, prompt);
  TRY_ASSIGN(auto session, StartSession(options, console));
  prompt.Attend(*session);
  auto report = session->Run(command, prompted);
  if (place.is_error_stream() && host.ends_inside_line(control::Stream::kStderr))
    (void)WriteFully(streams.err, AsBytes(std::string_view("\n")));  // as the report will tell
  return WorldRun{std::move(report), session->notes()};
}

void TellSummary(const session::CommandReport& report, const StagedRun& staged,
                 const std::vector<ReportedProject>& projects, const Console& console) {
  const bool discarded = staged.wanted() && report.projects.empty();
  if (discarded) return console.Note("nothing was applied: the project is as it was");
  for (const std::string& line : SummaryLines(report, projects)) console.Note(line, report.step);
}

Json ToJson(const std::vector<std::string>& texts) {
  Json list = Json::Array();
  for (const std::string& text : texts) list.Append(BytesToJson(text));
  return list;
}

// Whoever left something out should not take the undo for a whole one.
std::string UnrecordedText(const session::SessionOptions& options) {
  if (options.undo.unrecorded.empty()) return "";
  return fmt::format("not recorded and not undone: {}", fmt::join(options.undo.unrecorded, " "));
}

// What became of a command that ran.
struct Ran {
  const Arguments& arguments;
  const session::SessionOptions& options;
  const session::CommandSpec& command;
  StagedRun& staged;
  WorldRun& world;
};

Status TellRun(const Ran& ran, const ReportPlace& place, Console& console) {
  if (!ran.world.report.ok()) return ran.world.report.error();
  const auto& [arguments, options, command, staged, world] = ran;
  session::CommandReport& report = *ran.world.report;
  TellEnding(arguments, report, console);
  if (report.outcome.ending == control::Ending::kLost)
    return Error(Code::kIo,
                 "the world ended before the command did; the next start takes back what it "
                 "had begun");
  TRY(staged.Decide(command.label, report, console));
  for (const std::string& line : StageLines(staged.outcomes())) console.Note(line);
  const std::vector<ReportedProject> projects = Reported(arguments, options);
  const StandardStreams& streams = console.streams();
  const bool tells = arguments.Has(kSummaryOption.name) || ::isatty(streams.err) == 1;
  if (tells) TellSummary(report, staged, projects, console);
  if (const std::string text = UnrecordedText(options); !text.empty() && tells) console.Note(text);
  console.SetExitCode(staged.has_conflicts() ? static_cast<uint8_t>(ExitCode::kNotRun)
                                             : static_cast<uint8_t>(report.outcome.exit_code));
  Json json = ReportToJson(report, projects);
  json.Set("no_undo_for", ToJson(options.undo.unrecorded)).Set("limits", ToJson(world.limits));
  if (staged.wanted()) json.Set("stage", ToJson(staged.outcomes()));
  return place.Write(json, streams);
}

// An error: nothing ran. Else how it went.
Result<Status> RunAndTell(const Arguments& arguments, const ReportPlace& place, Console& console) {
  TRY_ASSIGN(session::SessionOptions options, SessionFor(arguments, console));
  TRY_ASSIGN(session::CommandSpec command,
             CommandFor(arguments, options.projects.front().paths.project));
  command.after = session::AfterCommand::kSessionEnds;
  TRY_ASSIGN(StagedRun staged, StagedRun::Prepare(arguments, options, console));
  TRY_ASSIGN(WorldRun ran, RunInWorld(arguments, options, command, place, console));
  return TellRun({arguments, options, command, staged, ran}, place, console);
}

Status Run(const Arguments& arguments, Console& console) {
  TRY_ASSIGN(const ReportPlace place, ReportPlace::Open(arguments));
  const Result<Status> ran = RunAndTell(arguments, place, console);
  const Status done = ran.ok() ? *ran : Status(ran.error());
  if (done.ok()) return done;
  console.Fail(done.error());
  TRY(place.Write(console.ErrorToJson(done.error()), console.streams()));
  const ExitCode code = ran.ok() ? ExitCode::kNotRun : ExitCodeOfRun(done.error());
  console.SetExitCode(static_cast<uint8_t>(code));
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
        "it leaves behind end with it.\n\n"
        "With --stage nothing reaches a project while the command runs: it works on a copy that "
        "only "
        "it sees. Afterwards its changes are shown, and you apply all, none or some of them, as "
        "one "
        "step. What somebody else changed in the project meanwhile is not overwritten: the message "
        "names it, the rest is applied, and the exit code is 125. Inside, renaming a folder that "
        "was "
        "there before fails as between file systems; mv copies it then.\n\n"
        "At a terminal you are asked before the command deletes 50 files or folders, or empties or "
        "shortens a file of 1M or more; it is held until you answer, and no answer within 30 "
        "seconds is a denial. Then its processes are ended, and all that it did is taken back. "
        "Elsewhere that happens only if an option or a setting says so, and sandglass approve "
        "answers.\n\n"
        "With several projects, each has its own history, and the step has the same number in all "
        "of them.",
    .options = kOptions,
    .operands = kOperands,
    .run = Run,
    .exit_codes = Command::ExitCodes::kOfTheProgram,
};

}  // namespace sandglass::cli
