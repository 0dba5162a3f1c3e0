// What a command line will probably do to files: only read, write, or destroy. Shown beside a command, counted, and used to flag it
// for a person.
//
// NEVER a boundary: see shell_lexer.h. A command that is called read-only here is run in the same world, with the same undo and the
// same safeguards, as any other. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/shell_lexer.h"

namespace sandglass::policy {

// In the order of harm.
enum class CommandClass : uint8_t { kReadOnly, kWrite, kDestructive };
// "read_only", "write", "destructive".
std::string_view CommandClassName(CommandClass command_class);

struct ClassLists {
  std::vector<std::string> read_only, write, destructive;
};
// Which programs and which subcommands of some of them are what. A name in several lists is what the worst of these says; one in
// none writes.
struct ClassifierConfig {
  ClassLists commands;
  ClassLists git, cargo, npm;
};
const ClassifierConfig& DefaultClassifierConfig();

struct ClassifiedCommand {
  std::string program;  // its name without folders; "": only redirections or assignments
  CommandClass command_class = CommandClass::kWrite;
  std::string reason;  // for a person
};

struct Classification {
  CommandClass command_class = CommandClass::kReadOnly;  // the worst of all
  std::vector<ClassifiedCommand> commands;
  bool certain = true;  // false: a part is known to the shell only, and is taken to write
};

Classification Classify(std::string_view command_line, const ClassifierConfig& config);

// Patterns that no ordinary command has. They are fixed, because whoever could change them would be whom they are about.
enum class Danger : uint8_t {
  kForkBomb,
  kPrivilege,    // sudo and the like
  kDevice,       // writes to a disk or to the kernel's memory
  kWholeSystem,  // removes or opens up / or a home
  kHiddenCommand,  // what runs is made up while it runs: a download into a shell, an encoded text, a built-up name
  kControlBytes,  // a NUL, or escapes that make a terminal show another command
};
// "fork_bomb" and so on.
std::string_view DangerName(Danger danger);

struct Finding {
  Danger danger;
  std::string detail;
};
// Empty: none. Never means that a command is safe.
std::vector<Finding> FindDangers(std::string_view command_line);

}  // namespace sandglass::policy
