#include "undo/interceptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "undo/link_index.h"
#include "undo/log_core.h"

namespace sandglass::undo {

// What a ticket holds until it is committed. Members die in reverse order: objects (and their leases) first, the gate last.
struct TicketState {
  StepGate::Pass pass;
  KeyLocks::Hold hold;
  StepWriter* writer = nullptr;  // null: the operation is not recorded
  std::optional<OpSeq> seq;
  std::optional<OpenObject> object;
  std::optional<OpenObject> target;
  // A created name: whose identity the outcome needs.
  int created_in = -1;
  std::string created_name;
  // What to give up if the operation fails, and the name that lost its object meanwhile.
  Keep keep;
  ObjectId kept_object;
  int kept_dir = -1;
  std::string kept_name;
  std::optional<StepWriter::Replacement> replacement;
  std::optional<OpenObject> replaced_in;
  bool performed = false;
  bool replaced = false;
  bool folder_rename = false;
  LogCore* log = nullptr;

  Status GiveBack();
  SafeguardTracker::Claim claim;
};

// The operation did not happen: what Begin did for it is undone.
Status TicketState::GiveBack() {
  if (performed) return Ok();
  writer->ReleaseKeep(keep, kept_object, kept_dir, kept_name);
  if (!replacement) return Ok();
  return writer->TakeBackReplacement(*replacement, *replaced_in, kept_name);
}

namespace {

uint32_t ModeOf(NodeType type) {
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

Ticket Unrecorded() { return Ticket(std::make_unique<TicketState>()); }

// One attempt at an operation: everything that Begin does between entering the step and handing the ticket out. When a safeguard must be
// asked or a key is taken by someone else, the attempt is dropped whole and made again.
class Attempt {
 public:
  explicit Attempt(LogCore& log)
      : log_(log), place_(log.place()), state_(std::make_unique<TicketState>()) {
    state_->log = &log;
  }

  Status Enter(StepGate::Way way) {
    TRY_ASSIGN(auto step, log_.EnterStep(way));
    state_->pass = std::move(step.pass);
    state_->writer = step.writer;
    return Ok();
  }

  // The directory of a name: who it is and where it is now.
  struct Dir {
    int fd;
    ObjectId id;
    std::string path;
  };
  Result<Dir> FindDir(const DirRef& ref);
  // Its metadata is kept before the first name in it changes. The caller holds its key.
  Status TouchDir(const Dir& dir);
  static NameAt At(const Dir& dir, std::string_view name) { return {dir.id, dir.path, name}; }

  // Where an object is in the project now; nullopt: nowhere. kUnsupported: nobody can tell.
  Result<std::optional<std::string>> Locate(const ObjectRef& ref, const OpenObject& object) const;

  StepWriter& writer() { return *state_->writer; }
  TicketState& state() { return *state_; }
  Ticket Finish() { return Ticket(std::move(state_)); }
  Ticket FinishUnrecorded() {
    state_->writer = nullptr;
    return Finish();
  }

 private:
  LogCore& log_;
  const Place& place_;
  std::unique_ptr<TicketState> state_;
};

Result<Attempt::Dir> Attempt::FindDir(const DirRef& ref) {
  Dir dir{.fd = ref.fd, .id = kNoObject, .path = std::string(ref.path)};
  TRY_ASSIGN(dir.id, place_.identifier.OfFd(ref.fd));
  // Someone may have renamed a folder since the caller resolved its path. Only then is asking the kernel worth its price.
  if (log_.folder_renames() > 0) {
    if (auto now = ProjectPathOf(place_, ref.fd)) dir.path = *now;
  }
  return dir;
}

Status Attempt::TouchDir(const Dir& dir) {
  if (writer().HasTouched(dir.id)) return Ok();
  TRY_ASSIGN(OpenObject object, OpenObjectFd(place_.identifier, dir.fd));
  if (object.stat.mount != place_.root_mount) {
    return Error(
        Code::kUnsupported,
        fmt::format("{} is another mount inside the project and cannot be undone there", dir.path));
  }
  return writer().TouchMeta(object, dir.path, TouchReason::kNames);
}

Result<std::optional<std::string>> Attempt::Locate(const ObjectRef& ref,
                                                   const OpenObject& object) const {
  using Path = std::optional<std::string>;
  if (!ref.path.empty()) {
    auto fd = OpenBeneath(place_.root.get(), ref.path, O_PATH | O_NOFOLLOW);
    if (fd.ok()) {
      auto id = place_.identifier.OfFd(fd->get());
      if (id.ok() && *id == object.id) return Path(ref.path);
    }
  }
  if (auto path = ProjectPathOf(place_, object.fd.get())) return path;
  // Names that only steps keep are not worth a search through the project.
  if (log_.IsFrozen(*state_->writer, object)) return Path();
  return AnyPathOf(place_, object);
}

// Asks whoever there is to ask, holding nothing.
Decision AskSafeguard(LogCore& log, const SafeguardQuestion& question) {
  SafeguardHandler* handler = log.options().safeguard_handler;
  if (handler == nullptr) return Decision::kDeny;
  const auto deadline = std::chrono::steady_clock::now() + log.options().safeguards.timeout;
  const Decision decision = handler->Decide(question);
  return std::chrono::steady_clock::now() > deadline ? Decision::kDeny
                                                     : decision;  // too late is no
}

Error Denied(const SafeguardQuestion& question) {
  return Error(Code::kDenied,
               fmt::format("safeguard {} stopped step {}: not confirmed; the step was rolled back",
                           SafeguardName(question.kind), question.step.value));
}

// Runs `once` until it neither asks nor collides. `once` returns a ticket, an error, or sets `question` / `collided`.
struct Again {
  std::optional<SafeguardQuestion> question;
  std::optional<ObjectId> collided;
};
template <class Once>
Result<Ticket> Retry(LogCore& log, Once once) {
  while (true) {
    Again again;
    Result<Ticket> ticket = once(again);
    if (again.collided) {
      log.locks().WaitFor(*again.collided);
      continue;
    }
    if (!again.question) return ticket;
    const SafeguardQuestion& question = *again.question;
    std::optional<Decision> answer = log.safeguards().AwaitAnswer(question);
    Status rolled_back;
    if (!answer) {
      answer = AskSafeguard(log, question);
      // The step goes first: whoever waits for this answer must not go on in it.
      if (*answer == Decision::kDeny) rolled_back = log.Deny(question.step);
      log.safeguards().Answered(question, *answer);
    }
    TRY(rolled_back);
    if (*answer == Decision::kDeny) return Denied(question);
  }
}

// The step would copy more than it may: ask, refuse, or go on without protection, as configured.
Status OverLimit(LogCore& log, StepWriter& writer, std::string_view path, const Error& error,
                 Again& again) {
  if (error.code() != Code::kLimit) return error;
  switch (log.options().on_oversize) {
    case OversizePolicy::kRefuse:
      return error;
    case OversizePolicy::kAsk:
      if (log.options().safeguard_handler == nullptr) return error;
      if (!log.safeguards().IsAllowed(SafeguardKind::kUndoLimit)) {
        again.question = log.safeguards().OnUndoLimit(path, writer.copied_bytes());
        return error;
      }
      break;
    case OversizePolicy::kUnprotected:
      break;
  }
  TRY(writer.MarkUnprotected(error.message()));
  log.QueueEvent([&log, id = writer.header().id, why = error.message()] {
    log.observer().OnUnprotected(id, why);
  });
  return Ok();
}

Error Frozen() {
  return Error(
      Code::kFrozen,
      "the file was removed and is kept for undo; it cannot be changed through an old descriptor",
      ESTALE);
}

Error Retrying() { return Error(Code::kBusy, "to be tried again"); }

}  // namespace

// --- Ticket.

Ticket::Ticket(std::unique_ptr<TicketState> state) : state_(std::move(state)) {}
Ticket::Ticket(Ticket&&) noexcept = default;
Ticket& Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    Cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}
Ticket::~Ticket() { Cancel(); }

bool Ticket::performed() const { return state_ != nullptr && state_->performed; }
bool Ticket::replaced() const { return state_ != nullptr && state_->replaced; }

Status Ticket::Commit(Outcome outcome) {
  if (state_ == nullptr) return Ok();
  std::unique_ptr<TicketState> state = std::move(state_);
  if (state->writer == nullptr) return Ok();
  Status given_back;
  if (outcome.sys_errno != 0) given_back = state->GiveBack();
  if (outcome.sys_errno == 0) state->claim.Count();
  if (state->folder_rename && outcome.sys_errno == 0) ++state->log->folder_renames();
  if (!state->seq) {
    LogCore& log = *state->log;
    state.reset();
    log.FireEvents();
    return given_back;
  }
  ObjectId created;
  if (outcome.sys_errno == 0 && state->created_in >= 0) {
    auto id = state->log->place().identifier.OfName(state->created_in, state->created_name.c_str());
    if (id.ok()) created = *id;  // else it is gone again already
  }
  Status settled = state->writer->Settle(*state->seq, outcome.sys_errno, created);
  LogCore& log = *state->log;
  state.reset();
  log.FireEvents();
  return settled;
}

// Where Begin has already moved something, it goes back. Otherwise the journal keeps the intent without an outcome, and what is on disk
// when the step closes decides. An anchor made by linking stays: it may be needed.
void Ticket::Cancel() {
  if (state_ != nullptr && state_->writer != nullptr &&
      (state_->keep.by_rename || state_->replaced))
    (void)state_->GiveBack();  // what could not be given back is on record, and undo has it
  state_.reset();
}

// --- Names.

Result<Ticket> Interceptor::BeginCreate(const NameRef& at, NodeType type) {
  const uint32_t mode = ModeOf(type);
  if (log_.Ignores(JoinPath(at.dir.path, at.name), mode)) return Unrecorded();
  Attempt attempt(log_);
  TRY(attempt.Enter(StepGate::Way::kTogether));
  TRY_ASSIGN(auto dir, attempt.FindDir(at.dir));
  attempt.state().hold = log_.locks().Take({dir.id});
  const std::string name(at.name);
  if (NameExists(at.dir.fd, name.c_str())) {
    return Error(Code::kExists, fmt::format("{} exists", JoinPath(dir.path, at.name)), EEXIST);
  }
  TRY(attempt.TouchDir(dir));
  TRY_ASSIGN(attempt.state().seq,
             attempt.writer().IntendCreate(Attempt::At(dir, at.name), Birth::kNew, mode));
  attempt.state().created_in = at.dir.fd;
  attempt.state().created_name = name;
  return attempt.Finish();
}

Result<Ticket> Interceptor::BeginLink(const ObjectRef& ref, const NameRef& at) {
  return Retry(log_, [&](Again& again) -> Result<Ticket> {
    Attempt attempt(log_);
    TRY(attempt.Enter(StepGate::Way::kTogether));
    TRY_ASSIGN(auto dir, attempt.FindDir(at.dir));
    TRY_ASSIGN(OpenObject object, OpenObjectFd(log_.place().identifier, ref.fd));
    const std::string path = JoinPath(dir.path, at.name), name(at.name);
    if (log_.Ignores(path, object.stat.mode)) return Unrecorded();
    attempt.state().hold = log_.locks().Take({dir.id});
    if (!attempt.state().hold.TryAdd(object.id)) {
      again.collided = object.id;
      return Retrying();
    }
    if (NameExists(at.dir.fd, name.c_str()))
      return Error(Code::kExists, fmt::format("{} exists", path), EEXIST);
    // Our anchor keeps the inode linkable although its last name is gone; natively the kernel would say this.
    TRY_ASSIGN(const auto old_path, attempt.Locate(ref, object));
    if (!old_path && log_.IsFrozen(attempt.writer(), object)) {
      return Error(Code::kNotFound, "the object has no name any more", ENOENT);
    }
    TRY(attempt.TouchDir(dir));
    if (old_path) TRY(attempt.writer().TouchMeta(object, *old_path, TouchReason::kNames));
    const bool nameless = object.stat.nlink == 0;  // O_TMPFILE: born with this name
    TRY_ASSIGN(attempt.state().seq,
               attempt.writer().IntendCreate(Attempt::At(dir, at.name),
                                             nameless ? Birth::kNew : Birth::kLink,
                                             object.stat.mode, nameless ? kNoObject : object.id));
    if (nameless) {
      attempt.state().created_in = at.dir.fd;
      attempt.state().created_name = name;
    }
    return attempt.Finish();
  });
}

Result<Ticket> Interceptor::BeginRemove(const NameRef& at) {
  const std::string name(at.name);
  return Retry(log_, [&](Again& again) -> Result<Ticket> {
    Attempt attempt(log_);
    TRY(attempt.Enter(StepGate::Way::kTogether));
    TRY_ASSIGN(auto dir, attempt.FindDir(at.dir));
    attempt.state().hold = log_.locks().Take({dir.id});
    TRY_ASSIGN(OpenObject object, OpenObjectAt(log_.place().identifier, at.dir.fd, name.c_str()));
    const std::string path = JoinPath(dir.path, at.name);
    if (log_.Ignores(path, object.stat.mode)) return Unrecorded();
    if (!attempt.state().hold.TryAdd(object.id)) {
      again.collided = object.id;
      return Retrying();
    }
    if (object.stat.mount != log_.place().root_mount) {
      return Error(Code::kUnsupported, fmt::format("{} is another mount inside the project", path),
                   EBUSY);
    }
    StepWriter& writer = attempt.writer();
    if (!writer.IsBorn(object.id)) {
      again.question = log_.safeguards().OnDelete(path, attempt.state().claim);
      if (again.question) return Retrying();
    }
    TRY(attempt.TouchDir(dir));
    auto keep = writer.KeepObject(object, at.dir.fd, name.c_str(), path, KeepBy::kLink);
    if (!keep.ok()) {
      TRY(OverLimit(log_, writer, path, keep.error(), again));
      keep = writer.KeepObject(object, at.dir.fd, name.c_str(), path, KeepBy::kLink);
    }
    if (!keep.ok()) return keep.error();
    TRY_ASSIGN(attempt.state().seq, writer.IntendRemove(Attempt::At(dir, at.name), object, *keep));
    if (keep->by_rename) {
      TRY_ASSIGN(int anchors, writer.files().Anchors());
      if (::renameat(at.dir.fd, name.c_str(), anchors, AnchorName(keep->anchor).c_str()) != 0) {
        const int err = errno;
        TRY(writer.Settle(*attempt.state().seq, err));
        return Error::FromErrno(err, fmt::format("remove {}", path));
      }
      attempt.state().performed = true;
    }
    attempt.state().keep = *keep;
    attempt.state().kept_object = object.id;
    attempt.state().object = std::move(object);  // its lease lasts until the commit
    return attempt.Finish();
  });
}

Result<Ticket> Interceptor::BeginRename(const NameRef& from, const NameRef& to, RenameMode mode) {
  const std::string from_name(from.name), to_name(to.name);
  return Retry(log_, [&](Again& again) -> Result<Ticket> {
    TRY_ASSIGN(FileStat first_look, StatAt(from.dir.fd, from_name.c_str()));
    auto target_look = StatAt(to.dir.fd, to_name.c_str());
    const bool folder =
        first_look.IsDirectory() ||
        (mode == RenameMode::kExchange && target_look.ok() && target_look->IsDirectory());
    Attempt attempt(log_);
    TRY(attempt.Enter(folder ? StepGate::Way::kAlone : StepGate::Way::kTogether));
    TRY_ASSIGN(auto from_dir, attempt.FindDir(from.dir));
    TRY_ASSIGN(auto to_dir, attempt.FindDir(to.dir));
    KeyLocks::Hold& hold = attempt.state().hold;
    hold = log_.locks().Take({from_dir.id, to_dir.id});
    const Identifier& identifier = log_.place().identifier;
    TRY_ASSIGN(OpenObject object, OpenObjectAt(identifier, from.dir.fd, from_name.c_str()));
    if (object.stat.IsDirectory() && !folder) return (again.collided = object.id), Retrying();
    auto target = OpenObjectAt(identifier, to.dir.fd, to_name.c_str());
    if (!target.ok() && target.error().code() != Code::kNotFound) return target.error();
    if (target.ok() && target->stat.IsDirectory() && mode == RenameMode::kExchange && !folder) {
      return (again.collided = object.id), Retrying();
    }
    const std::string from_path = JoinPath(from_dir.path, from.name),
                      to_path = JoinPath(to_dir.path, to.name);
    // Names that undo does not care about on both sides; if one side matters, the move does.
    if (log_.Ignores(from_path, object.stat.mode) && log_.Ignores(to_path, object.stat.mode))
      return Unrecorded();
    // Two names of one object: POSIX says that nothing happens. Both folders stay held, so that they are still that when it
    // does not happen.
    if (target.ok() && target->id == object.id && mode != RenameMode::kNoReplace)
      return attempt.FinishUnrecorded();
    if (target.ok() && mode == RenameMode::kNoReplace)
      return Error(Code::kExists, fmt::format("{} exists", to_path), EEXIST);
    if (!target.ok() && mode == RenameMode::kExchange) return target.error();
    for (const ObjectId& key : {object.id, target.ok() ? target->id : object.id}) {
      if (!hold.TryAdd(key)) return (again.collided = key), Retrying();
    }
    StepWriter& writer = attempt.writer();
    const bool over = target.ok() && mode == RenameMode::kReplace;
    if (over && !writer.IsBorn(target->id)) {
      again.question = log_.safeguards().OnRenameOver(to_path, attempt.state().claim);
      if (again.question) return Retrying();
    }
    TRY(attempt.TouchDir(from_dir));
    TRY(attempt.TouchDir(to_dir));
    // A rename moves the ctime of what is renamed: how it looked before must be on record, or it would look like an edit later.
    TRY(writer.TouchMeta(object, from_path, TouchReason::kNames));
    if (mode == RenameMode::kExchange) TRY(writer.TouchMeta(*target, to_path, TouchReason::kNames));
    Keep keep;
    if (over) {
      auto kept = writer.KeepObject(*target, to.dir.fd, to_name.c_str(), to_path, KeepBy::kLink);
      if (!kept.ok()) {
        TRY(OverLimit(log_, writer, to_path, kept.error(), again));
        kept = writer.KeepObject(*target, to.dir.fd, to_name.c_str(), to_path, KeepBy::kLink);
      }
      if (!kept.ok()) return kept.error();
      keep = *kept;
    }
    TRY_ASSIGN(attempt.state().seq,
               writer.IntendRename(Attempt::At(from_dir, from.name), Attempt::At(to_dir, to.name),
                                   mode, object, target.ok() ? &*target : nullptr, keep));
    if (keep.by_rename) {
      if (object.stat.IsDirectory())
        return Error::FromErrno(ENOTDIR, fmt::format("replace {}", to_path));
      // The old target moves aside first; the bridge's rename then finds the name free.
      TRY_ASSIGN(int anchors, writer.files().Anchors());
      if (::renameat(to.dir.fd, to_name.c_str(), anchors, AnchorName(keep.anchor).c_str()) != 0) {
        const int err = errno;
        TRY(writer.Settle(*attempt.state().seq, err));
        return Error::FromErrno(err, fmt::format("replace {}", to_path));
      }
    }
    TicketState& state = attempt.state();
    state.keep = keep;
    state.kept_dir = to.dir.fd;
    state.kept_name = to_name;
    state.folder_rename = folder;
    if (target.ok()) {
      state.kept_object = target->id;
      state.target = std::move(*target);
    }
    state.object = std::move(object);
    return attempt.Finish();
  });
}

// --- Contents and metadata.

Result<Ticket> Interceptor::BeginOpenForWrite(const ObjectRef& ref, Truncate truncate,
                                              WriteVisibility visibility) {
  if (truncate == Truncate::kYes) return BeginContent(ref, ContentChange::TruncateTo(0));
  if (visibility == WriteVisibility::kAnnounced)
    return Unrecorded();  // each write comes with its offset
  return BeginContent(ref, ContentChange::Whole());
}

Result<Ticket> Interceptor::BeginContent(const ObjectRef& ref, ContentChange change) {
  return Retry(log_, [&](Again& again) -> Result<Ticket> {
    Attempt attempt(log_);
    TRY(attempt.Enter(StepGate::Way::kTogether));
    TRY_ASSIGN(OpenObject object, OpenObjectFd(log_.place().identifier, ref.fd));
    if (!object.stat.IsRegular()) return Unrecorded();
    attempt.state().hold = log_.locks().Take({object.id});
    TRY_ASSIGN(object.stat, StatFd(object.fd.get()));  // as it is now that nobody else is at it
    StepWriter& writer = attempt.writer();
    TRY_ASSIGN(const auto path, attempt.Locate(ref, object));
    if (!path) {
      if (log_.IsFrozen(writer, object)) {
        return Frozen();
      }
      return Unrecorded();  // no name, so nothing of the project
    }
    if (log_.Ignores(*path, object.stat.mode)) return Unrecorded();
    if (object.stat.mount != log_.place().root_mount) {
      return Error(Code::kUnsupported,
                   fmt::format("{} is on another mount inside the project", *path));
    }
    if (!writer.IsBorn(object.id)) {
      const bool truncates =
          change.kind == ContentChange::Kind::kTruncate && change.offset < object.stat.size;
      const bool grows = change.kind == ContentChange::Kind::kTruncate && !truncates;
      if (truncates)
        again.question = log_.safeguards().OnTruncate(*path, object.stat.size);
      else if (!grows)  // growing loses nothing
        again.question = log_.safeguards().OnOverwrite(*path, object.stat.size);
      if (again.question) return Retrying();
    }
    if (change.kind == ContentChange::Kind::kTruncate && change.offset == 0 &&
        writer.MayReplaceInode(object)) {
      TRY_ASSIGN(Fd parent_fd, OpenDirBeneath(log_.place().root.get(), ParentOf(*path)));
      TRY_ASSIGN(OpenObject parent, OpenObjectFd(log_.place().identifier, parent_fd.get()));
      // The folder's time is put back afterwards, so nobody else may change names in it meanwhile.
      if (attempt.state().hold.TryAdd(parent.id)) {
        TRY_ASSIGN(parent.stat, StatFd(parent_fd.get()));
        TRY_ASSIGN(
            attempt.state().replacement,
            writer.TryReplaceInode(object, parent, {parent.id, ParentOf(*path), BaseName(*path)}));
      }
      if (attempt.state().replacement) {
        attempt.state().replaced = true;
        attempt.state().replaced_in = std::move(parent);
        attempt.state().kept_name = std::string(BaseName(*path));
        return attempt.Finish();
      }
    }
    const WriteVisibility visibility = change.kind == ContentChange::Kind::kRange
                                           ? WriteVisibility::kAnnounced
                                           : WriteVisibility::kUnseen;
    Status touched = writer.TouchContent(object, *path, change, visibility);
    if (!touched.ok()) {
      TRY(OverLimit(log_, writer, *path, touched.error(), again));
      TRY(writer.TouchContent(object, *path, change, visibility));  // at least that it changes
    }
    TRY(writer.MakeDurable());
    return attempt.Finish();
  });
}

Result<Ticket> Interceptor::BeginMetadata(const ObjectRef& ref) {
  Attempt attempt(log_);
  TRY(attempt.Enter(StepGate::Way::kTogether));
  TRY_ASSIGN(OpenObject object, OpenObjectFd(log_.place().identifier, ref.fd));
  attempt.state().hold = log_.locks().Take({object.id});
  TRY_ASSIGN(object.stat, StatFd(object.fd.get()));
  TRY_ASSIGN(const auto path, attempt.Locate(ref, object));
  if (!path && log_.IsFrozen(attempt.writer(), object)) return Frozen();
  if (!path || log_.Ignores(*path, object.stat.mode)) return Unrecorded();
  if (object.stat.mount != log_.place().root_mount) {
    return Error(Code::kUnsupported,
                 fmt::format("{} is on another mount inside the project", *path));
  }
  TRY(attempt.writer().TouchMeta(object, *path, TouchReason::kDirect));
  TRY(attempt.writer().MakeDurable());
  return attempt.Finish();
}

Result<Ticket> Interceptor::BeginXattr(const ObjectRef& ref) { return BeginMetadata(ref); }
Result<Ticket> Interceptor::BeginFlags(const ObjectRef& ref) { return BeginMetadata(ref); }

}  // namespace sandglass::undo
