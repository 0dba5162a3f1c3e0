#include "session/shell_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sandglass::session {
namespace {

constexpr std::string_view kTypedVerbs[] = {"undo", "redo", "steps"};

// The part before the first newline; `text` becomes what follows it.
std::string_view TakePart(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

WordsTyped TakeWords(std::string_view verb, std::string_view rest) {
  WordsTyped typed{.words = {std::string(verb)}};
  while (!rest.empty()) typed.words.emplace_back(TakePart(rest));
  return typed;
}

}  // namespace

Result<ShellMessage> DecodeShellMessage(std::string_view bytes) {
  ShellMessage message;
  message.tag = TakePart(bytes);
  if (message.tag.empty() || message.tag.size() > kMaxTagBytes)
    return Error(Code::kInvalid, "a message of the shell without a tag");
  const std::string_view verb = TakePart(bytes);
  if (verb == "line") {
    message.what = LineBegins{std::string(bytes)};
  } else if (verb == "prompt") {
    message.what = LineEnded{};
  } else if (std::ranges::find(kTypedVerbs, verb) != std::end(kTypedVerbs)) {
    message.what = TakeWords(verb, bytes);
  } else {
    return Error(Code::kUnsupported, "a message of the shell that is not known");
  }
  return message;
}

std::string Encode(std::string_view tag, const ShellReply& reply) {
  std::string text = fmt::format("{}\n{}\n{}", tag, reply.status, reply.text);
  std::erase(text, '\0');
  return text + '\0';
}

}  // namespace sandglass::session
