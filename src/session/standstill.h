// Standstill: while it lives, no process of a world's commands runs. For the moment in which a step begins or ends or is taken back:
// what a process writes to a file that it has open goes unseen, and between two looks at such a file it would pass for the edit of
// somebody else.
//
// A process of our own stops them by ptrace, as whoever built the world may. That is not seen by their parents, needs no control
// group, and ends by itself if we are killed: they go on as soon as that process is gone. Whom a stopped process was about to start is
// born stopped. Who waits in a call that the bridge holds counts as stopped, because it is before it runs again. Who cannot be stopped
// in time is waited for no longer, and the log has a warning: another process of the world traces it, say. Blocks, about a second at
// most; one thread.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/fd.h"
#include "session/parts.h"

namespace sandglass::session {

class Standstill {
 public:
  enum class Shell : uint8_t {
    kWaits,  // for our answer, so it is not stopped
    kStops,
  };
  // Costs nothing where no command has a process left.
  explicit Standstill(const Session::Parts& parts, Shell shell = Shell::kWaits);
  ~Standstill();
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;

 private:
  pid_t tracer_ = -1;  // none: there was nobody to stop
  Fd end_;             // closed, the tracer goes
};

// Without the shim and the keepers; with what is left of a command that killed its keeper. In the order of their numbers.
std::vector<pid_t> ProcessesOfCommands(pid_t shim);

}  // namespace sandglass::session
