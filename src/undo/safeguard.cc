#include "undo/safeguard.h"

namespace sandglass::undo {
namespace {

constexpr size_t kMaxSample = 20;

}  // namespace

void SafeguardTracker::Reset(StepId step) {
  MutexLock lock(mutex_);
  step_ = step;
  allowed_.fill(false);
  deletes_ = renames_ = 0;
  deleted_.clear();
  renamed_.clear();
}

void SafeguardTracker::Remember(std::vector<std::string>& sample, std::string_view path) {
  if (sample.size() < kMaxSample - 1) sample.emplace_back(path);
}

std::optional<SafeguardQuestion> SafeguardTracker::Ask(SafeguardKind kind, uint64_t amount,
                                                       std::string_view path) {
  if (allowed_[static_cast<size_t>(kind)]) return std::nullopt;
  SafeguardQuestion question{
      .id = next_question_++, .kind = kind, .step = step_, .amount = amount, .sample_paths = {}};
  if (kind == SafeguardKind::kDeleteCount) question.sample_paths = deleted_;
  if (kind == SafeguardKind::kRenameOver) question.sample_paths = renamed_;
  question.sample_paths.emplace_back(path);
  return question;
}

std::optional<SafeguardQuestion> SafeguardTracker::OnDelete(std::string_view path) {
  MutexLock lock(mutex_);
  if (!config_.delete_count || deletes_ + 1 < *config_.delete_count) return std::nullopt;
  return Ask(SafeguardKind::kDeleteCount, deletes_ + 1, path);
}

std::optional<SafeguardQuestion> SafeguardTracker::OnRenameOver(std::string_view path) {
  MutexLock lock(mutex_);
  if (!config_.rename_over_count || renames_ + 1 < *config_.rename_over_count) return std::nullopt;
  return Ask(SafeguardKind::kRenameOver, renames_ + 1, path);
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

void SafeguardTracker::Allow(SafeguardKind kind) {
  MutexLock lock(mutex_);
  allowed_[static_cast<size_t>(kind)] = true;
}

bool SafeguardTracker::IsAllowed(SafeguardKind kind) const {
  MutexLock lock(mutex_);
  return allowed_[static_cast<size_t>(kind)];
}

void SafeguardTracker::CountDelete(std::string_view path) {
  MutexLock lock(mutex_);
  ++deletes_;
  Remember(deleted_, path);
}

void SafeguardTracker::CountRenameOver(std::string_view path) {
  MutexLock lock(mutex_);
  ++renames_;
  Remember(renamed_, path);
}

Decision WaitingSafeguard::Decide(const SafeguardQuestion& question) {
  {
    MutexLock lock(mutex_);
    open_.emplace(question.id, std::nullopt);
  }
  announce_(question);
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
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
