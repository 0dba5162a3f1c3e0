#include "cli/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/did_you_mean.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/help_text.h"

namespace sandglass::cli {
namespace {

bool RunsAProgram(std::span<const std::string_view> words) {
  const Command* command = words.empty() ? nullptr : FindCommand(words.front());
  return command != nullptr && command->exit_codes == Command::ExitCodes::kOfTheProgram;
}

// Before parsing, so that an error of parsing is JSON too. Behind "--" it would be an operand. What a program prints that we run is
// not ours to follow with anything.
Format FormatFor(std::span<const std::string_view> words) {
  if (RunsAProgram(words)) return Format::kText;
  const auto end = std::ranges::find(words, "--");
  return std::find(words.begin(), end, "--json") != end ? Format::kJson : Format::kText;
}

// The level that the words before the command ask for, if any; they are taken away.
Result<std::optional<LogLevel>> TakeLogLevel(std::span<const std::string_view>& words) {
  const std::string option = fmt::format("--{}", kLogLevelOption.name);
  if (words.empty() || !words.front().starts_with(option)) return std::optional<LogLevel>();
  std::string_view value = words.front().substr(option.size());
  const bool joined = value.starts_with('=');
  if (!joined && !value.empty()) return std::optional<LogLevel>();
  if (!joined && words.size() < 2) return Error(Code::kInvalid, option + " needs a level");
  value = joined ? value.substr(1) : words[1];
  words = words.subspan(joined ? 1 : 2);
  const std::optional<LogLevel> level = ParseLogLevel(value);
  if (level) return level;
  return Error(Code::kInvalid,
               fmt::format("{}: '{}' should be trace, debug, info, warn or error", option, value));
}

// The common spellings of two commands.
std::string_view CommandName(std::string_view word) {
  if (word == "--help" || word == "-h") return kHelpCommand.name;
  if (word == "--version" || word == "-V") return kVersionCommand.name;
  return word;
}

Error UnknownCommand(std::string_view word) {
  std::vector<std::string_view> names;
  for (const Command* command : AllCommands()) names.push_back(command->name);
  const std::string_view meant = NearestWord(word, names);
  const std::string hint = meant.empty() ? "" : fmt::format(" (did you mean '{}'?)", meant);
  return Error(Code::kInvalid,
               fmt::format("there is no command '{}'{}; see `sandglass help`", word, hint));
}

Status RunCommand(std::span<const std::string_view> words, Console& console) {
  if (words.empty()) return Error(Code::kInvalid, "which command? See `sandglass help`");
  const Command* command = FindCommand(CommandName(words.front()));
  if (command == nullptr) {
    return UnknownCommand(words.front());
  }
  TRY_ASSIGN(Arguments arguments, Arguments::Parse(*command, words.subspan(1)));
  if (arguments.Has(kHelpOption.name)) {
    console.Print(CommandHelp(*command));
    return Ok();
  }
  return command->run(arguments, console);
}

// Whatever goes wrong, also with the words themselves.
ExitCode FailureOf(std::span<const std::string_view> words, const Error& error) {
  if (RunsAProgram(words)) return ExitCode::kNotRun;
  return ExitCodeFor(error.code());
}

}  // namespace

ExitCode RunProgram(std::span<const std::string_view> words, StandardStreams streams) {
  Console console(streams, FormatFor(words));
  const auto level = TakeLogLevel(words);
  if (level.ok() && *level) console.StartLog(**level);
  Status done = level.ok() ? RunCommand(words, console) : Status(level.error());
  if (!done.ok()) console.Fail(done.error());
  const Status flushed = console.Flush();
  if (!flushed.ok()) {
    console.Note(flushed.error().message());
    if (done.ok()) done = flushed;
  }
  if (!done.ok()) return FailureOf(words, done.error());
  return static_cast<ExitCode>(console.exit_code().value_or(0));
}

}  // namespace sandglass::cli
