// What the hooks of `sandglass shell` say to the session, and what they are told. The shell is not trusted, and neither is whatever
// it runs, which can speak in its name: a message can split a step in two or ask for an undo, and nothing else.
//
// A message is "tag \n verb \n rest", ended by a zero byte; its answer "tag \n status \n text", ended likewise. The tag only keeps
// an answer from being taken for that of another question. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace sandglass::session {

inline constexpr size_t kMaxShellMessageBytes = size_t{64} << 10;
inline constexpr size_t kMaxTagBytes = 64;

// A command line is about to run.
struct LineBegins {
  std::string line;  // "": the shell does not tell
};
// The shell is about to ask for the next one.
struct LineEnded {};
// Somebody typed `undo 2` or the like.
struct WordsTyped {
  std::vector<std::string> words;
};

struct ShellMessage {
  std::string tag;
  std::variant<LineBegins, LineEnded, WordsTyped> what;
};

// Of a message without its zero byte. kInvalid: it is none. kUnsupported: a verb that is not known.
Result<ShellMessage> DecodeShellMessage(std::string_view bytes);

struct ShellReply {
  int status = 0;  // as a shell takes it
  std::string text;
};
// With its zero byte at the end; a zero byte in the text is left out.
std::string Encode(std::string_view tag, const ShellReply& reply);

}  // namespace sandglass::session
