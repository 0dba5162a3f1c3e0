// Supervisor: performs the supervised calls of a world's commands on the projects, through the interceptor.
//
// Each command has its own listener, and so its own workers: whose call it was needs no trust. One of them waits for the next call;
// when that is held up (a safeguard asks somebody, a folder is renamed), another one takes its place, so a held operation never
// keeps others waiting for long. Workers are threads with an identity, umask and working directory of their own.
// The supervisor must live outside of the world's pid and user namespaces. Thread-safe.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/thread_annotations.h"
#include "undo/interceptor.h"

namespace sandglass::bridge {

struct Shared;
class WorldView;
class SupervisedCommand;

struct ProjectSpec {
  std::string path;  // absolute and without symlinks; the world has it read-only at the same path
  undo::Interceptor* interceptor;
};

class Supervisor {
 public:
  static Result<std::unique_ptr<Supervisor>> Create(const std::vector<ProjectSpec>& projects);
  ~Supervisor();

  // Serves the filter of one command until none of its processes is left. `pid` is any process of its world, as it is mounted
  // for good.
  Result<std::unique_ptr<SupervisedCommand>> Supervise(Fd listener, pid_t pid);

  // Objects of a project (by its place in the list given to Create) that a process may still write to. Valid until the next call.
  std::vector<undo::ObjectRef> LiveWriters(size_t project);
  // No process of any command is left.
  void ForgetWriters();
  // What undo did not let commands do since this was asked last, in words; "": nothing.
  std::string TakeRefusals();

 private:
  Supervisor();
  Result<std::shared_ptr<const WorldView>> ViewOf(pid_t pid) EXCLUDES(last_view_mutex_);

  std::unique_ptr<Shared> shared_;
  Mutex last_view_mutex_;
  // One world has many commands. Owners: this and all commands of the world.
  std::shared_ptr<const WorldView> last_view_ GUARDED_BY(last_view_mutex_);
};

// A command under supervision. Destroying it waits for its processes to end.
class SupervisedCommand {
 public:
  struct State;
  explicit SupervisedCommand(std::shared_ptr<State> state);
  SupervisedCommand(const SupervisedCommand&) = delete;
  SupervisedCommand& operator=(const SupervisedCommand&) = delete;
  ~SupervisedCommand();

  // Until the last process of the command is gone and its calls are done.
  void Wait();
  // How many calls were answered, for measurements.
  uint64_t calls() const;

 private:
  std::shared_ptr<State> state_;  // owners: this and the workers
};

}  // namespace sandglass::bridge
