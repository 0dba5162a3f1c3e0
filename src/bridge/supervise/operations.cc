#include "bridge/supervise/operations.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "bridge/supervise/handlers.h"

namespace sandglass::bridge {

using undo::Outcome;
using undo::Ticket;

Answer Fail(const Error& error) { return Answer::Fail(ErrnoFor(error)); }

Answer Refuse(Call& call, const Error& error) {
  if (error.code() == Code::kLimit || error.code() == Code::kUnsupported ||
      error.code() == Code::kNotRestorable)
    call.shared.refusals.Note(error);
  return Fail(error);
}

std::string MagicPath(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

Answer Complete(Call& call, Result<Ticket> ticket,
                const std::function<int(const Ticket&)>& operation, ActAs::For purpose) {
  if (!ticket.ok()) return Refuse(call, ticket.error());
  // Asking may have taken long.
  if (!call.listener.IsWaiting(call.id)) {
    ticket->Cancel();
    return Answer::Gone();
  }
  int failure = 0;
  if (!ticket->performed()) {
    ActAs as(call.status, purpose);
    failure = operation(*ticket) < 0 ? errno : 0;
  }
  // That the outcome could not be recorded leaves the operation as it is.
  (void)ticket->Commit(failure == 0 ? Outcome::Done() : Outcome::Failed(failure));
  return failure == 0 ? Answer::Return(0) : Answer::Fail(failure);
}

Result<Location> LocateArg(Call& call, const PathArg& arg) {
  TRY_ASSIGN(std::string path, call.task.ReadText(call.Arg(arg.path)));
  const int dirfd = arg.dirfd < 0 ? AT_FDCWD : call.IntArg(arg.dirfd);
  TRY_ASSIGN(Location at,
             call.shared.resolver.FindName(call.caller(), dirfd, path, &call.last_dir));
  if (at.ours() && at.name.size() > NAME_MAX) return Error::FromErrno(ENAMETOOLONG, "name");
  return at;
}

Answer Plainly(Call& call, const std::function<int()>& operation) {
  if (!call.listener.IsWaiting(call.id)) return Answer::Gone();
  ActAs as(call.status);
  return operation() < 0 ? Answer::Fail(errno) : Answer::Return(0);
}

Result<Object> TargetOf(Call& call, Follow follow, int flags) {
  Resolver& resolver = call.shared.resolver;
  if (call.rule.fd >= 0) return resolver.FindFd(call.caller(), call.IntArg(call.rule.fd));
  const int dirfd = call.rule.at.dirfd < 0 ? AT_FDCWD : call.IntArg(call.rule.at.dirfd);
  TRY_ASSIGN(std::string path, call.task.ReadText(call.Arg(call.rule.at.path)));
  if (path.empty() && (flags & AT_EMPTY_PATH) != 0) {
    if (dirfd != AT_FDCWD) return resolver.FindFd(call.caller(), dirfd);
    path = ".";
  }
  return resolver.FindObject(call.caller(), dirfd, path, follow, nullptr, &call.last_dir);
}

Follow FollowUnless(int flags) {
  return (flags & AT_SYMLINK_NOFOLLOW) != 0 ? Follow::kNo : Follow::kYes;
}

bool HasOthers(int flags, int known) { return (flags & ~known) != 0; }

bool Writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

int AccessForbidden(Call& call, int object, int access) {
  ActAs as(call.status, ActAs::For::kNames);
  const long allowed = ::syscall(SYS_faccessat2, object, "", access, AT_EMPTY_PATH | AT_EACCESS);
  return allowed == 0 ? 0 : errno;
}

bool IsOnReadOnlyMount(int fd) {
  struct statfs st;
  return ::fstatfs(fd, &st) != 0 || (st.f_flags & ST_RDONLY) != 0;
}

namespace {

// Questions.

Answer Access(Call& call) {
  const int flags = call.Flags();
  if (HasOthers(flags, AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) ||
      HasOthers(static_cast<int>(call.Value(0)), R_OK | W_OK | X_OK))
    return Answer::Fail(EINVAL);
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

// Bookkeeping.

Answer NoteUmask(Call& call) {
  if (!call.listener.IsWaiting(call.id)) return Answer::Gone();
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
  set(Handler::kSocket, MakeSocket);
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
