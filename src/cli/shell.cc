// sandglass shell: an interactive bash in the project's world; each of its command lines is a step.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/help_text.h"
#include "cli/project_choice.h"
#include "cli/reports.h"
#include "cli/rewind_output.h"
#include "cli/run_options.h"
#include "cli/safeguard_options.h"
#include "cli/safeguard_prompt.h"
#include "session/session.h"
#include "session/shell_lines.h"
#include "session/shell_rc.h"

namespace sandglass::cli {
namespace {

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
                               kAllowBroadOption,
                               kWatchOption,
                               kDeleteThresholdOption,
                               kOverwriteThresholdOption,
                               kRenameOverOption,
                               kAnswerTimeOption,
                               kNoSafeguardsOption,
                               kHelpOption};

session::ShellReply Failure(const Error& error) {
  return {static_cast<int>(ExitCodeFor(error.code())),
          fmt::format("sandglass: {}\n", error.message())};
}

// The words typed inside mean what they mean to the commands of this program.
class Words : public session::ShellWords {
 public:
  std::variant<session::RewindRequest, session::ShellReply> Understand(
      const std::vector<std::string>& words, const undo::UndoPaths& paths) const override {
    if (words.front() == "steps") return Steps(paths);
    const Command* command = FindCommand(words.front());
    const std::vector<std::string_view> rest(words.begin() + 1, words.end());
    const auto arguments = Arguments::Parse(*command, rest);
    if (!arguments.ok()) return Failure(arguments.error());
    if (arguments->Has(kHelpOption.name)) return session::ShellReply{0, CommandHelp(*command)};
    for (const Option& option : {kProjectOption, kStoreOption, kUndoDirOption, kJsonOption}) {
      if (arguments->Has(option.name))
        return Failure(Error(Code::kInvalid, fmt::format("--{} is for use outside", option.name)));
    }
    // Inside, nobody can tell the person at the keyboard from a program that writes to the same channel.
    if (arguments->Has(kForceOption.name))
      return Failure(Error(Code::kDenied,
                           "what others edited is overwritten from outside only: use `sandglass "
                           "undo --force` or `redo --force` in another terminal"));
    session::RewindRequest request{
        .kind = words.front() == "undo" ? session::RewindKind::kUndo : session::RewindKind::kRedo,
        .count = arguments->Count(0, 1)};
    TakeRewindOptions(*arguments, request);
    return request;
  }

  session::ShellReply Tell(const session::RewindRequest& request,
                           const session::RewindAnswer& answer) const override {
    const int status = answer.error ? static_cast<int>(ExitCodeFor(answer.error->code())) : 0;
    return {status, AnswerText(request, answer)};
  }

 private:
  static session::ShellReply Steps(const undo::UndoPaths& paths) {
    const auto reader = undo::StoreReader::Open(paths);
    if (!reader.ok()) return Failure(reader.error());
    const auto history = reader->History();
    if (!history.ok()) return Failure(history.error());
    return {0, history->empty() ? "the history is empty\n" : HistoryText(*history)};
  }
};

// Other shells cannot tell where a command line begins and ends.
Result<std::string> FindBash() {
  const char* path = std::getenv("PATH");
  std::string_view folders = path != nullptr ? path : "";
  while (!folders.empty()) {
    const size_t end = std::min(folders.find(':'), folders.size());
    const std::string bash = fmt::format("{}/bash", folders.substr(0, end));
    if (bash.starts_with('/') && ::access(bash.c_str(), X_OK) == 0) return bash;
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  if (::access("/bin/bash", X_OK) == 0) return std::string("/bin/bash");
  return Error(Code::kNotFound, "the shell needs bash, which is not installed here");
}

// `undo` typed inside must not leave in doubt which project it means.
Status CheckOneProjectToChange(const session::SessionOptions& options) {
  const auto writable = std::ranges::count(options.projects, world::Access::kReadWrite,
                                           &session::SessionProject::access);
  if (writable == 1) return Ok();
  return Error(Code::kInvalid, "the shell changes exactly one project; say :ro behind all others");
}

Status Run(const Arguments& arguments, Console& console) {
  const StandardStreams& streams = console.streams();
  if (::isatty(streams.in) != 1 || ::isatty(streams.out) != 1)
    return Error(Code::kInvalid, "the shell needs a terminal; `sandglass run` does not");
  TRY_ASSIGN(const std::string bash, FindBash());
  TRY_ASSIGN(const session::SessionOptions options, SessionFor(arguments, console));
  TRY(CheckOneProjectToChange(options));
  TRY_ASSIGN(session::CommandSpec command,
             CommandFor(arguments, options.projects.front().paths.project));
  const Words words;
  command.argv = session::ShellArguments(bash);
  command.label = "(start of the shell)";
  command.shell = &words;
  command.env.push_back({"SHELL", bash});
  TRY_ASSIGN(auto host, session::HostStreams::Open({streams.in, streams.out, streams.err}));
  SafeguardPrompt prompt(console, WordsFor("approve", arguments, options.projects.front().paths));
  PromptedStreams prompted(host, prompt);
  TRY_ASSIGN(auto session, StartSession(options, console));
  prompt.Attend(*session);
  TRY_ASSIGN(const session::CommandReport report, session->Run(command, prompted));
  for (const std::string& warning : report.warnings) console.Note(warning);
  if (!report.outcome.error.empty()) console.Note(report.outcome.error);
  if (report.outcome.ending == control::Ending::kLost)
    return Error(
        Code::kIo,
        "the world ended before the shell did; the next start takes back what its line had begun");
  console.SetExitCode(static_cast<uint8_t>(report.outcome.exit_code));
  return Ok();
}

}  // namespace

constinit const Command kShellCommand{
    .name = "shell",
    .summary = "an interactive shell in the isolated world; each line is a step",
    .description =
        "A bash in the project's world, as run would start it. Folder, variables, jobs and history "
        "are the shell's own as usual; each command line that changes the project is a step of its "
        "own. It reads ~/.bashrc of the world's home.\n\n"
        "Inside, undo [N] and redo [N] take lines back and do them again, with the options of the "
        "commands of that name but --force, and steps lists them. What background jobs write "
        "between two "
        "lines is ambient. The exit code is the shell's.\n\n"
        "Before a line deletes much you are asked, as by run; what is denied is taken back, and "
        "the "
        "shell ends with all that it has started.",
    .options = kOptions,
    .operands = {},
    .run = Run,
    .exit_codes = Command::ExitCodes::kOfTheProgram,
};

}  // namespace sandglass::cli
