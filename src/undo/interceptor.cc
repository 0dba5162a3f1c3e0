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
    if (NameExists(at.dir.fd, name.c_str()))
      return Error(Code::kExists, fmt::format("{} exists", path), EEXIST);
    TRY(attempt.TouchDir(dir));
    TRY_ASSIGN(attempt.state().seq,
               attempt.writer().IntendCreate(Attempt::At(dir, at.name), Birth::kNew, mode));
    attempt.state().intent = {IntentKind::kCreate, at.dir.fd, dir.id, name, kNoObject};
    return attempt.Finish();
  });
}

Result<Ticket> Interceptor::BeginLink(const ObjectRef& ref, const NameRef& at) {
  TRY(CheckName(at));
  return Retry(log_, [&](Again& again) -> Result<Ticket> {
    Attempt attempt(log_, entrant_, again);
    TRY(attempt.Enter(StepGate::Way::kTogether));
    TRY_ASSIGN(auto dir, attempt.FindDir(at.dir));
    TRY_ASSIGN(OpenObject object, OpenObjectFd(log_.place().identifier, ref.fd));
    const std::string path = JoinPath(dir.path, at.name), name(at.name);
    // The new name moves the object's ctime: under an old one that is not ignored it would look edited.
    if (attempt.LeavesOut(path, object) &&
        (ref.path.empty() || attempt.LeavesOut(std::string(ref.path), object)))
      return UnrecordedTicket();
    attempt.HoldFirst({dir.id});
    TRY(attempt.Hold(object.id));
    if (NameExists(at.dir.fd, name.c_str()))
      return Error(Code::kExists, fmt::format("{} exists", path), EEXIST);
    // Our anchor keeps the inode linkable although its last name is gone; natively the kernel would say this.
    TRY_ASSIGN(const auto old_path, attempt.Locate(ref, object));
    if (!old_path && log_.IsFrozen(attempt.writer(), object))
      return Error(Code::kNotFound, "the object has no name any more", ENOENT);
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
    TRY_ASSIGN(OpenObject object,
               OpenObjectAt(log_.place().identifier, at.dir.fd, std::string(at.name).c_str()));
    const std::string path = JoinPath(dir.path, at.name);
    if (attempt.LeavesOut(path, object)) return UnrecordedTicket();
    TRY(attempt.Hold(object.id));
    TRY(attempt.CheckGround(object, path));
    TicketState& state = attempt.state();
    if (!attempt.writer().IsBorn(object.id))
      TRY(attempt.Ask(log_.safeguards().OnDelete(path, state.claim)));
    TRY(attempt.TouchDir(dir));
    TRY_ASSIGN(const Keep keep, attempt.KeepObject(object, at, path));
    TRY_ASSIGN(state.seq, attempt.writer().IntendRemove(Attempt::At(dir, at.name), object, keep));
    if (keep.by_rename) TRY(attempt.MoveToAnchor(keep, at, fmt::format("remove {}", path)));
    state.performed = keep.by_rename;
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
