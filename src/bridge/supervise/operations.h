// What the supervisor does for each call: one function per handler of the table. A function resolves what the call names, asks
// the interceptor, performs the operation with the caller's identity and says what to answer. Any worker thread.
#pragma once

#include <linux/seccomp.h>

#include <compare>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "base/thread_annotations.h"
#include "bridge/supervise/listener.h"
#include "bridge/supervise/live_writers.h"
#include "bridge/supervise/parking.h"
#include "bridge/supervise/resolve.h"
#include "bridge/supervise/syscall_table.h"
#include "bridge/supervise/task.h"

namespace sandglass::bridge {

struct Answer {
  enum class Kind : uint8_t {
    kContinue,  // not ours: let the kernel do it in the task's own view
    kReturn,
    kFail,
    kHandOver,
    kGone,  // the task does not wait any more
  } kind = Kind::kContinue;
  int64_t value = 0;  // kFail: the errno
  Fd fd = {};
  uint32_t fd_flags = 0;

  static Answer Continue() { return {}; }
  static Answer Gone() { return {.kind = Kind::kGone}; }
  static Answer Return(int64_t value) { return {.kind = Kind::kReturn, .value = value}; }
  static Answer Fail(int sys_errno) { return {.kind = Kind::kFail, .value = sys_errno}; }
};

// AF_UNIX sockets that the world itself made in a project: others belong to the host and are out of reach. Thread-safe.
class BoundSockets {
 public:
  // With its birth: the number of a socket that is gone may be that of one of the host later.
  struct Key {
    uint64_t device = 0, inode = 0;
    int64_t born_s = 0;
    uint32_t born_ns = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  void Add(const Key& socket) {
    MutexLock lock(mutex_);
    sockets_.insert(socket);
  }
  bool Has(const Key& socket) const {
    MutexLock lock(mutex_);
    return sockets_.contains(socket);
  }

 private:
  mutable Mutex mutex_;
  std::set<Key> sockets_ GUARDED_BY(mutex_);
};

// Changes that undo itself did not allow, in its own words: a command only sees an errno, which says something else. Thread-safe.
class Refusals {
 public:
  void Note(const Error& error) {
    MutexLock lock(mutex_);
    if (first_)
      ++more_;
    else
      first_ = error;
  }
  // Since it was asked last. nullopt: none.
  std::optional<Error> Take() {
    MutexLock lock(mutex_);
    std::optional<Error> first = std::exchange(first_, std::nullopt);
    const size_t more = std::exchange(more_, 0);
    if (more == 0) return first;
    return Error(first->code(), first->message() + " (and " + std::to_string(more) + " more)");
  }

 private:
  Mutex mutex_;
  std::optional<Error> first_ GUARDED_BY(mutex_);
  size_t more_ GUARDED_BY(mutex_) = 0;
};

// What all commands of a supervisor share.
struct Shared {
  explicit Shared(size_t max_parked_calls) : parking(max_parked_calls) {}
  std::vector<std::unique_ptr<Project>> projects;
  Parking parking;
  TaskCache tasks;
  LiveWriters writers;
  Resolver resolver{projects, writers};
  BoundSockets sockets;
  Refusals refusals;
  std::function<Status()> before_call;  // as of Supervisor::SetBeforeCall()

  // What is only remembered to be faster.
  void FreeDescriptors() {
    tasks.ForgetAll();
    resolver.ForgetFolders();
  }
};

// One call on its way.
struct Call {
  Shared& shared;
  const Listener& listener;
  const SyscallRule& rule;
  uint64_t id;
  std::span<const uint64_t, 6> args;
  Task& task;
  TaskStatus status;
  const WorldView& view;
  Resolver::LastDir last_dir;

  uint64_t Arg(int index) const { return index < 0 ? 0 : args[static_cast<size_t>(index)]; }
  int IntArg(int index) const { return static_cast<int>(Arg(index)); }
  // Of what is to be done: 0 is the first.
  uint64_t Value(int index) const { return Arg(rule.value + index); }
  int Flags() const {
    return static_cast<int>(rule.fixed) | (rule.flags < 0 ? 0 : IntArg(rule.flags));
  }
  Resolver::Caller caller() const { return {task, status, view}; }
};

Answer Perform(Call& call);

}  // namespace sandglass::bridge
