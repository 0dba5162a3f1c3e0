// Resolver: from what a task calls a path or a descriptor to a place on our own read-write mount, or to "not ours".
//
// A task names things in its own view: its root, its mounts, its working directory. What lies on a mount of a project there is
// found again beneath the project's root here and compared by inode, so no name is trusted. Fast paths are one openat2(); what
// leaves its base (`..`, absolute symlinks, magic links of /proc) is walked component by component in the task's view.
// Everything is done with the caller's identity except where only we may look (its directories in /proc). Thread-safe.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/thread_annotations.h"
#include "bridge/supervise/live_writers.h"
#include "bridge/supervise/own_fds.h"
#include "bridge/supervise/task.h"
#include "undo/interceptor.h"

namespace sandglass::bridge {

struct Project {
  std::string path;  // absolute, without symlinks, the same inside and outside
  Fd root;           // O_PATH, on the read-write mount
  uint64_t mount = 0;
  undo::Interceptor* interceptor = nullptr;
};

// A folder: of a project, on our mount; or of none, in the task's view.
struct Dir {
  const Project* project = nullptr;  // null: not ours
  Fd fd;
  std::string path;  // from the project's root
  int failure = 0;   // not ours and not to be reached: what the kernel says

  undo::DirRef ref() const { return {fd.get(), path}; }
};
using DirPtr = std::shared_ptr<const Dir>;  // owners: the resolver's cache, and calls under way

struct Location {
  DirPtr dir;
  std::string name;  // one component; "." when the path ended in one
  enum class Slash : uint8_t { kNo, kTrailing } slash = Slash::kNo;

  bool ours() const { return dir != nullptr && dir->project != nullptr; }
  undo::NameRef ref() const { return {dir->ref(), name}; }
  // What to hand to the kernel: it judges a trailing slash itself.
  std::string raw_name() const { return slash == Slash::kTrailing ? name + "/" : name; }
};

struct Object {
  const Project* project = nullptr;  // null: not ours
  Fd fd;                             // O_PATH on our mount, or the task's own writable descriptor
  std::string path;                  // "": unknown, and not worth asking for
  mode_t mode = 0;
  int failure = 0;  // not ours and not to be reached: what the kernel says
  int opened = 0;   // named by a descriptor of the caller: how that was opened (F_GETFL)

  // Such a descriptor changes nothing, though what stands for it here could.
  bool path_only() const { return (opened & O_PATH) != 0; }
  undo::ObjectRef ref() const { return {fd.get(), path}; }
};

// How one world sees the projects.
class WorldView {
 public:
  // Of the world that `pid` lives in.
  static Result<std::shared_ptr<const WorldView>> Of(
      pid_t pid, const std::vector<std::unique_ptr<Project>>& projects);
  // Does `pid` live in that same world? Then this is its view: nobody in a world can mount anything. Our descriptor keeps the mount of
  // the root, so that no other one can have its number.
  bool IsOf(pid_t pid) const;

  struct Mount {
    const Project* project;
    std::string prefix;  // what of the project is mounted
    std::string point;   // where
  };
  const Mount* Find(uint64_t mount_id) const;
  int root() const { return root_.get(); }

 private:
  Fd root_;
  std::map<uint64_t, Mount> mounts_;
};

// Which object a descriptor is of, and through which mount.
struct Identity {
  uint64_t device = 0, inode = 0, mount = 0;
  uint32_t mode = 0, links = 0;
  bool SameInode(const Identity& other) const {
    return device == other.device && inode == other.inode;
  }
};

enum class Follow : uint8_t { kNo, kYes };

class Resolver {
 public:
  Resolver(const std::vector<std::unique_ptr<Project>>& projects, const LiveWriters& writers)
      : projects_(projects), writers_(writers) {}

  struct Caller {
    const Task& task;
    const TaskStatus& status;
    const WorldView& view;
  };

  // Where the first path of a call led: the second one often lies in the same folder.
  struct LastDir {
    int dirfd = -1;
    std::string prefix;
    DirPtr dir;  // null: none yet
  };
  // The parent of the last name; a symlink there is not followed. Errors are what the kernel would say about a path in a project.
  Result<Location> FindName(const Caller& caller, int dirfd, std::string_view path,
                            LastDir* last = nullptr);
  // The object at a path. With `missing`, a name that does not exist is no error: it gets its (final) place.
  Result<Object> FindObject(const Caller& caller, int dirfd, std::string_view path, Follow follow,
                            Location* missing = nullptr, LastDir* last = nullptr);
  // The object behind a descriptor; a writable one of a project is the descriptor itself.
  Result<Object> FindFd(const Caller& caller, int fd);
  // The folder that a relative path starts from. With kDescriptor its path may be that of some time ago, if it was moved since.
  enum class Needed : uint8_t { kPath, kDescriptor };
  Result<DirPtr> StartDir(const Caller& caller, int dirfd, Needed needed = Needed::kPath);
  // Where an absolute path lies if it names something below a project; null: elsewhere.
  DirPtr ProjectOf(const Caller& caller, std::string_view path, std::string_view& rest) const;
  // Whose object a descriptor is. EROFS: it lies on our own mount but in no project.
  Result<Object> Identify(const Caller& caller, Fd fd);

  // Gives back the descriptors of folders that no call needs.
  void ForgetFolders() EXCLUDES(mutex_);
  // A task changed its root: from now on absolute paths are looked up in its own view.
  void NoteRootChange() { roots_differ_ = true; }

 private:
  Result<Location> Locate(const Caller& caller, DirPtr start, std::string path, int& links);
  Result<DirPtr> OpenDir(const Caller& caller, const DirPtr& start, const std::string& path,
                         int& links);
  Result<DirPtr> WalkDir(const Caller& caller, DirPtr dir, std::string path, int& links);
  Result<DirPtr> Up(const Caller& caller, const DirPtr& dir);
  using DirKey = std::pair<uint64_t, uint64_t>;  // device and inode
  Result<DirPtr> WorkingDir(const Caller& caller, Needed needed);
  DirPtr Remembered(const DirKey& key, Needed needed) EXCLUDES(mutex_);
  Result<DirPtr> Classify(const Caller& caller, Fd fd);
  Result<DirPtr> Classify(const Caller& caller, Fd fd, const Identity& seen, Needed needed);
  Result<DirPtr> RootDir(const Caller& caller) const;
  bool IsOurs(uint64_t mount) const;
  Result<Object> IdentifyHere(Fd fd, const Identity& wanted) const;
  const Project* OwnerOf(const Identity& seen) const;
  Result<std::string> LinkTarget(const Caller& caller, const Dir& dir, const std::string& name,
                                 const Fd& link) const;

  const std::vector<std::unique_ptr<Project>>& projects_;
  const LiveWriters& writers_;
  const OwnFds own_fds_;
  std::atomic<bool> roots_differ_{false};
  Mutex mutex_;
  std::map<DirKey, DirPtr> cache_ GUARDED_BY(mutex_);
};

// Where an open descriptor's object is, as an absolute path in its mount namespace; of any length.
Result<std::string> PathOfFd(int fd);

}  // namespace sandglass::bridge
