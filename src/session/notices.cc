#include "session/notices.h"

#include <fmt/format.h>

#include <utility>

namespace sandglass::session {
namespace {

constexpr size_t kMaxNotices = 100;  // nobody reads more

}  // namespace

void Notices::OnEvicted(const std::vector<StepId>& steps) {
  if (steps.empty()) return;
  Add(fmt::format(
      "{} of the oldest steps, up to step {}, cannot be undone any more: the undo store has reached "
      "its limits (max_step_count, max_log_size_bytes and max_retained_bytes of [undo])",
      steps.size(), steps.back().value));
}

void Notices::OnUnprotected(StepId step, std::string_view why) {
  Add(fmt::format("step {} is not recorded in full: {}", step.value, why));
  MutexLock lock(mutex_);
  unprotected_.insert(step);
}

bool Notices::TakeUnprotected(StepId step) {
  MutexLock lock(mutex_);
  const bool was = unprotected_.contains(step);
  unprotected_.clear();
  return was;
}

std::vector<std::string> Notices::Take() {
  MutexLock lock(mutex_);
  return std::exchange(texts_, {});
}

void Notices::Add(std::string text) {
  MutexLock lock(mutex_);
  if (texts_.size() < kMaxNotices) texts_.push_back(std::move(text));
}

}  // namespace sandglass::session
