// Safeguards: counts what a step destroys and says when somebody must be asked first.
//
// SafeguardTracker decides, without I/O or waiting; whoever calls it asks, holding nothing, and tells it the answer.
// WaitingSafeguard is the usual handler: it announces a question and waits for an answer from another thread, or for the timeout.
// Thread-safe.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/thread_annotations.h"
#include "undo/types.h"

namespace sandglass::undo {

class SafeguardTracker {
 public:
  explicit SafeguardTracker(const SafeguardConfig& config) : config_(config) {}

  // A new step: counts and allowances start over.
  void Reset(StepId step);

  // One more deletion, rename over something, overwrite or truncation of `size` bytes is about to happen. A question: ask before.
  std::optional<SafeguardQuestion> OnDelete(std::string_view path);
  std::optional<SafeguardQuestion> OnRenameOver(std::string_view path);
  std::optional<SafeguardQuestion> OnOverwrite(std::string_view path, uint64_t size);
  std::optional<SafeguardQuestion> OnTruncate(std::string_view path, uint64_t size);
  std::optional<SafeguardQuestion> OnUndoLimit(std::string_view path, uint64_t copied);
  // Kinds that were allowed are not asked about again in this step.
  void Allow(SafeguardKind kind);
  bool IsAllowed(SafeguardKind kind) const;
  // The operation went ahead.
  void CountDelete(std::string_view path);
  void CountRenameOver(std::string_view path);

 private:
  static constexpr size_t kKinds = 5;
  std::optional<SafeguardQuestion> Ask(SafeguardKind kind, uint64_t amount, std::string_view path)
      REQUIRES(mutex_);
  void Remember(std::vector<std::string>& sample, std::string_view path) REQUIRES(mutex_);

  SafeguardConfig config_;
  mutable Mutex mutex_;
  StepId step_ GUARDED_BY(mutex_){};
  std::array<bool, kKinds> allowed_ GUARDED_BY(mutex_){};
  uint32_t deletes_ GUARDED_BY(mutex_) = 0;
  uint32_t renames_ GUARDED_BY(mutex_) = 0;
  std::vector<std::string> deleted_ GUARDED_BY(mutex_), renamed_ GUARDED_BY(mutex_);
  uint64_t next_question_ GUARDED_BY(mutex_) = 1;
};

class WaitingSafeguard final : public SafeguardHandler {
 public:
  using Announce = std::function<void(const SafeguardQuestion&)>;
  // `announce` is called on the asking thread, with no lock held.
  WaitingSafeguard(std::chrono::milliseconds timeout, Announce announce)
      : timeout_(timeout), announce_(std::move(announce)) {}

  Decision Decide(const SafeguardQuestion& question) override;
  // False: nobody waits for that answer (any more).
  bool Answer(uint64_t question_id, Decision decision);

 private:
  const std::chrono::milliseconds timeout_;
  const Announce announce_;
  Mutex mutex_;
  CondVar answered_;
  std::unordered_map<uint64_t, std::optional<Decision>> open_ GUARDED_BY(mutex_);
};

}  // namespace sandglass::undo
