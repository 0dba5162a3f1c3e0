// ProgressBar: how far an undo or redo is, on a terminal, in one line that is rewritten and in the end removed. What takes less than
// 300 ms shows none. One thread.
#pragma once

#include "base/clock.h"
#include "session/rewind_request.h"

namespace sandglass::cli {

// One line without its end: "[#####---------------]  25 %  50 of 200 paths".
std::string ProgressText(const undo::RewindProgress& progress);

class ProgressBar {
 public:
  // A negative descriptor: nothing is ever shown.
  explicit ProgressBar(int terminal) : terminal_(terminal), started_(clock_.Now()) {}
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar() { Clear(); }

  // For whoever makes the progress; empty if nothing is ever shown. Must not outlive the bar.
  session::TellProgress teller();
  void Clear();

 private:
  void Show(const undo::RewindProgress& progress);

  const int terminal_;
  const SteadyClock clock_;
  const Instant started_;
  Instant shown_{};
  bool visible_ = false;
};

}  // namespace sandglass::cli
