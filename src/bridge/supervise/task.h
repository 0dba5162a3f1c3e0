// Task: the thread that made a supervised call, as far as the supervisor must know it: memory, descriptors, directories and identity.
//
// What is read here belongs to the caller only if Listener::IsWaiting() says so afterwards: before, the number may be another's.
// Tasks are shared between workers and immutable but for their refreshed status. Thread-safe.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/fd.h"
#include "base/result.h"
#include "base/thread_annotations.h"
#include "bridge/supervise/decode.h"

namespace sandglass::bridge {

class Task {
 public:
  // kNotFound: there is no such task.
  static Result<std::shared_ptr<Task>> Open(pid_t tid);
  Task(pid_t tid, Fd pidfd, Fd proc, TaskStatus status)
      : tid_(tid), pidfd_(std::move(pidfd)), proc_(std::move(proc)), status_(std::move(status)) {}

  pid_t tid() const { return tid_; }
  bool IsAlive() const;
  TaskStatus status() const EXCLUDES(mutex_);
  Status Refresh() EXCLUDES(mutex_);
  void SetUmask(mode_t mask) EXCLUDES(mutex_);

  // A string with its end. Errors: EFAULT, ENAMETOOLONG (no end within PATH_MAX), EPERM (the program may not be read).
  Result<std::string> ReadText(uint64_t address) const;
  Result<Bytes> ReadBytes(uint64_t address, size_t size) const;
  Status WriteBytes(uint64_t address, ByteView bytes) const;

  // Our own copy: close it before the task is answered.
  Result<Fd> CopyFd(int fd) const;
  Result<Fd> OpenWorkingDir() const;
  // Without opening it: most calls start in a folder that is known.
  Result<struct statx> StatWorkingDir(unsigned mask) const;
  Result<Fd> OpenRootDir() const;
  std::optional<uint64_t> FileSizeLimit() const;
  void Signal(int signal) const;

 private:
  const pid_t tid_;
  const Fd pidfd_;
  const Fd proc_;  // its folder in /proc
  mutable Mutex mutex_;
  TaskStatus status_ GUARDED_BY(mutex_);
};

// Tasks seen before: reading an identity costs as much as a whole call. The calls that change one are supervised too, and tell.
class TaskCache {
 public:
  // Perhaps an earlier task that had the number: it is this one if it is alive, which whatever goes through its descriptors or its
  // folders proves by succeeding. What does neither must ask.
  Result<std::shared_ptr<Task>> Get(pid_t tid) EXCLUDES(mutex_);
  // The task is about to change its identity: read it again next time.
  void Forget(pid_t tid) EXCLUDES(mutex_);
  // Gives back the descriptors of all that no call needs.
  void ForgetAll() EXCLUDES(mutex_);
  // The task is about to change its umask. Threads share it, so with more than one nothing is remembered any more.
  void NoteUmask(Task& task, mode_t mask) EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::unordered_map<pid_t, std::shared_ptr<Task>> tasks_ GUARDED_BY(mutex_);
  std::unordered_set<pid_t> uncached_processes_ GUARDED_BY(mutex_);
};

// May the caller do with names and content of files all that we may? An ordinary user's bridge has that user's rights; root's has
// more, but what it has more does not matter for these, if the caller has root's usual rights over files.
bool HasOurRights(const TaskStatus& caller);

// While it lives, this thread has the caller's umask (and may keep it until the next one) and, where we are root, its identity and no more of its capabilities for
// files than it has. The thread must not share its umask with others (unshare(CLONE_FS)).
class ActAs {
 public:
  // Switching costs more than most operations, so each says how much of it matters.
  enum class For : uint8_t {
    kChange,
    kCreate,  // whoever has our rights needs no switch
    kNames,   // the same, and the umask does not matter: removing, renaming, opening what is there
    kAttributes,  // the same of mode, owner and times
    kLookup,      // the same, and it is enough to be allowed everywhere
    kRealUser,    // access() judges by the real user
  };
  explicit ActAs(const TaskStatus& caller, For purpose = For::kChange);
  ~ActAs();
  ActAs(const ActAs&) = delete;
  ActAs& operator=(const ActAs&) = delete;

 private:
  bool takes_from_owners_ = false;  // its umask does
  bool switched_ = false;
  bool regroup_ = false;
  uint64_t effective_ = 0;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  std::vector<gid_t> groups_;
};

}  // namespace sandglass::bridge
