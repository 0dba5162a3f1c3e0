// EmptySteps: what is still to be entered in the history of one project: steps that changed nothing.
//
// An entry is a folder and a journal, made, cut and renamed, which takes longer than a short command. So a session that goes on puts
// the entries of such steps off. Until then they stand in the file `empty_steps` of the store, one line of JSON each, so that a kill
// loses none: whoever opens the log next makes the entries. Nothing else may begin in the log before that, else the history would
// be out of order. Blocks on disk. One thread at a time.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "undo/undo_log.h"

namespace sandglass::session {

struct EmptyStep {
  StepId id;
  std::string label;
  Instant ended;
  friend bool operator==(const EmptyStep&, const EmptyStep&) = default;
};

// The system's clock, but for as long as it is told to stand still. Thread-safe.
class PastClock final : public Clock {
 public:
  Instant Now() const override;
  void StandAt(Instant past) { past_ns_ = past.ns; }
  void GoOn() { past_ns_ = kNow; }

 private:
  static constexpr int64_t kNow = INT64_MIN;
  SystemClock system_;
  std::atomic<int64_t> past_ns_ = kNow;
};

// The lines of the file; pure. What is no such line, as the last one may be after a power cut, is left out.
std::string EncodeEmptyStep(const EmptyStep& step);
std::vector<EmptyStep> DecodeEmptySteps(std::string_view text);

class EmptySteps {
 public:
  // `log` and `clock`, which is the log's, must outlive this.
  EmptySteps(std::string store, undo::UndoLog& log, PastClock& clock)
      : store_(std::move(store)), log_(log), clock_(clock) {}
  EmptySteps(EmptySteps&&) = default;
  ~EmptySteps();

  // Where the disk is full, a kill loses it.
  void PutOff(EmptyStep step);
  // Makes all entries, in order and with their times; the log has no step announced or open. What fails is given up, and the first
  // failure is told.
  Status Enter();

 private:
  Status Append(const EmptyStep& step);
  std::string path() const;

  std::string store_;
  undo::UndoLog& log_;
  PastClock& clock_;
  std::vector<EmptyStep> steps_;
  Fd file_;
};

// Makes the entries that a session which was killed had put off, with the time of now. For the owner of a log that has just been opened.
// An error: some of them are not in the history; all others are.
Status EnterLeftSteps(const std::string& store, undo::UndoLog& log);

// Of a store that is about to be discarded.
void ForgetLeftSteps(int store_dir);

inline constexpr char kEmptyStepsName[] = "empty_steps";

}  // namespace sandglass::session
