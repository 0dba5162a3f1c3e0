#include "session/shell_lines.h"

#include <fmt/format.h>

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

Status ShellLines::On(const std::string& tag, const LineBegins& begins) {
  TRY(keeper_.Close());
  const std::string& label = begins.line.empty() ? kUnknownLine : begins.line;
  TRY(keeper_.Open(keeper_.NextId(), label, undo::IfUnchanged::kForgotten));
  channel_.Send(tag, {});
  return Ok();
}

Status ShellLines::On(const std::string& tag, const LineEnded&) {
  TRY(keeper_.Close());
  ShellReply reply;
  for (const std::string& notice : parts_.TakeNotices())
    reply.text += fmt::format("sandglass: {}\n", notice);
  channel_.Send(tag, reply);
  return Ok();
}

Status ShellLines::On(const std::string& tag, const WordsTyped& typed) {
  const ProjectLog& project = parts_.logs.front();
  auto meant = words_.Understand(typed.words, *project.log);
  if (const auto* reply = std::get_if<ShellReply>(&meant)) {
    channel_.Send(tag, *reply);
    return Ok();
  }
  RewindRequest request = std::move(std::get<RewindRequest>(meant));
  request.project = project.path;
  rewinds_.Ask(request, [this, tag, request](const RewindAnswer& answer) {
    channel_.Send(tag, words_.Tell(request, answer));
  });
  return Ok();
}

}  // namespace sandglass::session
