// Calls that change names: unlink, rename, mkdir, mknod, symlink, link and their relatives.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "bridge/supervise/handlers.h"

namespace sandglass::bridge {

using undo::NodeType;
using undo::RenameMode;
using undo::Ticket;

namespace {

// "." and ".." are no names that could change: the kernel says what is wrong.
bool IsDots(const Location& at) { return at.name == "." || at.name == ".."; }

// An answer that the kernel would give, and without asking it to try: by then the name could be another's, and what was done to
// that would not be recorded. Who may not look into the folder gets no answer.
Answer FailKnown(Call& call, const Location& at, int failure) {
  const int hidden = AccessForbidden(call, at.dir->fd.get(), X_OK);
  return Answer::Fail(hidden != 0 ? hidden : failure);
}

// May the caller take names out of the folder? Asked where the interceptor could perform the operation with our own rights.
int RemovalForbidden(Call& call, const Location& at) {
  if (call.status.fs_uid == 0 && HasOurRights(call.status))
    return 0;  // nothing is forbidden to root
  ActAs as(call.status, ActAs::For::kNames);
  if (::faccessat(at.dir->fd.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) return errno;
  struct stat dir, object;
  if (::fstatat(at.dir->fd.get(), ".", &dir, 0) != 0 || (dir.st_mode & S_ISVTX) == 0) return 0;
  if (::fstatat(at.dir->fd.get(), at.name.c_str(), &object, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  constexpr uint64_t kFowner = 1ull << 3;
  const bool may = call.status.fs_uid == dir.st_uid || call.status.fs_uid == object.st_uid ||
                   (call.status.effective & kFowner) != 0;
  return may ? 0 : EPERM;
}

// What a rename replaces is moved away by the interceptor, perhaps; a name that is free only needs a writable folder.
int ReplacementForbidden(Call& call, const Location& at) {
  const int forbidden = RemovalForbidden(call, at);
  return forbidden == ENOENT ? 0 : forbidden;
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

// A name that is of no project and cannot be reached is told before anything else.
int UnreachableOf(const Location& at) { return at.ours() ? 0 : at.dir->failure; }

Answer Create(Call& call, const Location& at, NodeType type,
              const std::function<int(int, const char*)>& create) {
  const std::string name = at.raw_name();
  const int dir = at.dir->fd.get();
  struct stat st;
  if (IsDots(at)) return Plainly(call, [&] { return create(dir, name.c_str()); });
  if (::fstatat(dir, at.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0)
    return FailKnown(call, at, EEXIST);
  return Complete(
      call, at.dir->project->interceptor->BeginCreate(at.ref(), type),
      [&](const Ticket&) { return create(dir, name.c_str()); }, ActAs::For::kCreate);
}

}  // namespace

Answer Remove(Call& call) {
  const int flags = call.Flags();
  if (HasOthers(flags, AT_REMOVEDIR)) return Answer::Fail(EINVAL);
  ANSWER_ASSIGN(const Location at, LocateArg(call, call.rule.at));
  if (!at.ours()) return Answer::Continue();
  const std::string name = at.raw_name();
  const auto remove = [&] { return ::unlinkat(at.dir->fd.get(), name.c_str(), flags); };
  if (IsDots(at)) return Plainly(call, remove);
  struct stat st;
  if (::fstatat(at.dir->fd.get(), at.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
    return FailKnown(call, at, errno);
  const bool folder = S_ISDIR(st.st_mode), slash = at.slash == Location::Slash::kTrailing;
  const bool wrong_kind = folder != ((flags & AT_REMOVEDIR) != 0);
  if (slash && wrong_kind) return FailKnown(call, at, folder ? EISDIR : ENOTDIR);
  if (const int forbidden = RemovalForbidden(call, at)) return Answer::Fail(forbidden);
  if (wrong_kind || (slash && !folder)) return Answer::Fail(folder ? EISDIR : ENOTDIR);
  return Complete(
      call, at.dir->project->interceptor->BeginRemove(at.ref()),
      [&](const Ticket&) { return remove(); }, ActAs::For::kNames);
}

Answer Rename(Call& call) {
  const auto flags = static_cast<unsigned>(call.Flags());
  const auto mode = RenameModeOf(flags);
  if (!mode) return Answer::Fail(EINVAL);
  ANSWER_ASSIGN(const Location from, LocateArg(call, call.rule.at));
  ANSWER_ASSIGN(const Location to, LocateArg(call, call.rule.to));
  if (!from.ours() && !to.ours()) return Answer::Continue();
  if (const int failure = UnreachableOf(from)) return Answer::Fail(failure);
  if (const int failure = UnreachableOf(to)) return Answer::Fail(failure);
  if (!from.ours() || !to.ours() || from.dir->project != to.dir->project)
    return Answer::Fail(EXDEV);
  const std::string old_name = from.raw_name(), new_name = to.raw_name();
  const auto rename = [&] {
    return ::renameat2(from.dir->fd.get(), old_name.c_str(), to.dir->fd.get(), new_name.c_str(),
                       flags);
  };
  if (IsDots(from) || IsDots(to)) return Plainly(call, rename);
  struct stat st;
  if (::fstatat(from.dir->fd.get(), from.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
    return FailKnown(call, from, errno);
  if (const int forbidden = RemovalForbidden(call, from)) return Answer::Fail(forbidden);
  if (*mode != RenameMode::kNoReplace) {
    if (const int forbidden = ReplacementForbidden(call, to)) return Answer::Fail(forbidden);
  }
  return Complete(
      call, from.dir->project->interceptor->BeginRename(from.ref(), to.ref(), *mode),
      [&](const Ticket&) { return rename(); }, ActAs::For::kNames);
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

Answer MakeLink(Call& call) {
  const int flags = call.Flags();
  if (HasOthers(flags, AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)) return Answer::Fail(EINVAL);
  ANSWER_ASSIGN(
      const Object object,
      TargetOf(call, (flags & AT_SYMLINK_FOLLOW) != 0 ? Follow::kYes : Follow::kNo, flags));
  ANSWER_ASSIGN(const Location to, LocateArg(call, call.rule.to));
  if (object.project == nullptr && !to.ours()) return Answer::Continue();
  if (const int failure = UnreachableOf(to)) return Answer::Fail(failure);
  if (IsDots(to)) return Answer::Fail(EEXIST);
  if (object.project == nullptr || !to.ours() || object.project != to.dir->project) {
    // A missing source is told as such.
    return object.fd.valid() || object.project != nullptr ? Answer::Fail(EXDEV)
                                                          : Answer::Continue();
  }
  if (S_ISDIR(object.mode)) {
    struct stat st;
    if (::fstatat(to.dir->fd.get(), to.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0)
      return FailKnown(call, to, EEXIST);
    return Answer::Fail(EPERM);
  }
  Result<Ticket> ticket = object.project->interceptor->BeginLink(object.ref(), to.ref());
  if (!ticket.ok() && ticket.error().code() == Code::kExists) return FailKnown(call, to, EEXIST);
  return Complete(
      call, std::move(ticket),
      [&](const Ticket&) {
        return ::linkat(AT_FDCWD, MagicPath(object.fd.get()).c_str(), to.dir->fd.get(),
                        to.raw_name().c_str(), AT_SYMLINK_FOLLOW);
      },
      ActAs::For::kNames);
}

}  // namespace sandglass::bridge
