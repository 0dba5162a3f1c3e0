// Reads a shell command line far enough to say which programs it names. Pure; any thread; linear time and bounded depth.
//
// This is NO boundary. A shell can run a program under a name that no reading of its text can tell (a variable, an alias, a file that
// is made first), so what comes out is good for showing and for asking people, never for allowing anything. What keeps a command
// from doing harm is the world that it runs in.
//
// Understood: quotes and backslashes, operators, redirections with here-documents, assignments, comments, groups and reserved words,
// command substitution in both spellings, process substitution, and `sh -c TEXT`, `eval`, `xargs`, `env` and the like where the
// text is plain. Substitutions and such texts give commands of their own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sandglass::policy {

// How much of a word its text tells.
enum class WordKind : uint8_t {
  kPlain,     // `text` is what the program gets
  kExpanded,  // holds something that only the shell knows: `text` has it as it is written
};

struct Word {
  std::string text;
  WordKind kind = WordKind::kPlain;
  bool quoted = false;  // a part of it, at least
};

enum class RedirectKind : uint8_t { kRead, kWrite, kAppend, kHereDocument, kDuplicate };
struct Redirect {
  RedirectKind kind;
  Word target;
};

// One program with its arguments. `words` may be empty: `X=1`, or `> file` alone.
struct SimpleCommand {
  std::vector<std::string> assignments;  // NAME=VALUE before the first word
  std::vector<Word> words;
  std::vector<Redirect> redirects;
  size_t pipeline = 0;  // commands with the same number are connected by pipes
  int depth = 0;        // how deep in substitutions
};

struct ShellText {
  std::vector<SimpleCommand> commands;
  // Names that are defined as functions: a later command of that name is not the program.
  std::vector<std::string> functions;
  bool complete =
      true;  // false: quotes or substitutions have no end, or the text is more than is looked at
  bool has_operators =
      false;  // more than one simple command, anything in the background, a redirection or a substitution
};

inline constexpr size_t kMostShellBytes = 1 << 20;
inline constexpr size_t kMostCommands = 10'000;
inline constexpr int kDeepestSubstitution = 16;

ShellText ReadShell(std::string_view text);

}  // namespace sandglass::policy
