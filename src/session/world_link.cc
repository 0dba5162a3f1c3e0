#include "session/world_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "session/held_steps.h"

namespace sandglass::session {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;

void Earliest(std::optional<Instant>& first, const std::optional<Instant>& deadline) {
  if (deadline && (!first || *deadline < *first)) first = deadline;
}

}  // namespace

bool HungUp(int fd) {
  pollfd end{fd, 0, 0};
  return ::poll(&end, 1, 0) > 0 && (end.revents & POLLHUP) != 0;
}

WorldState ReadWorld(Session::Parts& parts) {
  std::string buffer(kReadBytes, '\0');
  const ssize_t got = ::recv(parts.world->control_fd(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return WorldState::kLives;
  if (got <= 0) return WorldState::kGone;
  std::string_view bytes(buffer.data(), static_cast<size_t>(got));
  while (auto line = parts.lines.Next(bytes)) parts.tracker.Receive(*line);
  return WorldState::kLives;
}

void WriteChannel(Session::Parts& parts) {
  while (!parts.queue.empty()) {
    const std::string_view bytes = parts.queue.Front();
    const ssize_t sent =
        ::send(parts.world->control_fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return;  // full, or dead, which reading tells
    parts.queue.Consume(static_cast<size_t>(sent));
  }
}

Status NoticeEndedProcesses(Session::Parts& parts) {
  std::erase_if(parts.processes, [&](const SupervisedProcesses& processes) {
    if (!HungUp(processes.listener.get())) return false;
    parts.ended.push_back(processes.command);
    return true;
  });
  for (const StepId command : parts.ended) DenyQuestionsOfCommand(parts, command);
  // To forget it, the bridge waits for its calls, and one of them may wait for an answer that was asked for by another command.
  if (!parts.questions.empty()) return Ok();
  for (const StepId command : std::exchange(parts.ended, {})) {
    TRY(parts.bridge->Forget(command));
    parts.tracker.SetProcesses(command, control::Processes::kGone);
  }
  return Ok();
}

int PatienceUntil(const Session::Parts& parts,
                  std::initializer_list<std::optional<Instant>> deadlines) {
  std::optional<Instant> first = parts.server->Deadline();
  for (const auto& deadline : deadlines) Earliest(first, deadline);
  Earliest(first, QuestionDeadline(parts));
  if (parts.guest != nullptr) Earliest(first, parts.guest->Deadline());
  if (!first) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*first - parts.clock.Now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
}

}  // namespace sandglass::session
