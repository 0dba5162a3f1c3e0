// ProjectOps: changes a project the way a bridge does. Each method asks the interceptor, does the
// system call unless the interceptor did, and commits the outcome; so a test states only what
// happens to the project.
//
// Paths are relative to the project ("" is its root), of any length, and resolved beneath it; a
// symlink in last place is the object itself. Every method fails with the interceptor's refusal or
// with the errno of the system call (sys_errno says which). Thread-safe as far as the paths that
// one thread uses are not renamed by another.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "undo/interceptor.h"
#include "undo/undo_log.h"

namespace sandglass::testing {

class ProjectOps {
 public:
  // Ends the program when the root cannot be opened.
  ProjectOps(undo::UndoLog& log, std::string project_root);

  const std::string& project_root() const { return project_root_; }
  int root_fd() const { return root_.get(); }

  // Both refuse a name that exists.
  Status WriteNew(std::string_view path, std::string_view content, mode_t mode = 0644);
  Status Create(std::string_view path, mode_t mode = 0644);
  // Opens with O_TRUNC and writes through the descriptor, unseen.
  Status Overwrite(std::string_view path, std::string_view content);
  // kUnseen: opens for writing and hands the write to the kernel. kAnnounced: also names the range
  // first.
  Status WriteAt(std::string_view path, uint64_t offset, std::string_view data,
                 undo::WriteVisibility visibility);
  Status Append(std::string_view path, std::string_view data, undo::WriteVisibility visibility);
  Status TruncateTo(std::string_view path, uint64_t size);
  Status PunchHole(std::string_view path, uint64_t offset, uint64_t length);
  // Allocates, and extends the file when the range reaches beyond its end.
  Status Fallocate(std::string_view path, uint64_t offset, uint64_t length);
  // Copies what `from` has of the range; `to` may be the same file when the ranges do not overlap.
  Status CopyRange(std::string_view from, uint64_t from_offset, std::string_view to,
                   uint64_t to_offset, uint64_t length);
  // Through a shared mapping, unseen. kInvalid: the range is not within the file.
  Status MmapWrite(std::string_view path, uint64_t offset, std::string_view data);

  Status Mkdir(std::string_view path, mode_t mode = 0755);
  Status Rmdir(std::string_view path);
  Status Unlink(std::string_view path);
  // `path` and all below it, one operation per name. Stops at the first failure.
  Status RemoveTree(std::string_view path);
  Status Rename(std::string_view from, std::string_view to,
                undo::RenameMode mode = undo::RenameMode::kReplace);
  Status Link(std::string_view from, std::string_view to);
  Status Symlink(std::string_view target, std::string_view path);
  // Files, FIFOs, sockets and devices.
  Status Mknod(std::string_view path, undo::NodeType type, mode_t mode, dev_t device = 0);

  Status Chmod(std::string_view path, mode_t mode);
  Status Chown(std::string_view path, uid_t uid, gid_t gid);
  Status SetMtime(std::string_view path, int64_t ns_since_epoch);
  Status SetXattr(std::string_view path, const std::string& name, std::string_view value);
  Status RemoveXattr(std::string_view path, const std::string& name);
  // Makes `flags` (FS_*_FL) the flags that a user can set.
  Status SetFlags(std::string_view path, uint32_t flags);

  // With open()'s flags; through the interceptor when they allow writing, so that later writes
  // through the descriptor are what `visibility` says. O_CREAT makes a missing file (mode 0644).
  Result<Fd> OpenFile(std::string_view path, int flags, undo::WriteVisibility visibility);
  // Gives an open file a further name. kNotFound: its last name is gone.
  Status LinkOpenFile(int fd, std::string_view to);

 private:
  struct Place;  // a name and its open parent directory
  // Answers as a system call does: not negative, or -1 with errno.
  using FdCall = std::function<int(int fd)>;

  Result<Place> Find(std::string_view path) const;
  Result<Fd> OpenObject(std::string_view path) const;
  Result<Fd> OpenHeld(const undo::Ticket& ticket, const Fd& object, std::string_view path,
                      int flags) const;
  Status CreateNode(std::string_view path, undo::NodeType type,
                    const std::function<int(int dir, const char* name)>& create);
  Result<Fd> CreateFile(std::string_view path, int flags, mode_t mode);
  Status Remove(std::string_view path, int unlink_flags);
  Status RemoveFilesIn(std::string_view dir, std::vector<std::string>& subdirs);
  Status ChangeContent(std::string_view path, int open_flags, undo::ContentChange change,
                       std::string_view what, const FdCall& call);
  Status ChangeInode(std::string_view path,
                     Result<undo::Ticket> (undo::Interceptor::*begin)(const undo::ObjectRef&),
                     std::string_view what, const FdCall& call);

  const std::string project_root_;
  undo::Interceptor& interceptor_;
  Fd root_;
};

}  // namespace sandglass::testing
