#include "session/asking_safeguards.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/frames.h"

namespace sandglass::session {

using undo::Decision;

AskingSafeguards::AskingSafeguards(int socket, size_t projects, std::chrono::milliseconds timeout,
                                   Hooks hooks)
    : socket_(socket), timeout_(timeout), hooks_(std::move(hooks)) {
  for (uint32_t i = 0; i < projects; ++i) handlers_.push_back(std::make_unique<Handler>(*this, i));
  reader_ = std::thread([this] { ReadAnswers(); });
}

AskingSafeguards::~AskingSafeguards() {
  ::shutdown(socket_, SHUT_RDWR);
  reader_.join();
}

Decision AskingSafeguards::Decide(const SafeguardKey& key,
                                  const undo::SafeguardQuestion& question) {
  // A restore, or a file that a program writes: whoever asked for it by name waits for it, and has confirmed it by that.
  if (std::this_thread::get_id() == server_) return Decision::kAllow;
  const StepId command = hooks_.who();
  std::optional<Decision> decision = Begin(key, {question.step, command, {}});
  if (!decision) {
    hooks_.begin_hold();
    Send({key, command, question});
    decision = Await(key);
    hooks_.end_hold();
  }
  if (decision == Decision::kDeny) hooks_.denied(question);
  return *decision;
}

std::optional<Decision> AskingSafeguards::Begin(const SafeguardKey& key, const Open& open) {
  MutexLock lock(mutex_);
  const bool nobody_waits = open.command.value == 0 || open.command == leaving_;
  if (!deny_all_ && !nobody_waits && closing_ != open.step) {
    open_.insert_or_assign(key, open);
    return std::nullopt;
  }
  if (open.step.value > 0) denied_.insert(open.step);
  return Decision::kDeny;
}

// It is noted under the lock that ends the question: who finds none open finds the denial.
Decision AskingSafeguards::Await(const SafeguardKey& key) {
  const auto deadline = SteadyDeadline(timeout_);
  MutexLock lock(mutex_);
  while (!open_[key].answer) {
    if (!answered_.WaitUntil(mutex_, deadline)) break;
  }
  const Open settled = open_[key];
  open_.erase(key);
  const Decision decision = settled.answer.value_or(Decision::kDeny);
  if (decision == Decision::kDeny && settled.step.value > 0) denied_.insert(settled.step);
  return decision;
}

void AskingSafeguards::BeginStep(StepId step) {
  MutexLock lock(mutex_);
  closing_.reset();
  denied_.erase(step);
}

bool AskingSafeguards::BeginClose(StepId step) {
  MutexLock lock(mutex_);
  const bool is_held =
      std::ranges::any_of(open_, [&](const auto& one) { return one.second.step == step; });
  if (!is_held) closing_ = step;
  return !is_held;
}

bool AskingSafeguards::TakeDenied(StepId step) {
  MutexLock lock(mutex_);
  return denied_.erase(step) > 0;
}

void AskingSafeguards::DenyCommand(StepId command) {
  MutexLock lock(mutex_);
  leaving_ = command;
  for (auto& [key, open] : open_) {
    if (open.command == command && !open.answer) open.answer = Decision::kDeny;
  }
  answered_.NotifyAll();
}

void AskingSafeguards::DenyAll() {
  MutexLock lock(mutex_);
  deny_all_ = true;
  for (auto& [key, open] : open_) {
    if (!open.answer) open.answer = Decision::kDeny;
  }
  answered_.NotifyAll();
}

// Where that fails nobody answers, and no answer is a denial.
void AskingSafeguards::Send(const SafeguardAsked& asked) {
  MutexLock lock(sending_);
  (void)SendFrame(socket_, Encode(asked));
}

void AskingSafeguards::ReadAnswers() {
  while (true) {
    const auto frame = ReceiveFrame(socket_, kMaxQuestionBytes);
    if (!frame.ok()) return;
    const auto answered = DecodeSafeguardAnswered(frame->bytes);
    if (!answered.ok()) continue;
    MutexLock lock(mutex_);
    const auto open = open_.find(answered->key);
    if (open == open_.end() || open->second.answer) continue;
    open->second.answer = answered->decision;
    answered_.NotifyAll();
  }
}

}  // namespace sandglass::session
