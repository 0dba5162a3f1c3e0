// Listener: the supervisor's end of one command's filter. Every method may be called by any thread.
#pragma once

#include <linux/seccomp.h>

#include <chrono>
#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace sandglass::bridge {

class Listener {
 public:
  explicit Listener(Fd fd);

  enum class Received : uint8_t { kCall, kNothing, kEnded };
  // Blocks until a task makes a supervised call. kNothing: it went away again. kEnded: no task is left, or never will be.
  Received Receive(seccomp_notif& call) const;
  // Without taking it. kNothing: no task has made one.
  Received Look() const;
  // Until Look() says something else.
  void Await() const;
  // Waits until no task is left; false: some still are.
  bool EndsWithin(std::chrono::milliseconds time) const;
  int fd() const { return fd_.get(); }
  // Does the task still wait for the answer? Whatever was read from /proc or from its memory before is its own only if so.
  bool IsWaiting(uint64_t id) const;

  // That the task is gone meanwhile is not an error of any of these.
  void Continue(uint64_t id) const;
  void Return(uint64_t id, int64_t value) const;
  void Fail(uint64_t id, int sys_errno) const;
  // Gives the task a copy of `fd` and closes ours; returns the number that it has there, which is still to be answered. Not in one
  // with the answer: the task could run while we still hold the file, and would see ETXTBSY or a lock that nobody has. Takes as
  // long as the task itself needs to take it.
  Result<int> Give(const seccomp_notif& call, Fd fd, uint32_t fd_flags) const;

 private:
  void Send(seccomp_notif_resp& answer) const;

  Fd fd_;
};

}  // namespace sandglass::bridge
