#include "undo/safeguard.h"

namespace sandglass::undo {
namespace {

constexpr size_t kMaxSample = 20;

}  // namespace

SafeguardTracker::Claim& SafeguardTracker::Claim::operator=(Claim&& other) noexcept {
  if (this != &other) {
    Release();
    tracker_ = std::exchange(other.tracker_, nullptr);
    kind_ = other.kind_;
    path_ = std::move(other.path_);
  }
  return *this;
}

void SafeguardTracker::Claim::Count() {
  if (SafeguardTracker* tracker = std::exchange(tracker_, nullptr)) tracker->End(*this, true);
}

void SafeguardTracker::Claim::Release() {
  if (SafeguardTracker* tracker = std::exchange(tracker_, nullptr)) tracker->End(*this, false);
}

void SafeguardTracker::End(const Claim& claim, bool happened) {
  MutexLock lock(mutex_);
  Kind& kind = Of(claim.kind_);
  --kind.under_way;
  if (!happened) return;
  ++kind.done;
  if (kind.sample.size() < kMaxSample - 1) kind.sample.push_back(claim.path_);
}

void SafeguardTracker::Reset(StepId step) {
  MutexLock lock(mutex_);
  step_ = step;
  kinds_ = {};
  answered_.NotifyAll();  // nobody will answer questions about the step before
}

std::optional<SafeguardQuestion> SafeguardTracker::Ask(SafeguardKind kind, uint64_t amount,
                                                       std::string_view path) {
  if (Of(kind).answer == Decision::kAllow) return std::nullopt;
  SafeguardQuestion question{.id = next_question_++,
                             .kind = kind,
                             .step = step_,
                             .amount = amount,
                             .sample_paths = Of(kind).sample};
  question.sample_paths.emplace_back(path);
  return question;
}

std::optional<SafeguardQuestion> SafeguardTracker::OnCounted(SafeguardKind kind,
                                                             std::string_view path, Claim& claim) {
  const auto& threshold =
      kind == SafeguardKind::kDeleteCount ? config_.delete_count : config_.rename_over_count;
  if (!threshold) return std::nullopt;
  MutexLock lock(mutex_);
  Kind& counts = Of(kind);
  const uint32_t amount = counts.done + counts.under_way + 1;
  if (amount >= *threshold) {
    if (auto question = Ask(kind, amount, path)) return question;
  }
  ++counts.under_way;
  claim.tracker_ = this;
  claim.kind_ = kind;
  claim.path_ = path;
  return std::nullopt;
}

std::optional<SafeguardQuestion> SafeguardTracker::OnOverwrite(std::string_view path,
                                                               uint64_t size) {
  MutexLock lock(mutex_);
  if (!config_.overwrite_bytes || size < *config_.overwrite_bytes) return std::nullopt;
  return Ask(SafeguardKind::kOverwriteLarge, size, path);
}

std::optional<SafeguardQuestion> SafeguardTracker::OnTruncate(std::string_view path,
                                                              uint64_t size) {
  MutexLock lock(mutex_);
  if (!config_.truncate_bytes || size < *config_.truncate_bytes) return std::nullopt;
  return Ask(SafeguardKind::kTruncateLarge, size, path);
}

std::optional<SafeguardQuestion> SafeguardTracker::OnUndoLimit(std::string_view path,
                                                               uint64_t copied) {
  MutexLock lock(mutex_);
  return Ask(SafeguardKind::kUndoLimit, copied, path);
}

std::optional<Decision> SafeguardTracker::AwaitAnswer(const SafeguardQuestion& question) {
  MutexLock lock(mutex_);
  Kind& kind = Of(question.kind);
  while (step_ == question.step && kind.asking) answered_.Wait(mutex_);
  if (step_ != question.step) return Decision::kDeny;  // too late to ask
  if (!kind.answer) kind.asking = true;
  return kind.answer;
}

void SafeguardTracker::Answered(const SafeguardQuestion& question, Decision decision) {
  MutexLock lock(mutex_);
  if (step_ != question.step) return;
  Of(question.kind).asking = false;
  Of(question.kind).answer = decision;
  answered_.NotifyAll();
}

bool SafeguardTracker::IsAllowed(SafeguardKind kind) const {
  MutexLock lock(mutex_);
  return kinds_[static_cast<size_t>(kind)].answer == Decision::kAllow;
}

Decision WaitingSafeguard::Decide(const SafeguardQuestion& question) {
  {
    MutexLock lock(mutex_);
    open_.emplace(question.id, std::nullopt);
  }
  announce_(question);
  const auto deadline = SteadyDeadline(timeout_);
  MutexLock lock(mutex_);
  while (!open_[question.id]) {
    if (!answered_.WaitUntil(mutex_, deadline)) break;
  }
  const auto answer = open_[question.id];
  open_.erase(question.id);
  return answer.value_or(Decision::kDeny);
}

bool WaitingSafeguard::Answer(uint64_t question_id, Decision decision) {
  MutexLock lock(mutex_);
  auto found = open_.find(question_id);
  if (found == open_.end() || found->second) return false;
  found->second = decision;
  answered_.NotifyAll();
  return true;
}

}  // namespace sandglass::undo
