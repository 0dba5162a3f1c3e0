#include "bridge/supervise/operations.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>

#include "base/rel_path.h"
#include "bridge/supervise/decode.h"

namespace sandglass::bridge {
namespace {

using undo::ContentChange;
using undo::Interceptor;
using undo::NodeType;
using undo::Outcome;
using undo::RenameMode;
using undo::Ticket;
using undo::Truncate;

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

Answer Fail(const Error& error) { return Answer::Fail(ErrnoFor(error)); }

#define ANSWER_ASSIGN(decl, expr) \
  ANSWER_ASSIGN_IMPL(SANDGLASS_CONCAT(answer_value_, __LINE__), decl, expr)
#define ANSWER_ASSIGN_IMPL(tmp, decl, expr) \
  auto tmp = (expr);                        \
  if (!tmp.ok()) return Fail(tmp.error());  \
  decl = std::move(tmp).value()

std::string MagicPath(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

// The second half of every operation: do it as the caller unless the interceptor has, and record how it went.
Answer Complete(Call& call, Result<Ticket> ticket,
                const std::function<int(const Ticket&)>& operation) {
  if (!ticket.ok()) return Answer::Fail(ErrnoFor(ticket.error()));
  // Asking may have taken long.
  if (!call.listener.IsWaiting(call.id)) {
    ticket->Cancel();
    return Answer::Gone();
  }
  int failure = 0;
  if (!ticket->performed()) {
    ActAs as(call.status);
    failure = operation(*ticket) < 0 ? errno : 0;
  }
  // That the outcome could not be recorded leaves the operation as it is.
  (void)ticket->Commit(failure == 0 ? Outcome::Done() : Outcome::Failed(failure));
  return failure == 0 ? Answer::Return(0) : Answer::Fail(failure);
}

Result<Location> LocateArg(Call& call, const PathArg& arg) {
  TRY_ASSIGN(std::string path, call.task.ReadText(call.Arg(arg.path)));
  return call.shared.resolver.FindName(call.caller(),
                                       arg.dirfd < 0 ? AT_FDCWD : call.IntArg(arg.dirfd), path);
}

// "." and ".." are no names that could change: the kernel says what is wrong.
bool IsDots(const Location& at) { return at.name == "." || at.name == ".."; }

// What nobody records. What was read belongs to the caller only if it still waits.
Answer Plainly(Call& call, const std::function<int()>& operation) {
  if (!call.listener.IsWaiting(call.id)) return Answer::Gone();
  ActAs as(call.status);
  return operation() < 0 ? Answer::Fail(errno) : Answer::Return(0);
}

// May the caller take names out of the folder? Asked where the interceptor could perform the operation with our own rights.
int RemovalForbidden(Call& call, const Location& at) {
  ActAs as(call.status);
  if (::faccessat(at.dir->fd.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) return errno;
  struct stat dir, object;
  if (::fstatat(at.dir->fd.get(), ".", &dir, 0) != 0 || (dir.st_mode & S_ISVTX) == 0) return 0;
  if (::fstatat(at.dir->fd.get(), at.name.c_str(), &object, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  constexpr uint64_t kFowner = 1ull << 3;
  const bool may = call.status.fs_uid == dir.st_uid || call.status.fs_uid == object.st_uid ||
                   (call.status.effective & kFowner) != 0;
  return may ? 0 : EPERM;
}

// Names.

Answer Remove(Call& call) {
  ANSWER_ASSIGN(const Location at, LocateArg(call, call.rule.at));
  if (!at.ours()) return Answer::Continue();
  const int flags = call.Flags();
  const std::string name = at.raw_name();
  const auto remove = [&] { return ::unlinkat(at.dir->fd.get(), name.c_str(), flags); };
  struct stat st;
  const bool exists = ::fstatat(at.dir->fd.get(), at.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
  const bool wrong_kind =
      exists && (S_ISDIR(st.st_mode) != ((flags & AT_REMOVEDIR) != 0) ||
                 (at.slash == Location::Slash::kTrailing && !S_ISDIR(st.st_mode)));
  if (IsDots(at) || !exists || wrong_kind) return Plainly(call, remove);
  if (const int forbidden = RemovalForbidden(call, at)) return Answer::Fail(forbidden);
  return Complete(call, at.dir->project->interceptor->BeginRemove(at.ref()),
                  [&](const Ticket&) { return remove(); });
}

std::optional<RenameMode> RenameModeOf(unsigned flags) {
  switch (flags) {
    case 0:
      return RenameMode::kReplace;
    case RENAME_NOREPLACE:
      return RenameMode::kNoReplace;
    case RENAME_EXCHANGE:
      return RenameMode::kExchange;
    default:
      return std::nullopt;
  }
}

Answer Rename(Call& call) {
  ANSWER_ASSIGN(const Location from, LocateArg(call, call.rule.at));
  ANSWER_ASSIGN(const Location to, LocateArg(call, call.rule.to));
  if (!from.ours() && !to.ours()) return Answer::Continue();
  if (!from.ours() || !to.ours() || from.dir->project != to.dir->project)
    return Answer::Fail(EXDEV);
  const auto flags = static_cast<unsigned>(call.Flags());
  const auto mode = RenameModeOf(flags);
  if (!mode) return Answer::Fail(EINVAL);
  const std::string old_name = from.raw_name(), new_name = to.raw_name();
  const auto rename = [&] {
    return ::renameat2(from.dir->fd.get(), old_name.c_str(), to.dir->fd.get(), new_name.c_str(),
                       flags);
  };
  struct stat st;
  const bool exists =
      ::fstatat(from.dir->fd.get(), from.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
  if (IsDots(from) || IsDots(to) || !exists) return Plainly(call, rename);
  if (const int forbidden = RemovalForbidden(call, from)) return Answer::Fail(forbidden);
  return Complete(call, from.dir->project->interceptor->BeginRename(from.ref(), to.ref(), *mode),
                  [&](const Ticket&) { return rename(); });
}

Answer Create(Call& call, const Location& at, NodeType type,
              const std::function<int(int, const char*)>& create) {
  const std::string name = at.raw_name();
  const int dir = at.dir->fd.get();
  struct stat st;
  const bool exists = ::fstatat(dir, at.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
  if (IsDots(at) || exists) return Plainly(call, [&] { return create(dir, name.c_str()); });
  return Complete(call, at.dir->project->interceptor->BeginCreate(at.ref(), type),
                  [&](const Ticket&) { return create(dir, name.c_str()); });
}

Answer MakeDir(Call& call) {
  ANSWER_ASSIGN(const Location at, LocateArg(call, call.rule.at));
  if (!at.ours()) return Answer::Continue();
  const auto mode = static_cast<mode_t>(call.Value(0));
  return Create(call, at, NodeType::kDirectory,
                [&](int dir, const char* name) { return ::mkdirat(dir, name, mode); });
}

Answer MakeNode(Call& call) {
  ANSWER_ASSIGN(const Location at, LocateArg(call, call.rule.at));
  if (!at.ours()) return Answer::Continue();
  const auto mode = static_cast<mode_t>(call.Value(0));
  const auto device = static_cast<dev_t>(call.Value(1));
  if (S_ISDIR(mode)) return Answer::Fail(EPERM);
  // Symlinks, and bits that no type has.
  const NodeType type = undo::NodeTypeOf(mode);
  if ((mode & S_IFMT) != 0 && (S_ISLNK(mode) || undo::FileTypeBits(type) != (mode & S_IFMT)))
    return Answer::Fail(EINVAL);
  // In a user namespace nobody may make devices.
  if ((S_ISCHR(mode) && device != 0) || S_ISBLK(mode)) return Answer::Fail(EPERM);
  return Create(call, at, type,
                [&](int dir, const char* name) { return ::mknodat(dir, name, mode, device); });
}

Answer MakeSymlink(Call& call) {
  ANSWER_ASSIGN(const std::string target, call.task.ReadText(call.Value(0)));
  ANSWER_ASSIGN(const Location at, LocateArg(call, call.rule.at));
  if (!at.ours()) return Answer::Continue();
  return Create(call, at, NodeType::kSymlink,
                [&](int dir, const char* name) { return ::symlinkat(target.c_str(), dir, name); });
}

// The object that a call names by descriptor, path, or an empty path with its descriptor.
Result<Object> TargetOf(Call& call, Follow follow, int flags) {
  Resolver& resolver = call.shared.resolver;
  if (call.rule.fd >= 0) return resolver.FindFd(call.caller(), call.IntArg(call.rule.fd));
  const int dirfd = call.rule.at.dirfd < 0 ? AT_FDCWD : call.IntArg(call.rule.at.dirfd);
  TRY_ASSIGN(std::string path, call.task.ReadText(call.Arg(call.rule.at.path)));
  if (path.empty() && (flags & AT_EMPTY_PATH) != 0) {
    if (dirfd != AT_FDCWD) return resolver.FindFd(call.caller(), dirfd);
    path = ".";
  }
  return resolver.FindObject(call.caller(), dirfd, path, follow);
}

Follow FollowUnless(int flags) {
  return (flags & AT_SYMLINK_NOFOLLOW) != 0 ? Follow::kNo : Follow::kYes;
}

Answer MakeLink(Call& call) {
  const int flags = call.Flags();
  ANSWER_ASSIGN(const Location to, LocateArg(call, call.rule.to));
  ANSWER_ASSIGN(
      const Object object,
      TargetOf(call, (flags & AT_SYMLINK_FOLLOW) != 0 ? Follow::kYes : Follow::kNo, flags));
  if (object.project == nullptr && !to.ours()) return Answer::Continue();
  if (object.project == nullptr || !to.ours() || object.project != to.dir->project) {
    // A missing source is told as such.
    return object.fd.valid() || object.project != nullptr ? Answer::Fail(EXDEV)
                                                          : Answer::Continue();
  }
  if (S_ISDIR(object.mode)) return Answer::Fail(EPERM);
  return Complete(call, object.project->interceptor->BeginLink(object.ref(), to.ref()),
                  [&](const Ticket&) {
                    return ::linkat(AT_FDCWD, MagicPath(object.fd.get()).c_str(), to.dir->fd.get(),
                                    to.raw_name().c_str(), AT_SYMLINK_FOLLOW);
                  });
}

// Content.

struct OpenRequest {
  int flags = 0;
  mode_t mode = 0;
};

bool Writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

// Before the operation is committed: whoever closes the step after that must know of the writer.
void NoteWriter(Call& call, const Project& project, const Fd& file, int flags) {
  if (Writes(flags)) call.shared.writers.Add(project, file.get());
}

Answer HandOver(Fd file, int flags) {
  return {.kind = Answer::Kind::kHandOver,
          .value = 0,
          .fd = std::move(file),
          .fd_flags = static_cast<uint32_t>(flags & O_CLOEXEC)};
}

Answer OpenExisting(Call& call, const Object& object, int flags) {
  if (object.project == nullptr) return Answer::Continue();
  if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return Answer::Fail(EEXIST);
  if (S_ISLNK(object.mode)) return Answer::Fail(ELOOP);
  if (S_ISDIR(object.mode)) return Answer::Fail(EISDIR);
  if ((flags & O_DIRECTORY) != 0) return Answer::Fail(ENOTDIR);
  // Pipes, sockets and devices can be opened through a read-only mount, and may block.
  if (!S_ISREG(object.mode)) return Answer::Continue();
  if (!Writes(flags) && (flags & O_TRUNC) == 0) return Answer::Continue();
  // Before anything is kept or replaced on the caller's behalf.
  {
    ActAs as(call.status);
    const int access = ((flags & O_ACCMODE) == O_WRONLY ? 0 : R_OK) | W_OK;
    if (::syscall(SYS_faccessat2, object.fd.get(), "", access, AT_EMPTY_PATH | AT_EACCESS) != 0)
      return Answer::Fail(errno);
  }
  Fd file;
  const auto truncate = (flags & O_TRUNC) != 0 ? Truncate::kYes : Truncate::kNo;
  Result<Ticket> ticket = object.project->interceptor->BeginOpenForWrite(
      object.ref(), truncate, undo::WriteVisibility::kUnseen);
  if (!ticket.ok()) return Answer::Fail(ErrnoFor(ticket.error()));
  if (!call.listener.IsWaiting(call.id)) {
    ticket->Cancel();
    return Answer::Gone();
  }
  const int held = ticket->replaced() ? ticket->fresh_fd() : object.fd.get();
  const int done = O_CREAT | O_EXCL | O_NOFOLLOW | (ticket->performed() ? O_TRUNC : 0);
  int failure = 0;
  {
    ActAs as(call.status);
    file = Fd(::open(MagicPath(held).c_str(), (flags & ~done) | O_CLOEXEC | O_NOCTTY));
    failure = file.valid() ? 0 : errno;
  }
  if (file.valid()) NoteWriter(call, *object.project, file, flags);
  (void)ticket->Commit(failure == 0 ? Outcome::Done() : Outcome::Failed(failure));
  if (failure != 0) return Answer::Fail(failure);
  return HandOver(std::move(file), flags);
}

// EEXIST with O_EXCL missing: somebody was faster.
Answer OpenNew(Call& call, const Location& at, OpenRequest request) {
  Fd file;
  const int flags =
      (request.flags & ~O_TRUNC) | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY;
  const std::string name = at.raw_name();
  Answer made =
      Complete(call, at.dir->project->interceptor->BeginCreate(at.ref(), NodeType::kFile),
               [&](const Ticket&) {
                 file = Fd(::openat(at.dir->fd.get(), name.c_str(), flags, request.mode & 07777));
                 if (file.valid()) NoteWriter(call, *at.dir->project, file, request.flags);
                 return file.get();
               });
  if (made.kind != Answer::Kind::kReturn) return made;
  if (Writes(request.flags)) return HandOver(std::move(file), request.flags);
  // A descriptor for reading must not lie on our mount: it would allow changes that nobody sees.
  const int reading =
      request.flags & (O_NONBLOCK | O_NOATIME | O_DIRECT | O_SYNC | O_ASYNC | O_APPEND);
  const std::string inside =
      at.dir->project->path.substr(1) + "/" + JoinPath(at.dir->path, at.name);
  open_how how{.flags = static_cast<uint64_t>(reading) | O_CLOEXEC | O_NOFOLLOW,
               .mode = 0,
               .resolve = RESOLVE_IN_ROOT};
  file = Fd(static_cast<int>(
      ::syscall(SYS_openat2, call.view.root(), inside.c_str(), &how, sizeof(how))));
  if (!file.valid()) return Answer::Fail(errno);
  return {.kind = Answer::Kind::kHandOver,
          .fd = std::move(file),
          .fd_flags = static_cast<uint32_t>(request.flags & O_CLOEXEC)};
}

Answer OpenUnnamed(Call& call, const Object& dir, OpenRequest request) {
  if (dir.project == nullptr) return Answer::Continue();
  if (!S_ISDIR(dir.mode)) return Answer::Fail(ENOTDIR);
  if (!call.listener.IsWaiting(call.id)) return Answer::Gone();
  Fd file;
  {
    ActAs as(call.status);
    file = Fd(::openat(dir.fd.get(), ".", request.flags | O_CLOEXEC, request.mode & 07777));
    if (!file.valid()) return Answer::Fail(errno);
  }
  NoteWriter(call, *dir.project, file, request.flags);
  return HandOver(std::move(file), request.flags);
}

bool IsTemporary(int flags) { return (flags & O_TMPFILE) == O_TMPFILE; }

Answer OpenPath(Call& call, int dirfd, const std::string& path, OpenRequest request) {
  const int flags = request.flags;
  const bool changes = Writes(flags) || (flags & (O_CREAT | O_TRUNC)) != 0 || IsTemporary(flags);
  if ((flags & O_PATH) != 0 || !changes) return Answer::Continue();
  if ((flags & O_CREAT) != 0 && (flags & O_DIRECTORY) != 0 && !IsTemporary(flags))
    return Answer::Fail(EINVAL);
  const bool stays = (flags & O_NOFOLLOW) != 0 || ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0);
  constexpr int kRaces = 16;
  for (int attempt = 0; attempt < kRaces; ++attempt) {
    Location missing;
    ANSWER_ASSIGN(const Object object,
                  call.shared.resolver.FindObject(call.caller(), dirfd, path,
                                                  stays ? Follow::kNo : Follow::kYes, &missing));
    if (IsTemporary(flags)) return OpenUnnamed(call, object, request);
    if (missing.dir == nullptr) return OpenExisting(call, object, flags);
    if (!missing.ours()) return Answer::Continue();
    if ((flags & O_CREAT) == 0) return Answer::Fail(ENOENT);
    Answer answer = OpenNew(call, missing, request);
    if (answer.kind != Answer::Kind::kFail || answer.value != EEXIST || (flags & O_EXCL) != 0)
      return answer;
  }
  return Answer::Fail(EBUSY);
}

Answer Open(Call& call) {
  ANSWER_ASSIGN(const std::string path, call.task.ReadText(call.Arg(call.rule.at.path)));
  const int dirfd = call.rule.at.dirfd < 0 ? AT_FDCWD : call.IntArg(call.rule.at.dirfd);
  return OpenPath(call, dirfd, path, {call.Flags(), static_cast<mode_t>(call.Value(0))});
}

// With resolve flags: the kernel itself applies them on our side of the project, where the tree is the same.
Answer OpenRestricted(Call& call, int dirfd, std::string path, const OpenHow& how) {
  const OpenRequest request{static_cast<int>(how.flags), static_cast<mode_t>(how.mode)};
  DirPtr base;
  std::string_view rest;
  if (path.starts_with('/')) {
    if ((how.resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) == 0)
      base = call.shared.resolver.ProjectOf(call.caller(), path, rest);
    if (base != nullptr) path = std::string(rest);
  }
  if (base == nullptr) {
    ANSWER_ASSIGN(base, call.shared.resolver.StartDir(call.caller(), dirfd));
  }
  if (base->project == nullptr) return Answer::Continue();
  const auto open = [&](const std::string& what, uint64_t flags) {
    ActAs as(call.status);
    open_how inner{.flags = flags | O_PATH | O_CLOEXEC,
                   .mode = 0,
                   .resolve = how.resolve | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    return Fd(static_cast<int>(
        ::syscall(SYS_openat2, base->fd.get(), what.c_str(), &inner, sizeof(inner))));
  };
  const bool stays = (request.flags & O_NOFOLLOW) != 0 ||
                     ((request.flags & O_CREAT) != 0 && (request.flags & O_EXCL) != 0);
  Fd found = open(path, stays ? O_NOFOLLOW : 0);
  if (found.valid()) {
    ANSWER_ASSIGN(const Object object,
                  call.shared.resolver.Identify(call.caller(), std::move(found)));
    if (IsTemporary(request.flags)) return OpenUnnamed(call, object, request);
    return OpenExisting(call, object, request.flags);
  }
  // Without a root of its own a path may lead out: then it is for the ordinary way to find.
  const bool rooted = (how.resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) != 0;
  if (errno == EXDEV && !rooted) return Answer::Continue();
  if (errno != ENOENT || (request.flags & O_CREAT) == 0) return Answer::Fail(errno);
  const size_t cut = path.rfind('/');
  Location at{.dir = base, .name = cut == std::string::npos ? path : path.substr(cut + 1)};
  if (at.name.empty()) return Answer::Fail(EISDIR);
  if (cut != std::string::npos) {
    Fd dir = open(cut == 0 ? "/" : path.substr(0, cut), O_DIRECTORY);
    if (!dir.valid()) return Answer::Fail(errno);
    ANSWER_ASSIGN(Object object, call.shared.resolver.Identify(call.caller(), std::move(dir)));
    if (object.project == nullptr) return Answer::Continue();
    at.dir = std::make_shared<const Dir>(
        Dir{object.project, std::move(object.fd), std::move(object.path)});
  }
  Answer answer = OpenNew(call, at, request);
  // A dangling symlink: nothing is created through it here.
  if (answer.kind == Answer::Kind::kFail && answer.value == EEXIST && (request.flags & O_EXCL) == 0)
    return Answer::Fail(ENOENT);
  return answer;
}

Answer Open2(Call& call) {
  const uint64_t size = call.Value(1);
  if (size > kMaxOpenHow) return Answer::Fail(E2BIG);
  ANSWER_ASSIGN(const Bytes raw, call.task.ReadBytes(call.Value(0), size));
  ANSWER_ASSIGN(const OpenHow how, DecodeOpenHow(raw));
  if (const Status valid = CheckOpenHow(how); !valid.ok()) return Fail(valid.error());
  ANSWER_ASSIGN(const std::string path, call.task.ReadText(call.Arg(call.rule.at.path)));
  const int dirfd = call.IntArg(call.rule.at.dirfd);
  const OpenRequest request{static_cast<int>(how.flags), static_cast<mode_t>(how.mode)};
  const bool changes = Writes(request.flags) || (request.flags & (O_CREAT | O_TRUNC)) != 0;
  if (!changes || (request.flags & O_PATH) != 0) return Answer::Continue();
  if (path.empty()) return Answer::Fail(ENOENT);
  return how.resolve == 0 ? OpenPath(call, dirfd, path, request)
                          : OpenRestricted(call, dirfd, path, how);
}

// RLIMIT_FSIZE is the caller's, and so is the signal.
bool ExceedsLimit(Call& call, int fd, uint64_t size) {
  struct stat st;
  if (::fstat(fd, &st) != 0 || size <= static_cast<uint64_t>(st.st_size)) return false;
  const auto limit = call.task.FileSizeLimit();
  if (!limit || size <= *limit) return false;
  call.task.Signal(SIGXFSZ);
  return true;
}

Answer TruncateFile(Call& call) {
  const auto size = static_cast<off_t>(call.Value(0));
  if (size < 0) return Answer::Fail(EINVAL);
  ANSWER_ASSIGN(const Object object, TargetOf(call, Follow::kYes, 0));
  const bool by_fd = call.rule.fd >= 0;
  if (object.project == nullptr && !by_fd) return Answer::Continue();
  if (!by_fd && S_ISDIR(object.mode)) return Answer::Fail(EISDIR);
  if (!by_fd && !S_ISREG(object.mode)) return Answer::Fail(EINVAL);
  if (ExceedsLimit(call, object.fd.get(), static_cast<uint64_t>(size))) return Answer::Fail(EFBIG);
  // Never continued: the number could mean another file by then.
  if (object.project == nullptr)
    return Plainly(call, [&] { return ::ftruncate(object.fd.get(), size); });
  if (by_fd) {
    const int flags = ::fcntl(object.fd.get(), F_GETFL);
    // Not ours to change: a descriptor for reading is found again as O_PATH.
    if ((flags & O_PATH) != 0 || !Writes(flags)) return Answer::Fail(EINVAL);
  } else {
    ActAs as(call.status);
    if (::syscall(SYS_faccessat2, object.fd.get(), "", W_OK, AT_EMPTY_PATH | AT_EACCESS) != 0)
      return Answer::Fail(errno);
  }
  return Complete(
      call,
      object.project->interceptor->BeginContent(
          object.ref(), ContentChange::TruncateTo(static_cast<uint64_t>(size))),
      [&](const Ticket& ticket) {
        if (by_fd) return ::ftruncate(object.fd.get(), size);
        const int held = ticket.replaced() ? ticket.fresh_fd() : object.fd.get();
        const Fd file(::open(MagicPath(held).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
        return file.valid() ? ::ftruncate(file.get(), size) : -1;
      });
}

Answer Allocate(Call& call) {
  const int mode = static_cast<int>(call.Value(0));
  const auto offset = static_cast<off_t>(call.Value(1)), length = static_cast<off_t>(call.Value(2));
  ANSWER_ASSIGN(const Object object, TargetOf(call, Follow::kYes, 0));
  const auto allocate = [&] { return ::fallocate(object.fd.get(), mode, offset, length); };
  if (offset < 0 || length <= 0) return Answer::Fail(EINVAL);
  if ((mode & FALLOC_FL_KEEP_SIZE) == 0 &&
      ExceedsLimit(call, object.fd.get(),
                   static_cast<uint64_t>(offset) + static_cast<uint64_t>(length)))
    return Answer::Fail(EFBIG);
  if (object.project == nullptr) return Plainly(call, allocate);
  const int flags = ::fcntl(object.fd.get(), F_GETFL);
  if ((flags & O_PATH) != 0 || !Writes(flags)) return Answer::Fail(EBADF);
  // Collapsing and inserting move everything behind.
  const bool moves = (mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)) != 0;
  const ContentChange change =
      moves ? ContentChange::Whole()
            : ContentChange::Range(static_cast<uint64_t>(offset), static_cast<uint64_t>(length));
  return Complete(call, object.project->interceptor->BeginContent(object.ref(), change),
                  [&](const Ticket&) { return allocate(); });
}

// Metadata.

using BeginObject = Result<Ticket> (Interceptor::*)(const undo::ObjectRef&);

// Calls on descriptors are never continued, wherever they lead: the number could mean another file by then.
Answer Change(Call& call, const Object& object, BeginObject begin,
              const std::function<int(int fd)>& change) {
  if (object.project == nullptr) {
    if (call.rule.fd < 0) return Answer::Continue();
    return Plainly(call, [&] { return change(object.fd.get()); });
  }
  return Complete(call, (object.project->interceptor->*begin)(object.ref()),
                  [&](const Ticket& ticket) {
                    return change(ticket.replaced() ? ticket.fresh_fd() : object.fd.get());
                  });
}

// A descriptor opened with O_PATH changes nothing, though what stands for it here could.
bool IsPathOnly(Call& call) {
  if (call.rule.fd < 0) return false;
  const Result<Fd> own = call.task.CopyFd(call.IntArg(call.rule.fd));
  return own.ok() && (::fcntl(own->get(), F_GETFL) & O_PATH) != 0;
}

Answer Chmod(Call& call) {
  const int flags = call.Flags();
  if (IsPathOnly(call)) return Answer::Fail(EBADF);
  ANSWER_ASSIGN(const Object object, TargetOf(call, FollowUnless(flags), flags));
  const auto mode = static_cast<mode_t>(call.Value(0));
  if (S_ISLNK(object.mode) && object.project != nullptr) return Answer::Fail(EOPNOTSUPP);
  return Change(call, object, &Interceptor::BeginMetadata, [&](int fd) {
    const long done = ::syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH);
    if (done == 0 || errno != ENOSYS) return static_cast<int>(done);
    return ::chmod(MagicPath(fd).c_str(), mode);
  });
}

Answer Chown(Call& call) {
  const int flags = call.Flags();
  if (IsPathOnly(call)) return Answer::Fail(EBADF);
  ANSWER_ASSIGN(const Object object, TargetOf(call, FollowUnless(flags), flags));
  const auto uid = static_cast<uid_t>(call.Value(0));
  const auto gid = static_cast<gid_t>(call.Value(1));
  return Change(call, object, &Interceptor::BeginMetadata,
                [&](int fd) { return ::fchownat(fd, "", uid, gid, AT_EMPTY_PATH); });
}

Answer SetTimes(Call& call) {
  const auto layout = static_cast<TimeLayout>(call.rule.fixed);
  const int flags = call.rule.flags < 0 ? 0 : call.IntArg(call.rule.flags);
  std::optional<Times> times;
  if (call.Value(0) != 0) {
    ANSWER_ASSIGN(const Bytes raw, call.task.ReadBytes(call.Value(0), TimesSize(layout)));
    ANSWER_ASSIGN(times, DecodeTimes(raw, layout));
  }
  const bool by_fd = call.rule.at.dirfd >= 0 && call.Arg(call.rule.at.path) == 0;
  Result<Object> target =
      by_fd ? call.shared.resolver.FindFd(call.caller(), call.IntArg(call.rule.at.dirfd))
            : TargetOf(call, FollowUnless(flags), flags);
  ANSWER_ASSIGN(const Object object, std::move(target));
  const auto change = [&](int fd) {
    return static_cast<int>(
        ::syscall(SYS_utimensat, fd, "", times ? times->data() : nullptr, AT_EMPTY_PATH));
  };
  if (by_fd && object.project == nullptr)
    return Plainly(call, [&] { return change(object.fd.get()); });
  return Change(call, object, &Interceptor::BeginMetadata, change);
}

// Through /proc, because an O_PATH descriptor takes no attributes; a symlink's own are never set by users.
Answer SetXattr(Call& call) {
  if (IsPathOnly(call)) return Answer::Fail(EBADF);
  ANSWER_ASSIGN(const std::string name, call.task.ReadText(call.Value(0)));
  const uint64_t size = call.Value(2);
  if (size > kMaxXattrValue) return Answer::Fail(E2BIG);
  ANSWER_ASSIGN(const Bytes value, call.task.ReadBytes(call.Value(1), size));
  ANSWER_ASSIGN(const Object object, TargetOf(call, FollowUnless(call.Flags()), 0));
  const int flags = static_cast<int>(call.Value(3));
  if (S_ISLNK(object.mode) && object.project != nullptr) return Answer::Fail(EPERM);
  return Change(call, object, &Interceptor::BeginXattr, [&](int fd) {
    return ::setxattr(MagicPath(fd).c_str(), name.c_str(), value.data(), value.size(), flags);
  });
}

Answer RemoveXattr(Call& call) {
  if (IsPathOnly(call)) return Answer::Fail(EBADF);
  ANSWER_ASSIGN(const std::string name, call.task.ReadText(call.Value(0)));
  ANSWER_ASSIGN(const Object object, TargetOf(call, FollowUnless(call.Flags()), 0));
  if (S_ISLNK(object.mode) && object.project != nullptr) return Answer::Fail(EPERM);
  return Change(call, object, &Interceptor::BeginXattr,
                [&](int fd) { return ::removexattr(MagicPath(fd).c_str(), name.c_str()); });
}

Answer SetInodeFlags(Call& call) {
  const auto command = static_cast<uint32_t>(call.Value(0));
  const size_t size =
      command == static_cast<uint32_t>(FS_IOC_SETFLAGS) ? sizeof(int) : sizeof(fsxattr);
  if (IsPathOnly(call)) return Answer::Fail(EBADF);
  ANSWER_ASSIGN(Bytes argument, call.task.ReadBytes(call.Value(1), size));
  argument.resize(64);
  ANSWER_ASSIGN(const Object object, TargetOf(call, Follow::kYes, 0));
  return Change(call, object, &Interceptor::BeginFlags, [&](int fd) {
    const Fd file(::open(MagicPath(fd).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    return file.valid() ? ::ioctl(file.get(), command, argument.data()) : -1;
  });
}

// Questions.

Answer Access(Call& call) {
  const int flags = call.Flags();
  ANSWER_ASSIGN(const Object object, TargetOf(call, FollowUnless(flags), flags));
  if (object.project == nullptr) return Answer::Continue();
  ActAs as(call.status, (flags & AT_EACCESS) != 0 ? ActAs::For::kLookup : ActAs::For::kRealUser);
  const long allowed =
      ::syscall(SYS_faccessat2, object.fd.get(), "", call.Value(0), AT_EMPTY_PATH | AT_EACCESS);
  return allowed == 0 ? Answer::Return(0) : Answer::Fail(errno);
}

// The project is writable, whatever its mount says.
Answer StatFs(Call& call) {
  const Result<Object> object = TargetOf(call, Follow::kYes, 0);
  if (!object.ok() || object->project == nullptr) return Answer::Continue();
  struct statfs st;
  if (::fstatfs(object->fd.get(), &st) != 0) return Answer::Fail(errno);
  if (!call.listener.IsWaiting(call.id)) return Answer::Gone();
  const ByteView bytes(reinterpret_cast<const uint8_t*>(&st), sizeof(st));
  if (const Status written = call.task.WriteBytes(call.Value(0), bytes); !written.ok())
    return Fail(written.error());
  return Answer::Return(0);
}

// Sockets.

Result<std::optional<std::string>> UnixPathOf(Call& call) {
  const uint64_t size = call.Value(1);
  if (size > sizeof(sockaddr_storage)) return std::optional<std::string>();
  TRY_ASSIGN(Bytes address, call.task.ReadBytes(call.Value(0), size));
  return DecodeUnixPath(address);
}

Answer BindSocket(Call& call) {
  ANSWER_ASSIGN(const std::optional<std::string> path, UnixPathOf(call));
  if (!path) return Answer::Continue();
  ANSWER_ASSIGN(const Location at, call.shared.resolver.FindName(call.caller(), AT_FDCWD, *path));
  if (!at.ours()) return Answer::Continue();
  ANSWER_ASSIGN(const Fd socket, call.task.CopyFd(call.IntArg(call.rule.fd)));
  struct stat st;
  if (::fstatat(at.dir->fd.get(), at.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0)
    return Answer::Fail(EADDRINUSE);
  sockaddr_un address{.sun_family = AF_UNIX};
  if (at.name.size() >= sizeof(address.sun_path)) return Answer::Fail(ENAMETOOLONG);
  std::memcpy(address.sun_path, at.name.c_str(), at.name.size() + 1);
  Answer answer =
      Complete(call, at.dir->project->interceptor->BeginCreate(at.ref(), NodeType::kSocket),
               [&](const Ticket&) {
                 // An address has no room for a long path; this thread has a working directory of its own.
                 if (::fchdir(at.dir->fd.get()) != 0) return -1;
                 const int bound = ::bind(
                     socket.get(), reinterpret_cast<const sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + at.name.size() + 1));
                 const int failure = errno;
                 CHECK(::chdir("/") == 0);
                 errno = failure;
                 return bound;
               });
  if (answer.kind == Answer::Kind::kReturn &&
      ::fstatat(at.dir->fd.get(), at.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0)
    call.shared.sockets.Add(st.st_dev, st.st_ino);
  return answer;
}

// Through the read-only mount a task would reach sockets of the host.
Answer ConnectSocket(Call& call) {
  ANSWER_ASSIGN(const std::optional<std::string> path, UnixPathOf(call));
  if (!path) return Answer::Continue();
  ANSWER_ASSIGN(const Object object,
                call.shared.resolver.FindObject(call.caller(), AT_FDCWD, *path, Follow::kYes));
  if (object.project == nullptr) return Answer::Continue();
  struct stat st;
  if (::fstat(object.fd.get(), &st) != 0) return Answer::Fail(errno);
  if (!S_ISSOCK(st.st_mode) || !call.shared.sockets.Has(st.st_dev, st.st_ino))
    return Answer::Fail(ECONNREFUSED);
  ANSWER_ASSIGN(const Fd socket, call.task.CopyFd(call.IntArg(call.rule.fd)));
  sockaddr_un address{.sun_family = AF_UNIX};
  const std::string magic = MagicPath(object.fd.get());
  std::memcpy(address.sun_path, magic.c_str(), magic.size() + 1);
  return Plainly(call, [&] {
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  });
}

// Bookkeeping.

Answer NoteUmask(Call& call) {
  call.shared.tasks.NoteUmask(call.task, static_cast<mode_t>(call.Value(0)));
  return Answer::Continue();
}

Answer NoteRoot(Call& call) {
  call.shared.resolver.NoteRootChange();
  return Answer::Continue();
}

Answer NoteCredentials(Call& call) {
  call.shared.tasks.Forget(call.task.tid());
  return Answer::Continue();
}

Answer LeaveAlone(Call&) { return Answer::Continue(); }

using Function = Answer (*)(Call&);

constexpr std::array<Function, kHandlers> MakeFunctions() {
  std::array<Function, kHandlers> functions{};
  const auto set = [&](Handler handler, Function function) {
    functions[static_cast<size_t>(handler)] = function;
  };
  set(Handler::kOpen, Open);
  set(Handler::kOpen2, Open2);
  set(Handler::kRemove, Remove);
  set(Handler::kRename, Rename);
  set(Handler::kLink, MakeLink);
  set(Handler::kSymlink, MakeSymlink);
  set(Handler::kMakeDir, MakeDir);
  set(Handler::kMakeNode, MakeNode);
  set(Handler::kTruncate, TruncateFile);
  set(Handler::kAllocate, Allocate);
  set(Handler::kChmod, Chmod);
  set(Handler::kChown, Chown);
  set(Handler::kSetTimes, SetTimes);
  set(Handler::kSetXattr, SetXattr);
  set(Handler::kRemoveXattr, RemoveXattr);
  set(Handler::kSetInodeFlags, SetInodeFlags);
  set(Handler::kAccess, Access);
  set(Handler::kStatFs, StatFs);
  set(Handler::kBind, BindSocket);
  set(Handler::kConnect, ConnectSocket);
  set(Handler::kUmask, NoteUmask);
  set(Handler::kRoot, NoteRoot);
  set(Handler::kCredentials, NoteCredentials);
  set(Handler::kNone, LeaveAlone);
  return functions;
}

constexpr std::array<Function, kHandlers> kFunctions = MakeFunctions();
static_assert(
    [] {
      for (const Function function : kFunctions) {
        if (function == nullptr) return false;
      }
      return true;
    }(),
    "every handler has its function");

}  // namespace

Answer Perform(Call& call) { return kFunctions[static_cast<size_t>(call.rule.handler)](call); }

}  // namespace sandglass::bridge
