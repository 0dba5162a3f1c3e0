#include "undo/interceptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/rel_path.h"
#include "undo/attempt.h"
#include "undo/log_core.h"
#include "undo/renaming.h"

namespace sandglass::undo {

uint32_t FileTypeBits(NodeType type) {
  switch (type) {
    case NodeType::kFile:
      return S_IFREG;
    case NodeType::kDirectory:
      return S_IFDIR;
    case NodeType::kSymlink:
      return S_IFLNK;
    case NodeType::kFifo:
      return S_IFIFO;
    case NodeType::kSocket:
      return S_IFSOCK;
    case NodeType::kCharDevice:
      return S_IFCHR;
    case NodeType::kBlockDevice:
      return S_IFBLK;
  }
  return S_IFREG;
}

NodeType NodeTypeOf(uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return NodeType::kDirectory;
    case S_IFLNK:
      return NodeType::kSymlink;
    case S_IFIFO:
      return NodeType::kFifo;
    case S_IFSOCK:
      return NodeType::kSocket;
    case S_IFCHR:
      return NodeType::kCharDevice;
    case S_IFBLK:
      return NodeType::kBlockDevice;
    default:
      return NodeType::kFile;
  }
}

namespace {

// A name with a slash or `..` would lead somewhere else, out of the project perhaps, now and when the step is taken back.
Status CheckName(const NameRef& at) {
  if (IsName(at.name) && IsNormalRelPath(at.dir.path)) return Ok();
  return Error(Code::kInvalid,
               fmt::format("'{}' in '{}' is no name in a folder of the project: it must be one "
                           "component, and the folder a path from the project's root",
                           at.name, at.dir.path),
               EINVAL);
}

Error Exists(const Attempt::Dir& dir, const NameRef& at) {
  return Error(Code::kExists, fmt::format("{} exists", JoinPath(dir.path, at.name)), EEXIST);
}

Error Nameless() { return Error(Code::kNotFound, "the object has no name any more", ENOENT); }
}  // namespace

// --- Names.

Result<Ticket> Interceptor::BeginCreate(const NameRef& at, NodeType type) {
  TRY(CheckName(at));
  const uint32_t mode = FileTypeBits(type);
  const bool ignored = log_.Ignores(JoinPath(at.dir.path, at.name), mode);
  // Nothing ignored opens a step.
  if (ignored && !log_.OpenStepCarries()) return UnrecordedTicket();
  return Retry(log_, [&](Again& again) -> Result<Ticket> {
    Attempt attempt(log_, entrant_, again);
    TRY(attempt.Enter(StepGate::Way::kTogether));
    TRY_ASSIGN(auto dir, attempt.FindDir(at.dir));
    const std::string path = JoinPath(dir.path, at.name), name(at.name);
    if (ignored && attempt.LeavesOut(path, mode)) return UnrecordedTicket();
    attempt.HoldFirst({dir.id});
    if (NameExists(at.dir.fd, name.c_str())) return Exists(dir, at);
    TRY(attempt.TouchDir(dir));
    TRY_ASSIGN(attempt.state().seq,
               attempt.writer().IntendCreate(Attempt::At(dir, at.name), Birth::kNew, mode));
    attempt.state().intent = {IntentKind::kCreate, at.dir.fd, dir.id, name, kNoObject};
    return attempt.Finish();
  });
}

// A further name for something that this step made, and that has a name: only the name is to be recorded. nullopt: it is none such.
static Result<std::optional<Ticket>> BeginLinkOfBorn(Attempt& attempt, const Attempt::Dir& dir,
                                                     const ObjectRef& ref, const NameRef& at) {
  using Begun = std::optional<Ticket>;
  TRY_ASSIGN(const auto born, attempt.FindBorn(ref));
  if (!born) return Begun();
  TRY_ASSIGN(const FileStat stat, StatFd(ref.fd));
  if (stat.nlink == 0) return Begun();
  attempt.HoldFirst({dir.id});
  TRY(attempt.HoldAlso(*born));
  const std::string name(at.name);
  if (NameExists(at.dir.fd, name.c_str())) return Exists(dir, at);
  TRY(attempt.TouchDir(dir));
  TRY_ASSIGN(attempt.state().seq, attempt.writer().IntendCreate(Attempt::At(dir, at.name),
                                                                Birth::kLink, stat.mode, *born));
  attempt.state().intent = {IntentKind::kCreate, at.dir.fd, dir.id, name, *born};
  return Begun(attempt.Finish());
}

Result<Ticket> Interceptor::BeginLink(const ObjectRef& ref, const NameRef& at) {
  TRY(CheckName(at));
  return Retry(log_, [&](Again& again) -> Result<Ticket> {
    Attempt attempt(log_, entrant_, again);
    TRY(attempt.Enter(StepGate::Way::kTogether));
    TRY_ASSIGN(auto dir, attempt.FindDir(at.dir));
    TRY_ASSIGN(auto begun, BeginLinkOfBorn(attempt, dir, ref, at));
    if (begun) return std::move(*begun);
    TRY_ASSIGN(OpenObject object, OpenObjectFd(log_.place().identifier, ref.fd));
    const std::string path = JoinPath(dir.path, at.name), name(at.name);
    // The new name moves the object's ctime: under an old one that is not ignored it would look edited.
    if (attempt.LeavesOut(path, object) &&
        (ref.path.empty() || attempt.LeavesOut(std::string(ref.path), object))) {
      TRY_ASSIGN(const auto old_path, attempt.Locate(ref, object));
      return old_path || object.stat.nlink == 0 ? UnrecordedTicket() : Result<Ticket>(Nameless());
    }
    attempt.HoldFirst({dir.id});
    TRY(attempt.Hold(object));
    if (NameExists(at.dir.fd, name.c_str())) return Exists(dir, at);
    // An anchor keeps the inode linkable although its last name is gone, also one that waits in the trash to be deleted; natively the
    // kernel would say this. Without any link it was either never named (O_TMPFILE) or the kernel does say so.
    TRY_ASSIGN(const auto old_path, attempt.Locate(ref, object));
    if (!old_path && object.stat.nlink > 0) return Nameless();
    TRY(attempt.TouchDir(dir));
    if (old_path) TRY(attempt.writer().TouchMeta(object, *old_path, TouchReason::kNames));
    const bool nameless = object.stat.nlink == 0;  // O_TMPFILE: born with this name
    TRY_ASSIGN(attempt.state().seq,
               attempt.writer().IntendCreate(Attempt::At(dir, at.name),
                                             nameless ? Birth::kNew : Birth::kLink,
                                             object.stat.mode, nameless ? kNoObject : object.id));
    attempt.state().intent = {IntentKind::kCreate, at.dir.fd, dir.id, name,
                              nameless ? kNoObject : object.id};
    return attempt.Finish();
  });
}

Result<Ticket> Interceptor::BeginRemove(const NameRef& at) {
  TRY(CheckName(at));
  return Retry(log_, [&](Again& again) -> Result<Ticket> {
    Attempt attempt(log_, entrant_, again);
    TRY(attempt.Enter(StepGate::Way::kTogether));
    TRY_ASSIGN(auto dir, attempt.FindDir(at.dir));
    attempt.HoldFirst({dir.id});
    TRY_ASSIGN(OpenObject object, attempt.FindNamed(at));
    const std::string path = JoinPath(dir.path, at.name);
    if (attempt.LeavesOut(path, object)) return UnrecordedTicket();
    TRY(attempt.Hold(object));
    TRY(attempt.CheckGround(object, path));
    TicketState& state = attempt.state();
    if (!attempt.writer().IsBorn(object.id))
      TRY(attempt.Ask(log_.safeguards().OnDelete(path, state.claim)));
    TRY(attempt.TouchDir(dir));
    TRY_ASSIGN(const Keep keep, attempt.KeepObject(object, at, path));
    TRY_ASSIGN(state.seq, attempt.writer().IntendRemove(Attempt::At(dir, at.name), object, keep));
    if (keep.by_rename) TRY(attempt.MoveToAnchor(keep, at, fmt::format("remove {}", path)));
    state.performed = keep.by_rename;
    if (object.stat.IsDirectory()) state.lost_folder = object.id;
    state.intent = {IntentKind::kRemove, at.dir.fd, dir.id, std::string(at.name), object.id};
    state.object = std::move(object);  // its lease lasts until the commit
    return attempt.Finish();
  });
}

Result<Ticket> Interceptor::BeginRename(const NameRef& from, const NameRef& to, RenameMode mode) {
  TRY(CheckName(from));
  TRY(CheckName(to));
  return Retry(log_, [&](Again& again) -> Result<Ticket> {
    Attempt attempt(log_, entrant_, again);
    Renaming renaming(log_, attempt, from, to, mode);
    TRY(renaming.Look());
    if (auto ticket = renaming.Shortcut()) return std::move(*ticket);
    TRY(renaming.HoldAndAsk());
    TRY(renaming.KeepBoth());
    TRY(renaming.Intend());
    return renaming.Finish();
  });
}

// --- Contents and metadata.

Result<Ticket> Interceptor::BeginOpenForWrite(const ObjectRef& ref, Truncate truncate,
                                              WriteVisibility visibility) {
  if (truncate == Truncate::kYes) return BeginContent(ref, ContentChange::TruncateTo(0));
  if (visibility == WriteVisibility::kAnnounced)
    return UnrecordedTicket();  // each write comes with its offset
  return BeginContent(ref, ContentChange::Whole());
}

// Does the change need a yes? Growing loses nothing.
static std::optional<SafeguardQuestion> QuestionAbout(SafeguardTracker& safeguards,
                                                      ContentChange change, const std::string& path,
                                                      uint64_t size) {
  if (change.kind != ContentChange::Kind::kTruncate) return safeguards.OnOverwrite(path, size);
  if (change.offset < size) return safeguards.OnTruncate(path, size);
  return std::nullopt;
}

Result<Ticket> Interceptor::BeginContent(const ObjectRef& ref, ContentChange change) {
  return Retry(log_, [&](Again& again) -> Result<Ticket> {
    Attempt attempt(log_, entrant_, again);
    TRY(attempt.Enter(StepGate::Way::kTogether));
    TRY_ASSIGN(const bool born, attempt.HoldIfBorn(ref));
    if (born) {
      // Opening a FIFO may take for ever, and nobody waits for that.
      TRY_ASSIGN(const FileStat stat, StatFd(ref.fd));
      return stat.IsRegular() ? attempt.Finish() : UnrecordedTicket();
    }
    TRY_ASSIGN(OpenObject object, OpenObjectFd(log_.place().identifier, ref.fd));
    if (!object.stat.IsRegular()) return UnrecordedTicket();
    attempt.HoldFirst({object.id});
    TRY_ASSIGN(object.stat, StatFd(object.fd.get()));  // as it is now that nobody else is at it
    TRY_ASSIGN(const auto path, attempt.RecordedPath(ref, object));
    if (!path) return UnrecordedTicket();
    if (!attempt.writer().IsBorn(object.id))
      TRY(attempt.Ask(QuestionAbout(log_.safeguards(), change, *path, object.stat.size)));
    if (change.kind == ContentChange::Kind::kTruncate && change.offset == 0) {
      TRY_ASSIGN(const bool replaced, attempt.ReplaceInode(object, *path));
      if (replaced) return attempt.Finish();
    }
    TRY(attempt.TouchContent(object, *path, change));
    TRY(attempt.writer().MakeDurable());
    return attempt.Finish();
  });
}

enum class AddsXattr : uint8_t { kNo, kMaybe };

static Result<Ticket> BeginChange(LogCore& log, Entrant entrant, const ObjectRef& ref,
                                  AddsXattr adds_xattr) {
  return Retry(log, [&](Again& again) -> Result<Ticket> {
    Attempt attempt(log, entrant, again);
    TRY(attempt.Enter(StepGate::Way::kTogether));
    if (adds_xattr == AddsXattr::kNo) {
      TRY_ASSIGN(const bool born, attempt.HoldIfBorn(ref));
      if (born) return attempt.Finish();
    }
    TRY_ASSIGN(OpenObject object, OpenObjectFd(log.place().identifier, ref.fd));
    attempt.HoldFirst({object.id});
    TRY_ASSIGN(object.stat, StatFd(object.fd.get()));
    TRY_ASSIGN(const auto path, attempt.RecordedPath(ref, object));
    if (!path) return UnrecordedTicket();
    // Room for the rest of the record is what its path and fixed fields could take at most.
    if (adds_xattr == AddsXattr::kMaybe)
      TRY(CheckRoomForXattr(object, kMaxRecordBytes - 4 * PATH_MAX));
    TRY(attempt.writer().TouchMeta(object, *path, TouchReason::kDirect));
    TRY(attempt.writer().MakeDurable());
    return attempt.Finish();
  });
}

Result<Ticket> Interceptor::BeginMetadata(const ObjectRef& ref) {
  return BeginChange(log_, entrant_, ref, AddsXattr::kNo);
}
Result<Ticket> Interceptor::BeginXattr(const ObjectRef& ref) {
  return BeginChange(log_, entrant_, ref, AddsXattr::kMaybe);
}
Result<Ticket> Interceptor::BeginFlags(const ObjectRef& ref) {
  return BeginChange(log_, entrant_, ref, AddsXattr::kNo);
}

}  // namespace sandglass::undo
