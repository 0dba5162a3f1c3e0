// Safeguards: counts what a step destroys and says when somebody must be asked first.
//
// SafeguardTracker decides; whoever calls it asks, holding nothing, and tells it the answer. What is under way counts as if it had
// happened, so that many threads together cross no threshold unasked, and all of them wait for the one answer.
// WaitingSafeguard is the usual handler: it announces a question and waits for an answer from another thread, or for the timeout.
// Thread-safe.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/thread_annotations.h"
#include "undo/types.h"

namespace sandglass::undo {

class SafeguardTracker {
 public:
  explicit SafeguardTracker(const SafeguardConfig& config) : config_(config) {}

  // A new step: counts and allowances start over.
  void Reset(StepId step);

  // One operation that counts, from the decision to let it happen to its end.
  class Claim {
   public:
    Claim() = default;
    Claim(Claim&& other) noexcept { *this = std::move(other); }
    Claim& operator=(Claim&& other) noexcept;
    ~Claim() { Release(); }
    // It happened. A claim that dies without this did not.
    void Count();

   private:
    friend class SafeguardTracker;
    void Release();
    SafeguardTracker* tracker_ = nullptr;
    SafeguardKind kind_{};
    std::string path_;
  };

  // One more deletion, rename over something, overwrite or truncation of `size` bytes is about to happen. A question: ask before.
  // Otherwise the operation is claimed.
  std::optional<SafeguardQuestion> OnDelete(std::string_view path, Claim& claim) {
    return OnCounted(SafeguardKind::kDeleteCount, path, claim);
  }
  std::optional<SafeguardQuestion> OnRenameOver(std::string_view path, Claim& claim) {
    return OnCounted(SafeguardKind::kRenameOver, path, claim);
  }
  std::optional<SafeguardQuestion> OnOverwrite(std::string_view path, uint64_t size);
  std::optional<SafeguardQuestion> OnTruncate(std::string_view path, uint64_t size);
  std::optional<SafeguardQuestion> OnUndoLimit(std::string_view path, uint64_t copied);
  // Waits while another thread asks about the same kind; its answer then counts for this one too. nullopt: it is this thread's
  // turn to ask, and to call Answered. An answer holds for the rest of the step.
  std::optional<Decision> AwaitAnswer(const SafeguardQuestion& question);
  void Answered(const SafeguardQuestion& question, Decision decision);
  bool IsAllowed(SafeguardKind kind) const;

 private:
  static constexpr size_t kKinds = 5;
  struct Kind {
    uint32_t done = 0, under_way = 0;
    std::vector<std::string> sample;
    bool asking = false;
    std::optional<Decision> answer;
  };
  std::optional<SafeguardQuestion> OnCounted(SafeguardKind kind, std::string_view path,
                                             Claim& claim);
  std::optional<SafeguardQuestion> Ask(SafeguardKind kind, uint64_t amount, std::string_view path)
      REQUIRES(mutex_);
  Kind& Of(SafeguardKind kind) REQUIRES(mutex_) { return kinds_[static_cast<size_t>(kind)]; }
  void End(const Claim& claim, bool happened);

  SafeguardConfig config_;
  mutable Mutex mutex_;
  CondVar answered_;
  StepId step_ GUARDED_BY(mutex_){};
  std::array<Kind, kKinds> kinds_ GUARDED_BY(mutex_);
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
