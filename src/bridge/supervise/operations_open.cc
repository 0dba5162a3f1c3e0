// Opens that change something: for writing, creating, truncating.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <optional>

#include "base/rel_path.h"
#include "bridge/supervise/decode.h"
#include "bridge/supervise/handlers.h"

namespace sandglass::bridge {

using undo::NodeType;
using undo::Outcome;
using undo::Ticket;
using undo::Truncate;

namespace {

struct OpenRequest {
  int flags = 0;
  mode_t mode = 0;
};

// Before anything is changed; none is needed where nobody will write.
Status MakeRoom(Call& call, int flags) {
  return Writes(flags) ? call.shared.writers.MakeRoom() : Ok();
}

// Before the operation is committed: whoever closes the step after that must know of the writer. One that cannot be known of is none.
void NoteWriter(Call& call, const Project& project, Fd& file, int flags) {
  if (Writes(flags) && !call.shared.writers.Add(project, file.get())) file.Reset();
}

Answer HandOver(Fd file, int flags) {
  if (!file.valid()) return Answer::Fail(ENFILE);
  return {.kind = Answer::Kind::kHandOver,
          .value = 0,
          .fd = std::move(file),
          .fd_flags = static_cast<uint32_t>(flags & O_CLOEXEC)};
}

bool IsSameFile(int one, int other) {
  struct stat a, b;
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

// A descriptor for reading must not lie on our mount: it could be reopened there for changes that nobody sees. So the file is
// opened once more where the world has it. The name may lead elsewhere by now, and we may see more than the caller: only what
// is the same file is handed over.
Answer HandOverForReading(Call& call, const Project& project, const std::string& path,
                          const Fd& ours, int flags) {
  constexpr int kKept = O_NONBLOCK | O_NOATIME | O_DIRECT | O_SYNC | O_ASYNC | O_APPEND;
  const std::string inside = project.path.substr(1) + "/" + path;
  open_how how{.flags = static_cast<uint64_t>(flags & kKept) | O_CLOEXEC,
               .mode = 0,
               .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};
  Fd file(static_cast<int>(
      ::syscall(SYS_openat2, call.view.root(), inside.c_str(), &how, sizeof(how))));
  if (!file.valid()) return Answer::Fail(errno);
  if (!IsSameFile(file.get(), ours.get())) return Answer::Fail(ENOENT);
  return HandOver(std::move(file), flags);
}

// A read-only mount keeps nobody from writing to a FIFO, and whoever reads from it is on the host.
bool IsFifoOfTheHost(const Object& object) {
  return object.project == nullptr && S_ISFIFO(object.mode) && IsOnReadOnlyMount(object.fd.get());
}

Answer OpenExisting(Call& call, const Object& object, int flags) {
  if (Writes(flags) && IsFifoOfTheHost(object)) return Answer::Fail(EACCES);
  if (object.project == nullptr) return Answer::Continue();
  if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return Answer::Fail(EEXIST);
  if (S_ISLNK(object.mode)) return Answer::Fail(ELOOP);
  if (S_ISDIR(object.mode)) return Answer::Fail(EISDIR);
  if ((flags & O_DIRECTORY) != 0) return Answer::Fail(ENOTDIR);
  // Pipes, sockets and devices can be opened through a read-only mount, and may block.
  if (!S_ISREG(object.mode)) return Answer::Continue();
  if (!Writes(flags) && (flags & O_TRUNC) == 0) return Answer::Continue();
  // Before anything is kept or replaced on the caller's behalf.
  const int access = ((flags & O_ACCMODE) == O_WRONLY ? 0 : R_OK) | W_OK;
  if (const int forbidden = AccessForbidden(call, object.fd.get(), access))
    return Answer::Fail(forbidden);
  if (const Status room = MakeRoom(call, flags); !room.ok()) return Fail(room.error());
  Fd file;
  const auto truncate = (flags & O_TRUNC) != 0 ? Truncate::kYes : Truncate::kNo;
  Result<Ticket> ticket = object.project->interceptor->BeginOpenForWrite(
      object.ref(), truncate, undo::WriteVisibility::kUnseen);
  if (!ticket.ok()) return Refuse(call, ticket.error());
  if (!call.listener.IsWaiting(call.id)) {
    ticket->Cancel();
    return Answer::Gone();
  }
  const int held = ticket->replaced() ? ticket->fresh_fd() : object.fd.get();
  const int done = O_CREAT | O_EXCL | O_NOFOLLOW | (ticket->performed() ? O_TRUNC : 0);
  int failure = 0;
  {
    ActAs as(call.status, ActAs::For::kNames);
    file = Fd(::open(MagicPath(held).c_str(), (flags & ~done) | O_CLOEXEC | O_NOCTTY));
    failure = file.valid() ? 0 : errno;
  }
  if (file.valid()) NoteWriter(call, *object.project, file, flags);
  (void)ticket->Commit(failure == 0 ? Outcome::Done() : Outcome::Failed(failure));
  if (failure != 0) return Answer::Fail(failure);
  if (!Writes(flags)) return HandOverForReading(call, *object.project, object.path, file, flags);
  return HandOver(std::move(file), flags);
}

// EEXIST with O_EXCL missing: somebody was faster.
Answer OpenNew(Call& call, const Location& at, OpenRequest request) {
  if (const Status room = MakeRoom(call, request.flags); !room.ok()) return Fail(room.error());
  Fd file;
  const int flags = (request.flags & ~O_TRUNC) | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY;
  const std::string name = at.raw_name();
  Answer made = Complete(
      call, at.dir->project->interceptor->BeginCreate(at.ref(), NodeType::kFile),
      [&](const Ticket&) {
        file = Fd(::openat(at.dir->fd.get(), name.c_str(), flags, request.mode & 07777));
        if (!file.valid()) return -1;
        NoteWriter(call, *at.dir->project, file, request.flags);
        return 0;
      },
      ActAs::For::kCreate);
  if (made.kind != Answer::Kind::kReturn) return made;
  if (!Writes(request.flags))
    return HandOverForReading(call, *at.dir->project, JoinPath(at.dir->path, at.name), file,
                              request.flags);
  return HandOver(std::move(file), request.flags);
}

Answer OpenUnnamed(Call& call, const Object& dir, OpenRequest request) {
  if (dir.project == nullptr) return Answer::Continue();
  if (!S_ISDIR(dir.mode)) return Answer::Fail(ENOTDIR);
  if (const Status room = MakeRoom(call, request.flags); !room.ok()) return Fail(room.error());
  if (!call.listener.IsWaiting(call.id)) return Answer::Gone();
  Fd file;
  {
    ActAs as(call.status, ActAs::For::kCreate);
    file = Fd(::openat(dir.fd.get(), ".", request.flags | O_CLOEXEC, request.mode & 07777));
    if (!file.valid()) return Answer::Fail(errno);
  }
  NoteWriter(call, *dir.project, file, request.flags);
  return HandOver(std::move(file), request.flags);
}

// Whoever wants a new file or none needs no look at the name: recording looks, and says EEXIST. Then, and where the name is no
// plain one, the ordinary way finds out what is to be answered (nullopt).
std::optional<Answer> OpenExclusive(Call& call, int dirfd, const std::string& path,
                                    OpenRequest request) {
  const Result<Location> at = call.shared.resolver.FindName(call.caller(), dirfd, path);
  if (!at.ok()) return Fail(at.error());
  const std::string& name = at->name;
  if (!at->ours() || name == "." || name == ".." || name.size() > NAME_MAX) return std::nullopt;
  Answer answer = OpenNew(call, *at, request);
  if (answer.kind == Answer::Kind::kFail && answer.value == EEXIST) return std::nullopt;
  return answer;
}

bool IsTemporary(int flags) { return (flags & O_TMPFILE) == O_TMPFILE; }

Answer OpenPath(Call& call, int dirfd, const std::string& path, OpenRequest request) {
  const int flags = request.flags;
  const bool changes = Writes(flags) || (flags & (O_CREAT | O_TRUNC)) != 0 || IsTemporary(flags);
  if ((flags & O_PATH) != 0 || !changes) return Answer::Continue();
  const bool creates = (flags & O_CREAT) != 0;
  if (IsTemporary(flags) ? creates || !Writes(flags) : creates && (flags & O_DIRECTORY) != 0)
    return Answer::Fail(EINVAL);
  // Only a folder's name may end so, and none is made here.
  if (creates && path.ends_with('/')) {
    ANSWER_ASSIGN(const Location at, call.shared.resolver.FindName(call.caller(), dirfd, path));
    return at.ours() ? Answer::Fail(EISDIR) : Answer::Continue();
  }
  const bool exclusive = creates && (flags & O_EXCL) != 0;
  if (exclusive) {
    if (std::optional<Answer> answer = OpenExclusive(call, dirfd, path, request))
      return std::move(*answer);
  }
  const bool stays = exclusive || (flags & O_NOFOLLOW) != 0;
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

}  // namespace

Answer Open(Call& call) {
  ANSWER_ASSIGN(const std::string path, call.task.ReadText(call.Arg(call.rule.at.path)));
  const int dirfd = call.rule.at.dirfd < 0 ? AT_FDCWD : call.IntArg(call.rule.at.dirfd);
  return OpenPath(call, dirfd, path, {call.Flags(), static_cast<mode_t>(call.Value(0))});
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

}  // namespace sandglass::bridge
