// Supervisor: performs the supervised calls of a world's commands on the projects, through the interceptor.
//
// Each command has its own listener, and so its own workers: whose call it was needs no trust. One of them waits for the next call;
// when that is held up (content is copied, a folder is renamed), another one takes its place, so it keeps nobody else waiting for
// long. While a safeguard asks somebody, all calls are to wait: they are parked, which takes no worker (parking.h). Workers are threads with an identity, umask and working directory of their own.
// The supervisor must live outside of the world's pid and user namespaces. Thread-safe.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/thread_annotations.h"
#include "bridge/supervise/parking.h"
#include "undo/interceptor.h"

namespace sandglass::bridge {

struct Shared;
class WorldView;
class SupervisedCommand;
struct SupervisedState;

struct ProjectSpec {
  std::string path;  // absolute and without symlinks; the world has it read-only at the same path
  undo::Interceptor* interceptor;
};

// When a command gets its workers. Once called: whoever asked for that waits until SupervisedCommand::unserved() is ready and calls
// Serve(). Most commands that change nothing make no call, and need none.
enum class Serving : uint8_t { kAtOnce, kOnceCalled };

class Supervisor {
 public:
  static Result<std::unique_ptr<Supervisor>> Create(const std::vector<ProjectSpec>& projects,
                                                    size_t max_parked_calls = kMaxParkedCalls);
  ~Supervisor();

  // Serves the filter of one command until none of its processes is left, and must outlive it. `pid` is any process of its world,
  // as it is mounted for good, and stays its number while a process of the command is left.
  Result<std::unique_ptr<SupervisedCommand>> Supervise(Fd listener, pid_t pid,
                                                       Serving serving = Serving::kAtOnce);
  // Called before each supervised call is looked at, on its worker; may block. An error: the call fails with EIO. To be set before a
  // command is supervised.
  void SetBeforeCall(std::function<Status()> before_call);

  // From here to EndHold() no call is looked at that comes meanwhile: it is parked, and performed afterwards. Beyond the most that may be
  // parked, calls fail with ENOSPC. Holds may overlap; any thread, also a worker.
  void BeginHold();
  void EndHold() EXCLUDES(commands_mutex_);
  size_t parked_calls() const;

  // Objects of a project (by its place in the list given to Create) that a process may still write to. Valid until the next call.
  std::vector<undo::ObjectRef> LiveWriters(size_t project);
  // Is the object one of them? Asked beside anything else: the answer may be a moment old.
  bool IsLiveWriter(size_t project, uint64_t device, uint64_t inode) const;
  // No process of any command is left.
  void ForgetWriters();
  // What undo did not let commands do since this was asked last: why the first was refused, and how many more there were. nullopt:
  // nothing.
  std::optional<Error> TakeRefusals();

 private:
  explicit Supervisor(size_t max_parked_calls);
  Result<std::shared_ptr<const WorldView>> ViewOf(pid_t pid) EXCLUDES(last_view_mutex_);

  std::unique_ptr<Shared> shared_;
  Mutex commands_mutex_;
  std::vector<std::weak_ptr<SupervisedState>> commands_ GUARDED_BY(commands_mutex_);
  Mutex last_view_mutex_;
  // One world has many commands. Owners: this and all commands of the world.
  std::shared_ptr<const WorldView> last_view_ GUARDED_BY(last_view_mutex_);
};

// A command under supervision. Destroying it waits for its processes to end.
class SupervisedCommand {
 public:
  using State = SupervisedState;
  explicit SupervisedCommand(std::shared_ptr<State> state);
  SupervisedCommand(const SupervisedCommand&) = delete;
  SupervisedCommand& operator=(const SupervisedCommand&) = delete;
  ~SupervisedCommand();

  // What to wait for while it has no workers: ready when they are needed, or never will be. -1: there is nothing to wait for.
  int unserved() const;
  // If it is ready: serves its calls from then on. A call may have been withdrawn meanwhile, so it does not wait for one. An error:
  // the world cannot be looked at, or there is no thread to be had, and they wait as before. One thread at a time, also with Wait().
  Status Serve();
  // Until the last process of the command is gone and its calls are done.
  void Wait();
  // Does the calling thread serve its calls?
  bool IsServedHere() const;
  // How many calls were answered, for measurements.
  uint64_t calls() const;

 private:
  std::shared_ptr<State> state_;  // owners: this and the workers
};

}  // namespace sandglass::bridge
