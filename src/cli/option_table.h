// The tables that describe the command line. Parsing, help, completion and the manual page all read
// them, so none of the four can say something that the others do not. Value types with static
// storage; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace sandglass::cli {

class Arguments;
class Console;

// What a value must look like; completion offers what fits.
enum class ValueKind : uint8_t {
  kNone,          // an option without a value
  kFolder,        // a folder on this machine
  kPath,          // a path, of the project or of this machine
  kStep,          // the id of a step; those of ambient steps are negative
  kCount,         // from 1 to kMaxCount
  kCommand,       // the name of a command
  kShell,         // one of kShells
  kLogLevel,      // one of kLogLevels
  kConfigAction,  // one of kConfigActions
  kMcpAction,     // one of kMcpActions
  kMcpClient,     // one of kMcpClients
  kText,          // whatever it means to the command
  kWords,         // a program and its arguments: options end at its first word
};
inline constexpr uint32_t kMaxCount = 1'000'000;
inline constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};
inline constexpr std::string_view kLogLevels[] = {"trace", "debug", "info", "warn", "error"};

inline constexpr std::string_view kConfigActions[] = {"show", "validate", "edit"};
inline constexpr std::string_view kMcpActions[] = {"install"};
inline constexpr std::string_view kMcpClients[] = {"claude-code", "claude-desktop", "cursor",
                                                   "vscode", "codex"};

// Hidden: works, but only tools of this repository need it.
enum class Visibility : uint8_t { kShown, kHidden };

// Optional: it stands behind an equals sign or is not given; the next word is never taken for it.
enum class ValueNeed : uint8_t { kRequired, kOptional };

struct Option {
  std::string_view name;  // without its dashes
  char letter = '\0';     // -x for short, if any
  ValueKind value = ValueKind::kNone;
  std::string_view value_name = {};
  std::string_view help;
  Visibility visibility = Visibility::kShown;
  ValueNeed need = ValueNeed::kRequired;
};

enum class Arity : uint8_t { kOne, kOptional, kOneOrMore };

struct Operand {
  std::string_view name;
  ValueKind value;
  Arity arity;
  std::string_view help;
};

struct Command {
  std::string_view name;
  std::string_view summary;      // one line, no full stop
  std::string_view description;  // sentences; an empty line parts paragraphs
  std::span<const Option> options;
  std::span<const Operand> operands;
  // kInvalid: wrong usage. kConflict: nothing was touched.
  Status (*run)(const Arguments& arguments, Console& console);
  // Its exit code is that of the program which it ran, so its own failures must not look like one of those.
  enum class ExitCodes : uint8_t { kOurs, kOfTheProgram } exit_codes = ExitCodes::kOurs;
};

// Options that several commands have.
inline constexpr Option kProjectOption{.name = "project",
                                       .letter = 'p',
                                       .value = ValueKind::kFolder,
                                       .value_name = "DIR",
                                       .help =
                                           "the project folder; default: the nearest folder at or "
                                           "above the current one that has an undo store"};
inline constexpr Option kStoreOption{.name = "store",
                                     .value = ValueKind::kFolder,
                                     .value_name = "DIR",
                                     .help = "the undo store; default: where the library puts it"};
inline constexpr Option kUndoDirOption{
    .name = "undo-dir",
    .value = ValueKind::kFolder,
    .value_name = "DIR",
    .help =
        "the folder that holds the undo stores, one for each project; name the same one to undo"};
inline constexpr Option kJsonOption{.name = "json",
                                    .help = "print one line of JSON, also for an error"};
inline constexpr Option kForceOption{
    .name = "force",
    .letter = 'f',
    .help = "go on in spite of conflicts; what is replaced is kept for redo, until the next step"};
inline constexpr Option kDryRunOption{
    .name = "dry-run",
    .letter = 'n',
    .help =
        "only say what would change and which conflicts there are; the exit code is the one "
        "that doing it would have"};
inline constexpr Option kYesOption{.name = "yes", .letter = 'y', .help = "do not ask"};
inline constexpr Option kHelpOption{.name = "help", .letter = 'h', .help = "show this text"};

// Before the name of any command.
inline constexpr Option kLogLevelOption{
    .name = "log-level",
    .value = ValueKind::kLogLevel,
    .value_name = "LEVEL",
    .help =
        "log to the error stream, one JSON object per line: trace, debug, info, warn or error and "
        "all above it. Notes for people become log lines too"};
inline constexpr Option kGlobalOptions[] = {kLogLevelOption};

}  // namespace sandglass::cli
