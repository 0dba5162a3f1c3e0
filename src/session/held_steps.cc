#include "session/held_steps.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "session/standstill.h"
#include "session/world_link.h"

namespace sandglass::session {
namespace {

constexpr int kTriesToEnd = 1'000;
constexpr useconds_t kPauseMicroseconds = 2'000;
constexpr std::chrono::milliseconds kWorldEnds{10'000};

// Whoever is held in the bridge can be killed there. Again and again, because one may be about to start another. False: some remain.
bool EndProcesses(const Session::Parts& parts) {
  for (int tried = 0; tried < kTriesToEnd; ++tried) {
    const std::vector<pid_t> processes = ProcessesOfCommands(parts.world->init_pid());
    if (processes.empty()) return true;
    for (const pid_t pid : processes) ::kill(pid, SIGKILL);
    ::usleep(kPauseMicroseconds);
  }
  return false;
}

// kBusy: not even the world ended.
Status EndAllProcesses(const Session::Parts& parts) {
  // Once its end was noticed, its number may be that of somebody else.
  if (parts.world->Wait(std::chrono::milliseconds(0)) || EndProcesses(parts)) return Ok();
  parts.log.Error("processes of a denied step did not end; the world is ended");
  parts.world->Kill();
  if (parts.world->Wait(kWorldEnds)) return Ok();
  return Error(Code::kBusy, "processes of a denied step cannot be ended");
}

// A command can end while it is held; then nobody waits for the answer but the bridge.
bool IsLeft(const Session::Parts& parts, StepId command) {
  const auto found = std::ranges::find(parts.processes, command, &SupervisedProcesses::command);
  return found != parts.processes.end() && !HungUp(found->listener.get());
}

template <class Concerns>
void DenyQuestions(Session::Parts& parts, const Concerns& concerns) {
  while (true) {
    const auto found = std::ranges::find_if(parts.questions, concerns);
    if (found == parts.questions.end()) return;
    // A bridge that takes no answer is about to end, and its own channel says so.
    (void)AnswerQuestion(parts, SafeguardKey(found->key), undo::Decision::kDeny);
  }
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
    parts.questions.push_back({asked->key, asked->question.step, asked->command,
                               parts.clock.Now() + parts.question_timeout});
    parts.tracker.Hold(asked->question.step);
    if (parts.guest != nullptr) parts.guest->OnSafeguard(*asked);
  }
  const Instant now = parts.clock.Now();
  while (true) {
    const auto late = std::ranges::find_if(parts.questions, [&](const OpenQuestion& open) {
      return open.deadline <= now || !IsLeft(parts, open.command);
    });
    if (late == parts.questions.end()) return Ok();
    parts.log.WithStep(late->step)
        .Warn(late->deadline <= now ? "safeguard timeout: denied"
                                    : "safeguard: who waited is gone; denied");
    TRY(AnswerQuestion(parts, SafeguardKey(late->key), undo::Decision::kDeny));
  }
}

Status AnswerQuestion(Session::Parts& parts, const SafeguardKey& key, undo::Decision decision) {
  const auto found = std::ranges::find(parts.questions, key, &OpenQuestion::key);
  if (found == parts.questions.end()) return Error(Code::kNotFound, "nobody waits for that answer");
  const StepId step = found->step;
  parts.questions.erase(found);
  Status ended;
  if (decision == undo::Decision::kDeny) ended = EndAllProcesses(parts);
  if (parts.guest != nullptr) parts.guest->OnSafeguardSettled(key, decision);
  parts.tracker.LetGo(step);
  // Unanswered, the bridge denies it by itself, later.
  TRY(ended);
  return parts.bridge->AnswerQuestion({key, decision});
}

void DenyQuestionsOfStep(Session::Parts& parts, StepId step) {
  DenyQuestions(parts, [&](const OpenQuestion& open) { return open.step == step; });
}

void DenyQuestionsOfCommand(Session::Parts& parts, StepId command) {
  DenyQuestions(parts, [&](const OpenQuestion& open) { return open.command == command; });
}

void DenyAllQuestions(Session::Parts& parts) {
  DenyQuestions(parts, [](const OpenQuestion&) { return true; });
}

}  // namespace sandglass::session
