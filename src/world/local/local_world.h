// LocalWorld: an isolated place on this machine in which commands run, made of Linux namespaces. It sees the host's files read-only,
// the projects at their real paths, and a home, /tmp, /var/tmp and /run of its own; nothing of the host's processes, network,
// sockets and secrets. docs/world.md tells what it sees and how it is built.
//
// The first process inside is the shim. What it says is not trusted: see control/command_tracker.h. A command does not execute
// before Release(), so the host has all the time to put its supervisor in place:
//
//   host ──exec──► shim ──fork──► command: installs its filter ──listener──► ReceiveListener(), supervise, Release() ──► it executes
//
// If the host dies, the control channel closes and the world ends. One thread at a time; the descriptors may be polled by another.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "world/local/limits.h"
#include "world/local/refusal.h"
#include "world/local/spec.h"

namespace sandglass::world {

class LocalWorld {
 public:
  // Returns when the shim runs. Each failure names its containment step, and what to do where the machine is to blame: "world: mount
  // /proc: Operation not permitted; ...". kUnsupported: see refusal.h.
  static Result<std::unique_ptr<LocalWorld>> Start(const LocalWorldSpec& spec);
  // The same in two halves: Begin() returns while the first process still contains itself, and nothing but AwaitShim(),
  // init_pid() and the end may be asked for before that has returned.
  static Result<std::unique_ptr<LocalWorld>> Begin(const LocalWorldSpec& spec);
  Status AwaitShim();
  LocalWorld(const LocalWorld&) = delete;
  LocalWorld& operator=(const LocalWorld&) = delete;
  // Kills everything inside and waits.
  ~LocalWorld();

  // SOCK_STREAM: JSON Lines of docs/formats/control.md; non-blocking.
  int control_fd() const { return control_.get(); }
  // SOCK_SEQPACKET: readable when ReceiveListener has something.
  int listener_fd() const { return listeners_.get(); }

  struct CommandListener {
    StepId command;
    Fd listener;
  };
  // The next one, without waiting. kBusy: there is none. kCancelled: the world has ended. kInvalid, kExists: what came is no
  // listener of a new command, and was dropped. Which command it is for is only the shim's word.
  Result<CommandListener> ReceiveListener();
  // The command may execute now: its supervisor is in place. It gets copies of the `given` descriptors: control/shim_start.h.
  // kNotFound: no such command waits.
  Status Release(StepId command, std::span<const int> given = {});

  // Of the shim, in the host's pid namespace.
  pid_t init_pid() const { return init_pid_; }
  // Ends the shim, and with it every process inside.
  void Kill();
  // True: all are gone.
  bool Wait(std::chrono::milliseconds timeout);
  // How many processes inside the kernel has killed because the memory limit was reached.
  uint64_t OutOfMemoryKills() const { return limits_.OutOfMemoryKills(); }
  // By which means limits are enforced, and which are absent.
  const std::vector<std::string>& notes() const { return limits_.notes(); }
  // What it does not protect against because somebody has accepted that, for each report of a command.
  const std::vector<std::string>& weaknesses() const { return weaknesses_; }

 private:
  explicit LocalWorld(EnforcedLimits limits) : limits_(std::move(limits)) {}
  Status Launch(const LocalWorldSpec& spec);

  EnforcedLimits limits_;
  std::vector<std::string> weaknesses_;
  Fd control_;
  Fd listeners_;
  Fd status_;  // what the first process tells of its containment
  Fd pidfd_;
  pid_t init_pid_ = -1;
  bool gone_ = false;
  std::map<StepId, Fd> waiting_;  // commands that wait for their release
};

}  // namespace sandglass::world
