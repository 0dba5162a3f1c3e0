// LoopGuest: somebody who shares the one thread of a session, because a session wants the thread to itself: while a command runs or
// the session is idle, its loop also waits for the guest's descriptors and lets the guest work. The guest never blocks in there.
#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "session/held_requests.h"

namespace sandglass::session {

class LoopGuest {
 public:
  virtual ~LoopGuest() = default;
  // What to wait for.
  virtual void AddTo(std::vector<pollfd>& fds) const = 0;
  // When to call Work() even if nothing is ready; by SteadyClock.
  virtual std::optional<Instant> Deadline() const = 0;
  // Called in every turn of the loop. May call the session's Ask(), CancelCommand() and the like; must not start, end or run anything.
  virtual void Work() = 0;
  // A step is held until Session::AnswerSafeguard, or until its time is over.
  virtual void OnSafeguard(const HeldOperation& /*held*/) {}
  virtual void OnSafeguardSettled(const std::string& /*id*/, undo::Decision /*decision*/) {}
  // An idle session is to return from Idle().
  virtual bool wants_out() const = 0;
};

}  // namespace sandglass::session
