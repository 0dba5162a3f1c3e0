// StepBoundaries: when steps open and close. A step opens before its command is sent, and closes after the command has ended and
// its writes have come to rest; writes outside any step make an ambient one.
//
// A command's end is told by the shim, which is not trusted; it only starts the wait. The step then closes
// - at once, if nothing is in flight and the host itself knows that no process of its commands lives;
// - else after `idle` without an operation (late writes belong to the step and start that time anew);
// - else, whatever is still in flight, after `longest_wait`;
// - else when the next command begins;
// - but never while an operation of it is held: somebody was asked whether it may happen, and the answer concerns the whole step.
// Commands that overlap form one step, named after the first.
//
// Pure: operations and commands come in as calls, changes come out of TakeChanges() in order, and the owner calls Tick() when
// Deadline() is reached. Time comes from the clock, which should not jump. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace sandglass::control {

struct BoundaryTimes {
  std::chrono::milliseconds idle{100};
  std::chrono::milliseconds longest_wait{2'000};
  std::chrono::milliseconds ambient_idle{5'000};
  std::chrono::milliseconds ambient_longest{60'000};
};

// What the host itself knows about the processes of a command; the shim has no say.
enum class Processes : uint8_t { kUnknown, kAlive, kGone };

enum class StepEdge : uint8_t { kOpened, kClosed };
enum class CloseCause : uint8_t {
  kQuiet,        // nothing in flight, and idle long enough or no process left
  kLongestWait,  // something never came to rest
  kNextCommand,
};
struct StepChange {
  StepId id;  // negative: ambient
  StepEdge edge = StepEdge::kOpened;
  CloseCause cause = CloseCause::kQuiet;  // of kClosed
  friend bool operator==(const StepChange&, const StepChange&) = default;
};

class StepBoundaries {
 public:
  // `first_ambient`: the id of the next ambient step, below zero; the ones after it count down.
  StepBoundaries(const Clock& clock, BoundaryTimes times, StepId first_ambient = {-1});

  // A command is about to be sent; its step is open when this returns, and which one it is.
  StepId CommandBegins(StepId command);
  // It has ended, as far as anyone tells. Unknown commands are none of ours and ignored, here and below.
  void CommandEnds(StepId command);
  void SetProcesses(StepId command, Processes processes);

  // A change to a project begins; to which step it belongs. It is in flight until OperationEnds with the same id.
  StepId OperationBegins();
  void OperationEnds(StepId step);

  // An operation of the step waits for somebody's answer; each Hold needs its LetGo. The wait starts anew when the last one goes.
  void Hold(StepId step);
  void LetGo(StepId step);

  void Tick();
  // When to call Tick() next; none: only after another call.
  std::optional<Instant> Deadline() const;

  std::optional<StepId> open_step() const;
  std::vector<StepChange> TakeChanges();

 private:
  struct Member {
    bool running = true;
    Processes processes = Processes::kUnknown;
  };
  struct Open {
    StepId id;
    Instant opened;
    Instant last_activity;
    std::map<StepId, Member> commands;
    size_t in_flight = 0;
    size_t held = 0;
    std::optional<Instant> waiting_since;  // the last command has ended
    bool ambient() const { return id.value < 0; }
  };

  void OpenStep(StepId id);
  void Close(CloseCause cause);
  void CloseIfDue();
  bool Resting() const;  // nothing can write to it any more, as far as the host knows
  Instant QuietAt() const;
  std::optional<Instant> LatestEnd() const;

  const Clock& clock_;
  BoundaryTimes times_;
  StepId next_ambient_;
  std::optional<Open> open_;
  std::vector<StepChange> changes_;
};

}  // namespace sandglass::control
