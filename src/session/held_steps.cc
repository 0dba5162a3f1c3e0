#include "session/held_steps.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "session/standstill.h"
#include "session/world_link.h"

namespace sandglass::session {
namespace {

constexpr int kTriesToEnd = 1'000;
constexpr useconds_t kPauseMicroseconds = 2'000;

// Whoever is held in the bridge can be killed there. Again and again, because one may be about to start another.
void EndAllProcesses(const Session::Parts& parts) {
  for (int tried = 0; tried < kTriesToEnd; ++tried) {
    const std::vector<pid_t> processes = ProcessesOfCommands(parts.world->init_pid());
    if (processes.empty()) return;
    for (const pid_t pid : processes) ::kill(pid, SIGKILL);
    ::usleep(kPauseMicroseconds);
  }
  parts.log.Error("processes of a denied step did not end");
}

// A command that is held can be cancelled; then nobody waits for the answer but the bridge.
bool NobodyIsLeft(const Session::Parts& parts) {
  return std::ranges::all_of(parts.processes, [](const SupervisedProcesses& processes) {
    return HungUp(processes.listener.get());
  });
}

bool HasQuestion(const Session::Parts& parts) {
  pollfd ready{parts.bridge->questions_fd(), POLLIN, 0};
  return ready.fd >= 0 && ::poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0;
}

}  // namespace

std::optional<Instant> QuestionDeadline(const Session::Parts& parts) {
  std::optional<Instant> first;
  for (const OpenQuestion& open : parts.questions) {
    if (!first || open.deadline < *first) first = open.deadline;
  }
  return first;
}

Status WorkOnQuestions(Session::Parts& parts) {
  while (HasQuestion(parts)) {
    auto asked = parts.bridge->TakeQuestion();
    if (!asked.ok()) break;  // the bridge is about to end, and its own channel says so
    parts.log.WithStep(asked->question.step)
        .Warn("safeguard triggered", {{"kind", undo::SafeguardName(asked->question.kind)},
                                      {"amount", asked->question.amount}});
    parts.questions.push_back({asked->key, parts.clock.Now() + parts.question_timeout});
    if (parts.guest != nullptr) parts.guest->OnSafeguard(*asked);
  }
  const Instant now = parts.clock.Now();
  const bool nobody_left = !parts.questions.empty() && NobodyIsLeft(parts);
  while (true) {
    const auto late = std::ranges::find_if(parts.questions, [&](const OpenQuestion& open) {
      return nobody_left || open.deadline <= now;
    });
    if (late == parts.questions.end()) return Ok();
    const SafeguardKey key = late->key;
    parts.log.Warn(nobody_left ? "safeguard: who waited is gone; denied"
                               : "safeguard timeout: denied");
    TRY(AnswerQuestion(parts, key, undo::Decision::kDeny));
  }
}

Status AnswerQuestion(Session::Parts& parts, const SafeguardKey& key, undo::Decision decision) {
  const auto found = std::ranges::find(parts.questions, key, &OpenQuestion::key);
  if (found == parts.questions.end()) return Error(Code::kNotFound, "nobody waits for that answer");
  parts.questions.erase(found);
  if (decision == undo::Decision::kDeny) EndAllProcesses(parts);
  if (parts.guest != nullptr) parts.guest->OnSafeguardSettled(key, decision);
  return parts.bridge->AnswerQuestion({key, decision});
}

}  // namespace sandglass::session
