#include "tests/support/project_ops.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/beneath.h"
#include "base/bytes.h"
#include "base/io.h"
#include "base/rel_path.h"
#include "tests/support/inode_flags.h"
#include "tests/support/must.h"
#include "tests/support/tree_walk.h"

namespace sandglass::testing {

using undo::ContentChange;
using undo::Interceptor;
using undo::NameRef;
using undo::NodeType;
using undo::ObjectRef;
using undo::Outcome;
using undo::RenameMode;
using undo::Ticket;
using undo::Truncate;
using undo::WriteVisibility;

struct ProjectOps::Place {
  Fd dir;
  std::string_view dir_path;
  std::string name;

  NameRef ref() const { return {{dir.get(), dir_path}, name}; }
};

namespace {

Error SystemError(int sys_errno, std::string_view what, std::string_view path) {
  return Error::FromErrno(sys_errno, fmt::format("{} {}", what, path));
}

// The path of the object behind a descriptor of any kind, for calls that take no O_PATH descriptor.
std::string ProcPath(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

// The second half of every operation: do it unless the interceptor has, and record how it went.
template <class Call>
Status Complete(Ticket& ticket, std::string_view what, std::string_view path, const Call& call) {
  if (ticket.performed()) return ticket.Commit(Outcome::Done());
  const int failure = call() < 0 ? errno : 0;
  TRY(ticket.Commit(failure == 0 ? Outcome::Done() : Outcome::Failed(failure)));
  if (failure != 0) return SystemError(failure, what, path);
  return Ok();
}

int RenameFlags(RenameMode mode) {
  switch (mode) {
    case RenameMode::kReplace:
      return 0;
    case RenameMode::kNoReplace:
      return RENAME_NOREPLACE;
    case RenameMode::kExchange:
      return RENAME_EXCHANGE;
  }
  CHECK(false);
}

// -1 with errno set, as system calls say it.
int WriteAllAt(int fd, std::string_view data, uint64_t offset) {
  const Status written = PWriteFully(fd, AsBytes(data), static_cast<off_t>(offset));
  if (written.ok()) return 0;
  errno = written.error().sys_errno();
  return -1;
}

int CopyAll(int from, uint64_t from_offset, int to, uint64_t to_offset, uint64_t length) {
  auto source = static_cast<off_t>(from_offset);
  auto target = static_cast<off_t>(to_offset);
  while (length > 0) {
    const ssize_t copied = copy_file_range(from, &source, to, &target, length, 0);
    if (copied < 0) return -1;
    if (copied == 0) break;  // `from` ends here
    length -= static_cast<uint64_t>(copied);
  }
  return 0;
}

Result<uint64_t> SizeOf(int fd) {
  struct stat st;
  if (fstat(fd, &st) != 0) return Error::FromErrno(errno, "fstat");
  return static_cast<uint64_t>(st.st_size);
}

}  // namespace

ProjectOps::ProjectOps(undo::UndoLog& log, std::string project_root)
    : project_root_(std::move(project_root)),
      interceptor_(log.interceptor()),
      root_(test::MustCall(open(project_root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC),
                           project_root_)) {}

Result<ProjectOps::Place> ProjectOps::Find(std::string_view path) const {
  TRY_ASSIGN(Fd dir, OpenDirBeneath(root_.get(), ParentOf(path)));
  return Place{std::move(dir), ParentOf(path), std::string(BaseName(path))};
}

Result<Fd> ProjectOps::OpenObject(std::string_view path) const {
  return OpenBeneath(root_.get(), path, O_PATH | O_NOFOLLOW);
}

// Names.

Status ProjectOps::CreateNode(std::string_view path, NodeType type,
                              const std::function<int(int, const char*)>& create) {
  TRY_ASSIGN(Place at, Find(path));
  TRY_ASSIGN(Ticket ticket, interceptor_.BeginCreate(at.ref(), type));
  return Complete(ticket, "create", path, [&] { return create(at.dir.get(), at.name.c_str()); });
}

Result<Fd> ProjectOps::CreateFile(std::string_view path, int flags, mode_t mode) {
  Fd file;
  TRY(CreateNode(path, NodeType::kFile, [&](int dir, const char* name) {
    file = Fd(openat(dir, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    return file.get();
  }));
  return file;
}

Status ProjectOps::Create(std::string_view path, mode_t mode) {
  TRY(CreateFile(path, O_WRONLY, mode));
  return Ok();
}

// A file born in this step needs no further question, whoever writes to it.
Status ProjectOps::WriteNew(std::string_view path, std::string_view content, mode_t mode) {
  TRY_ASSIGN(Fd file, CreateFile(path, O_WRONLY, mode));
  return WriteFully(file.get(), AsBytes(content));
}

Status ProjectOps::Mkdir(std::string_view path, mode_t mode) {
  return CreateNode(path, NodeType::kDirectory,
                    [&](int dir, const char* name) { return mkdirat(dir, name, mode); });
}

Status ProjectOps::Symlink(std::string_view target, std::string_view path) {
  const std::string content(target);
  return CreateNode(path, NodeType::kSymlink, [&](int dir, const char* name) {
    return symlinkat(content.c_str(), dir, name);
  });
}

Status ProjectOps::Mknod(std::string_view path, NodeType type, mode_t mode, dev_t device) {
  if (type == NodeType::kDirectory || type == NodeType::kSymlink)
    return Error{Code::kInvalid, "mknod makes no directories and no symlinks"};
  return CreateNode(path, type, [&](int dir, const char* name) {
    return mknodat(dir, name, undo::FileTypeBits(type) | mode, device);
  });
}

Status ProjectOps::Remove(std::string_view path, int unlink_flags) {
  TRY_ASSIGN(Place at, Find(path));
  TRY_ASSIGN(Ticket ticket, interceptor_.BeginRemove(at.ref()));
  return Complete(ticket, "remove", path,
                  [&] { return unlinkat(at.dir.get(), at.name.c_str(), unlink_flags); });
}

Status ProjectOps::Rmdir(std::string_view path) { return Remove(path, AT_REMOVEDIR); }
Status ProjectOps::Unlink(std::string_view path) { return Remove(path, 0); }

// Removes all but the directories in `dir` and lists those. The descriptor is closed before anyone
// descends, so that depth is not bounded by the number of descriptors.
Status ProjectOps::RemoveFilesIn(std::string_view dir, std::vector<std::string>& subdirs) {
  TRY_ASSIGN(Fd fd, OpenBeneath(root_.get(), dir, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(std::vector<std::string> names, test::ListDirectory(fd.get()));
  for (const std::string& name : names) {
    struct stat st;
    if (fstatat(fd.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      return SystemError(errno, "stat", name);
    }
    if (S_ISDIR(st.st_mode)) {
      subdirs.push_back(JoinPath(dir, name));
      continue;
    }
    TRY_ASSIGN(Ticket ticket, interceptor_.BeginRemove({{fd.get(), dir}, name}));
    TRY(Complete(ticket, "remove", name, [&] { return unlinkat(fd.get(), name.c_str(), 0); }));
  }
  return Ok();
}

Status ProjectOps::RemoveTree(std::string_view path) {
  TRY_ASSIGN(Fd object, OpenObject(path));
  struct stat st;
  if (fstat(object.get(), &st) != 0) return SystemError(errno, "stat", path);
  object.Reset();
  if (!S_ISDIR(st.st_mode)) return Unlink(path);
  std::vector<std::string> subdirs;
  TRY(RemoveFilesIn(path, subdirs));
  for (const std::string& subdir : subdirs) TRY(RemoveTree(subdir));
  return Rmdir(path);
}

Status ProjectOps::Rename(std::string_view from, std::string_view to, RenameMode mode) {
  TRY_ASSIGN(Place source, Find(from));
  TRY_ASSIGN(Place target, Find(to));
  TRY_ASSIGN(Ticket ticket, interceptor_.BeginRename(source.ref(), target.ref(), mode));
  return Complete(ticket, "rename", from, [&] {
    return renameat2(source.dir.get(), source.name.c_str(), target.dir.get(), target.name.c_str(),
                     RenameFlags(mode));
  });
}

Status ProjectOps::Link(std::string_view from, std::string_view to) {
  TRY_ASSIGN(Place target, Find(to));
  TRY_ASSIGN(Fd object, OpenObject(from));
  TRY_ASSIGN(Ticket ticket, interceptor_.BeginLink({object.get(), from}, target.ref()));
  // By descriptor: the old name may be another object's by now, since only the new one's folder is held.
  return Complete(ticket, "link", to, [&] {
    return linkat(AT_FDCWD, ProcPath(object.get()).c_str(), target.dir.get(), target.name.c_str(),
                  AT_SYMLINK_FOLLOW);
  });
}

Status ProjectOps::LinkOpenFile(int fd, std::string_view to) {
  TRY_ASSIGN(Place target, Find(to));
  TRY_ASSIGN(Ticket ticket, interceptor_.BeginLink({fd}, target.ref()));
  return Complete(ticket, "link", to, [&] {
    return linkat(AT_FDCWD, ProcPath(fd).c_str(), target.dir.get(), target.name.c_str(),
                  AT_SYMLINK_FOLLOW);
  });
}

// Content.

// Opens what a ticket was given for: the object itself, or the inode that keeping it has put at its
// name.
Result<Fd> ProjectOps::OpenHeld(const Ticket& ticket, const Fd& object, std::string_view path,
                                int flags) const {
  const int held = ticket.replaced() ? ticket.fresh_fd() : object.get();
  Fd file(open(ProcPath(held).c_str(), flags | O_CLOEXEC));
  if (!file.valid()) return SystemError(errno, "open", path);
  return file;
}

Result<Fd> ProjectOps::OpenFile(std::string_view path, int flags, WriteVisibility visibility) {
  const bool writable = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
  Result<Fd> object = OpenObject(path);
  if (!object.ok()) {
    if ((flags & O_CREAT) == 0 || object.error().code() != Code::kNotFound) return object;
    return CreateFile(path, flags, 0644);
  }
  if (!writable) return OpenBeneath(root_.get(), path, flags | O_NOFOLLOW);

  const Truncate truncate = (flags & O_TRUNC) != 0 ? Truncate::kYes : Truncate::kNo;
  TRY_ASSIGN(Ticket ticket,
             interceptor_.BeginOpenForWrite({object->get(), path}, truncate, visibility));
  const int done_already = ticket.performed() ? O_TRUNC : 0;
  Result<Fd> file = OpenHeld(ticket, *object, path, flags & ~(O_CREAT | O_EXCL | done_already));
  TRY(ticket.Commit(file.ok() ? Outcome::Done() : Outcome::Failed(file.error().sys_errno())));
  return file;
}

// An open file whose every change is announced: one question when it is opened, one before the
// change.
Status ProjectOps::ChangeContent(std::string_view path, int open_flags, ContentChange change,
                                 std::string_view what, const FdCall& call) {
  TRY_ASSIGN(Fd file, OpenFile(path, open_flags, WriteVisibility::kAnnounced));
  TRY_ASSIGN(Ticket ticket, interceptor_.BeginContent({file.get(), path}, change));
  if (ticket.replaced() && !ticket.performed()) {
    Result<Fd> fresh = OpenHeld(ticket, file, path, open_flags);
    if (!fresh.ok()) {
      TRY(ticket.Commit(Outcome::Failed(fresh.error().sys_errno())));
      return fresh.error();
    }
    file = std::move(*fresh);
  }
  return Complete(ticket, what, path, [&] { return call(file.get()); });
}

Status ProjectOps::Overwrite(std::string_view path, std::string_view content) {
  TRY_ASSIGN(Fd file, OpenFile(path, O_WRONLY | O_TRUNC, WriteVisibility::kUnseen));
  return WriteFully(file.get(), AsBytes(content));
}

Status ProjectOps::WriteAt(std::string_view path, uint64_t offset, std::string_view data,
                           WriteVisibility visibility) {
  if (visibility == WriteVisibility::kUnseen) {
    TRY_ASSIGN(Fd file, OpenFile(path, O_WRONLY, visibility));
    return PWriteFully(file.get(), AsBytes(data), static_cast<off_t>(offset));
  }
  return ChangeContent(path, O_WRONLY, ContentChange::Range(offset, data.size()), "write",
                       [&](int fd) { return WriteAllAt(fd, data, offset); });
}

Status ProjectOps::Append(std::string_view path, std::string_view data,
                          WriteVisibility visibility) {
  if (visibility == WriteVisibility::kUnseen) {
    TRY_ASSIGN(Fd file, OpenFile(path, O_WRONLY | O_APPEND, visibility));
    return WriteFully(file.get(), AsBytes(data));
  }
  TRY_ASSIGN(Fd object, OpenObject(path));
  TRY_ASSIGN(uint64_t end, SizeOf(object.get()));
  object.Reset();
  return ChangeContent(path, O_WRONLY, ContentChange::Range(end, data.size()), "append",
                       [&](int fd) { return WriteAllAt(fd, data, end); });
}

// truncate(2) names a path: there is no descriptor before the question.
Status ProjectOps::TruncateTo(std::string_view path, uint64_t size) {
  TRY_ASSIGN(Fd object, OpenObject(path));
  TRY_ASSIGN(Ticket ticket,
             interceptor_.BeginContent({object.get(), path}, ContentChange::TruncateTo(size)));
  return Complete(ticket, "truncate", path, [&] {
    Result<Fd> file = OpenHeld(ticket, object, path, O_WRONLY);
    if (file.ok()) return ftruncate(file->get(), static_cast<off_t>(size));
    errno = file.error().sys_errno();
    return -1;
  });
}

Status ProjectOps::PunchHole(std::string_view path, uint64_t offset, uint64_t length) {
  return ChangeContent(path, O_WRONLY, ContentChange::Range(offset, length), "punch hole",
                       [&](int fd) {
                         return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                          static_cast<off_t>(offset), static_cast<off_t>(length));
                       });
}

Status ProjectOps::Fallocate(std::string_view path, uint64_t offset, uint64_t length) {
  return ChangeContent(
      path, O_WRONLY, ContentChange::Range(offset, length), "fallocate", [&](int fd) {
        return fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(length));
      });
}

Status ProjectOps::CopyRange(std::string_view from, uint64_t from_offset, std::string_view to,
                             uint64_t to_offset, uint64_t length) {
  TRY_ASSIGN(Fd source, OpenBeneath(root_.get(), from, O_RDONLY | O_NOFOLLOW));
  return ChangeContent(
      to, O_WRONLY, ContentChange::Range(to_offset, length), "copy range",
      [&](int fd) { return CopyAll(source.get(), from_offset, fd, to_offset, length); });
}

Status ProjectOps::MmapWrite(std::string_view path, uint64_t offset, std::string_view data) {
  TRY_ASSIGN(Fd file, OpenFile(path, O_RDWR, WriteVisibility::kUnseen));
  TRY_ASSIGN(uint64_t size, SizeOf(file.get()));
  if (data.empty() || offset > size || data.size() > size - offset) {
    return Error{Code::kInvalid, "mapped write outside of the file"};
  }
  void* map = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (map == MAP_FAILED) return SystemError(errno, "mmap", path);
  std::memcpy(static_cast<char*>(map) + offset, data.data(), data.size());
  munmap(map, size);
  return Ok();
}

// Metadata: by descriptor, so that a symlink is changed and never followed.

Status ProjectOps::ChangeInode(std::string_view path,
                               Result<Ticket> (Interceptor::*begin)(const ObjectRef&),
                               std::string_view what, const FdCall& call) {
  TRY_ASSIGN(Fd object, OpenObject(path));
  TRY_ASSIGN(Ticket ticket, (interceptor_.*begin)({object.get(), path}));
  if (ticket.replaced() && !ticket.performed()) {
    TRY_ASSIGN(object, OpenHeld(ticket, object, path, O_PATH));
  }
  return Complete(ticket, what, path, [&] { return call(object.get()); });
}

Status ProjectOps::Chmod(std::string_view path, mode_t mode) {
  return ChangeInode(path, &Interceptor::BeginMetadata, "chmod",
                     [&](int fd) { return chmod(ProcPath(fd).c_str(), mode); });
}

Status ProjectOps::Chown(std::string_view path, uid_t uid, gid_t gid) {
  return ChangeInode(path, &Interceptor::BeginMetadata, "chown",
                     [&](int fd) { return fchownat(fd, "", uid, gid, AT_EMPTY_PATH); });
}

Status ProjectOps::SetMtime(std::string_view path, int64_t ns_since_epoch) {
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t ns = ((ns_since_epoch % kSecond) + kSecond) % kSecond;
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                             {.tv_sec = (ns_since_epoch - ns) / kSecond, .tv_nsec = ns}};
  return ChangeInode(path, &Interceptor::BeginMetadata, "utimes",
                     [&](int fd) { return utimensat(fd, "", times, AT_EMPTY_PATH); });
}

Status ProjectOps::SetXattr(std::string_view path, const std::string& name,
                            std::string_view value) {
  return ChangeInode(path, &Interceptor::BeginXattr, "setxattr", [&](int fd) {
    return setxattr(ProcPath(fd).c_str(), name.c_str(), value.data(), value.size(), 0);
  });
}

Status ProjectOps::RemoveXattr(std::string_view path, const std::string& name) {
  return ChangeInode(path, &Interceptor::BeginXattr, "removexattr",
                     [&](int fd) { return removexattr(ProcPath(fd).c_str(), name.c_str()); });
}

Status ProjectOps::SetFlags(std::string_view path, uint32_t flags) {
  return ChangeInode(path, &Interceptor::BeginFlags, "set flags", [&](int fd) {
    const Fd file(open(ProcPath(fd).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!file.valid()) return -1;
    const uint32_t current = test::ReadFlags(file.get());
    errno = test::ChangeFlags(file.get(), flags & ~current, current & ~flags);
    return errno == 0 ? 0 : -1;
  });
}

}  // namespace sandglass::testing
