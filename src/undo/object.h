// Objects of a file system: who they are and what state they are in.
//
// A path says where something is, not what it is: renames, hard links and unlinked open files defeat it, and inode numbers
// are reused at once (ext4). The kernel's file handle carries a generation, so a hash of it names an object for good.
// Value types and free functions; any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/hash.h"
#include "base/result.h"

namespace sandglass::undo {

// The identity of an inode within one file system. All zero: no object.
using ObjectId = Hash128;
inline constexpr ObjectId kNoObject{};

struct FileStat {
  uint32_t mode = 0;  // type and the 12 permission bits
  uint32_t uid = 0, gid = 0;
  uint32_t nlink = 0;
  uint64_t size = 0;
  uint64_t blocks = 0;  // of 512 bytes
  uint64_t rdev = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  uint64_t ino = 0;
  uint64_t mount = 0;
  bool locked = false;     // immutable or append-only
  bool nodump = false;     // the only flag that a symlink or a special file inherits and shows
  bool encrypted = false;  // fscrypt

  // Instead of a time that is too far away to be told in nanoseconds; negative: in the past.
  static constexpr int64_t kTimeBeyond = INT64_MAX;
  bool HasTellableMtime() const { return mtime_ns != kTimeBeyond && mtime_ns != -kTimeBeyond; }
  bool IsDirectory() const { return S_ISDIR(mode); }
  bool IsRegular() const { return S_ISREG(mode); }
  bool IsSymlink() const { return S_ISLNK(mode); }
  // Fewer blocks than bytes. Inline and compressed files look so too: treating them as sparse does no harm.
  bool LooksSparse() const { return blocks * 512 < size; }
};

Result<FileStat> StatFd(int fd);
Result<FileStat> StatAt(int dir_fd, const char* name);
// The same where a missing name is an answer like any other: nullopt with errno set.
std::optional<FileStat> LookAt(int dir_fd, const char* name);

// "/proc/self/fd/N": reaches an object through an O_PATH descriptor where the kernel offers no *at() call.
class ProcPath {
 public:
  explicit ProcPath(int fd);
  const char* c_str() const { return text_; }

 private:
  char text_[32];
};

// What tells a file system from others, also after a remount. Kernels tell the UUID from 6.9 on.
struct FileSystemId {
  std::optional<uint64_t> uuid;  // its hash
  uint64_t fsid = 0;             // what statfs tells

  // Seen by another kernel maybe, which told less.
  bool IsSame(const FileSystemId& other) const {
    return uuid && other.uuid ? *uuid == *other.uuid : fsid == other.fsid;
  }
};
FileSystemId FileSystemIdOf(int root_fd);

// Computes identities. Without file handles (overlayfs) it falls back to inode numbers, which are only good enough while
// nothing is anchored: see StoreAbilities::handles.
class Identifier {
 public:
  Identifier() = default;
  // Probes the file system that `root_fd` is on. `salt` sets its identities apart from those of others.
  static Result<Identifier> Probe(int root_fd, uint64_t salt);

  Result<ObjectId> OfFd(int fd) const;
  Result<ObjectId> OfName(int dir_fd, const char* name) const;
  bool has_handles() const { return has_handles_; }
  uint64_t salt() const { return salt_; }

 private:
  Result<ObjectId> Compute(int dir_fd, const char* name, int flags) const;

  uint64_t salt_ = 0;
  bool has_handles_ = false;
};

// An object, opened without changing anything about it. For a regular file that may be read, `fd` can read; else it is O_PATH. Without
// a descriptor: something that the step itself made, of which nothing has to be kept (Attempt::FindNamed).
struct OpenObject {
  Fd fd;
  ObjectId id;
  FileStat stat;
  bool readable = false;
};

// kNotFound: no such name.
Result<OpenObject> OpenObjectAt(const Identifier& identifier, int dir_fd, const char* name);
// The same for whoever is going to look at its state again: `stat` is what the name had a moment before.
Result<OpenObject> FindObjectAt(const Identifier& identifier, int dir_fd, const char* name);
// The object behind a descriptor that someone else owns; `fd` of the result is a fresh one.
Result<OpenObject> OpenObjectFd(const Identifier& identifier, int fd);

}  // namespace sandglass::undo
