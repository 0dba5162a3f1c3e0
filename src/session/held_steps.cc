#include "session/held_steps.h"

#include <fmt/format.h>
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

// The kernel itself says so of each command.
bool HaveAllHungUp(const Session::Parts& parts) {
  for (int tried = 0; tried < kTriesToEnd; ++tried) {
    const bool all = std::ranges::all_of(parts.processes, [](const SupervisedProcesses& processes) {
      return HungUp(processes.listener.get());
    });
    if (all) return true;
    ::usleep(kPauseMicroseconds);
  }
  return false;
}

// Whoever stands still is killed where it stands and starts nobody else. The dead of a standstill are buried when it is over.
void KillWhileTheyStandStill(Session::Parts& parts) {
  if (parts.hold == nullptr) return;
  for (const pid_t pid : ProcessesOfCommands(parts.world->init_pid())) ::kill(pid, SIGKILL);
  parts.hold.reset();
}

// kBusy: not even the world ended.
Status EndAllProcesses(Session::Parts& parts) {
  // Once its end was noticed, its number may be that of somebody else.
  if (parts.world->Wait(std::chrono::milliseconds(0))) {
    parts.hold.reset();
    return Ok();
  }
  KillWhileTheyStandStill(parts);
  if (EndProcesses(parts) && HaveAllHungUp(parts)) return Ok();
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
    (void)AnswerQuestion(parts, std::string(found->id), undo::Decision::kDeny);
  }
}

bool HasQuestion(const Session::Parts& parts) {
  pollfd ready{parts.bridge->questions_fd(), POLLIN, 0};
  return ready.fd >= 0 && ::poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0;
}

// Not below that of its step, so that one of an earlier session, which somebody may still have in mind, is hardly ever given again.
std::string NextQuestionId(Session::Parts& parts, StepId step) {
  parts.last_question = std::max(parts.last_question + 1, step.value);
  return fmt::format("sg_{:03}", parts.last_question);
}

HeldOperation HeldFor(const Session::Parts& parts, const OpenQuestion& open) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(open.deadline - parts.clock.Now());
  return {open.id, open.asked.question, std::max(left, std::chrono::milliseconds(0))};
}

void TakeUp(Session::Parts& parts, SafeguardAsked asked) {
  const StepId step = asked.question.step;
  OpenQuestion open{NextQuestionId(parts, step), std::move(asked),
                    parts.clock.Now() + parts.question_timeout};
  parts.log.WithStep(step).Warn("safeguard triggered",
                                {{"safeguard", open.id},
                                 {"kind", undo::SafeguardName(open.asked.question.kind)},
                                 {"amount", open.asked.question.amount}});
  // Before anybody learns of it: who decides does so about something that stays as it is.
  if (parts.hold == nullptr)
    parts.hold = std::make_shared<Standstill>(parts, Standstill::Shell::kStops);
  const HeldOperation held = HeldFor(parts, open);
  parts.questions.push_back(std::move(open));
  parts.tracker.Hold(step);
  if (parts.guest != nullptr) parts.guest->OnSafeguard(held);
}

}  // namespace

std::vector<HeldOperation> HeldOperations(const Session::Parts& parts) {
  std::vector<HeldOperation> held;
  for (const OpenQuestion& open : parts.questions) held.push_back(HeldFor(parts, open));
  return held;
}

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
    TakeUp(parts, std::move(*asked));
  }
  const Instant now = parts.clock.Now();
  while (true) {
    const auto late = std::ranges::find_if(parts.questions, [&](const OpenQuestion& open) {
      return open.deadline <= now || !IsLeft(parts, open.asked.command);
    });
    if (late == parts.questions.end()) return Ok();
    parts.log.WithStep(late->step())
        .Warn(late->deadline <= now ? "safeguard timeout: denied"
                                    : "safeguard: who waited is gone; denied");
    TRY(AnswerQuestion(parts, std::string(late->id), undo::Decision::kDeny));
  }
}

Status AnswerQuestion(Session::Parts& parts, const std::string& id, undo::Decision decision) {
  const auto found = std::ranges::find(parts.questions, id, &OpenQuestion::id);
  if (found == parts.questions.end())
    return Error(Code::kNotFound,
                 fmt::format("nothing is held under the name {}: it was answered, or its time is "
                             "over",
                             id));
  const SafeguardKey key = found->asked.key;
  const StepId step = found->step();
  parts.questions.erase(found);
  Status ended;
  if (decision == undo::Decision::kDeny)
    ended = EndAllProcesses(parts);
  else if (parts.questions.empty())
    parts.hold.reset();
  if (parts.guest != nullptr) parts.guest->OnSafeguardSettled(id, decision);
  parts.tracker.LetGo(step);
  // Unanswered, the bridge denies it by itself, later.
  TRY(ended);
  return parts.bridge->AnswerQuestion({key, decision});
}

void DenyQuestionsOfStep(Session::Parts& parts, StepId step) {
  DenyQuestions(parts, [&](const OpenQuestion& open) { return open.step() == step; });
}

void DenyQuestionsOfCommand(Session::Parts& parts, StepId command) {
  DenyQuestions(parts, [&](const OpenQuestion& open) { return open.asked.command == command; });
}

void DenyAllQuestions(Session::Parts& parts) {
  DenyQuestions(parts, [](const OpenQuestion&) { return true; });
}

}  // namespace sandglass::session
