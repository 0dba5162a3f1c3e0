#include "session/shell_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace sandglass::session {
namespace {

constexpr char kUnknownLine[] = "(a line that the shell does not remember)";

}  // namespace

Status ShellLines::Work() {
  for (const Result<ShellMessage>& message : channel_.Work()) {
    if (!message.ok()) continue;  // whoever sent that waits for nothing
    TRY(std::visit([&](const auto& what) { return On(message->tag, what); }, message->what));
  }
  return Ok();
}

Status ShellLines::CloseLine() {
  TRY_ASSIGN(std::vector<std::string> notices, keeper_.Close());
  std::ranges::move(notices, std::back_inserter(notices_));
  return Ok();
}

Status ShellLines::On(const std::string& tag, const LineBegins& begins) {
  TRY(CloseLine());
  TRY_ASSIGN(const StepId id, keeper_.NextId());
  const std::string& label = begins.line.empty() ? kUnknownLine : begins.line;
  TRY(keeper_.Open(id, label, undo::IfUnchanged::kForgotten));
  channel_.Send(tag, {});
  return Ok();
}

Status ShellLines::On(const std::string& tag, const LineEnded&) {
  TRY(CloseLine());
  ShellReply reply;
  for (const std::string& notice : std::exchange(notices_, {}))
    reply.text += fmt::format("sandglass: {}\n", notice);
  channel_.Send(tag, reply);
  return Ok();
}

Status ShellLines::On(const std::string& tag, const WordsTyped& typed) {
  const undo::UndoPaths& paths = parts_.writable.front();
  auto meant = words_.Understand(typed.words, paths);
  if (const auto* reply = std::get_if<ShellReply>(&meant)) {
    channel_.Send(tag, *reply);
    return Ok();
  }
  RewindRequest request = std::move(std::get<RewindRequest>(meant));
  request.project = paths.project;
  rewinds_.Ask(request, [this, tag, request](const RewindAnswer& answer) {
    channel_.Send(tag, words_.Tell(request, answer));
  });
  return Ok();
}

}  // namespace sandglass::session
