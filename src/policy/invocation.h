// The programs that a command line runs, with what stands before them taken away: `env A=1 nice -n 5 git status` runs git, and `sh -c
// TEXT` runs what TEXT says. Pure; for this module.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/shell_lexer.h"

namespace sandglass::policy {

struct Invocation {
  std::string program;  // without folders; "": none
  WordKind program_kind = WordKind::kPlain;
  std::vector<Word> arguments;
  std::vector<Redirect> redirects;
  std::vector<std::string> wrappers;  // sudo, env, xargs: what it was run through
  size_t pipeline = 0;
};

struct Invocations {
  std::vector<Invocation> all;
  std::vector<std::string> functions;
  bool complete = true;
};

Invocations FindInvocations(std::string_view command_line);

// `-rf` has r and f; `--force` is force. Values behind an equals sign do not count.
bool HasOption(std::span<const Word> arguments, char letter, std::string_view name);

}  // namespace sandglass::policy
