#include "undo/interceptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <initializer_list>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "undo/encryption.h"
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
  // A change of names, as HasHappened asks for it.
  struct Intent {
    IntentKind kind;
    int dir_fd;
    ObjectId dir;
    std::string name;
    ObjectId object;

    bool IsBirth() const { return kind == IntentKind::kCreate && object == kNoObject; }
  };
  std::optional<Intent> intent;
  // What to give up if the operation fails, and the name that lost its object meanwhile.
  Keep keep;
  ObjectId kept_object;
  int kept_dir = -1;
  std::string kept_name;
  std::optional<StepWriter::Replacement> replacement;
  std::optional<OpenObject> replaced_in;
  bool performed = false;
  bool folder_rename = false;
  LogCore* log = nullptr;

  Status GiveBack();
  std::optional<Outcome> Judge() const;
  SafeguardTracker::Claim claim;
};

// What became of an operation that nobody tells of. nullopt: the folder is closed already, so that nobody can say.
std::optional<Outcome> TicketState::Judge() const {
  if (performed) return Outcome::Done();
  if (!intent) return Outcome::Failed(ECANCELED);
  const Identifier& identifier = log->place().identifier;
  const auto dir = identifier.OfFd(intent->dir_fd);
  if (!dir.ok() || *dir != intent->dir) return std::nullopt;
  const auto now = identifier.OfName(intent->dir_fd, intent->name.c_str());
  if (!now.ok() && now.error().code() != Code::kNotFound) return std::nullopt;
  return HasHappened(intent->kind, intent->object, now.ok() ? *now : kNoObject)
             ? Outcome::Done()
             : Outcome::Failed(ECANCELED);
}

// The operation did not happen: what Begin did for it is undone.
Status TicketState::GiveBack() {
  if (performed) return Ok();
  writer->ReleaseKeep(keep, kept_object, kept_dir, kept_name);
  if (!replacement) return Ok();
  return writer->TakeBackReplacement(*replacement, *replaced_in, kept_name);
}

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

namespace {

Ticket Unrecorded() { return Ticket(std::make_unique<TicketState>()); }

Error Retrying() { return Error(Code::kBusy, "to be tried again"); }

Error Frozen() {
  return Error(
      Code::kFrozen,
      "the file was removed and is kept for undo; it cannot be changed through an old descriptor",
      ESTALE);
}

// A name with a slash or `..` would lead somewhere else, out of the project perhaps, now and when the step is taken back.
Status CheckName(const NameRef& at) {
  if (IsName(at.name) && IsNormalRelPath(at.dir.path)) return Ok();
  return Error(Code::kInvalid,
               fmt::format("'{}' in '{}' is no name in a folder of the project: it must be one "
                           "component, and the folder a path from the project's root",
                           at.name, at.dir.path),
               EINVAL);
}

// Why an attempt was dropped and is to be made again.
struct Again {
  std::optional<SafeguardQuestion> question;
  std::optional<ObjectId> collided;
};

// One attempt at an operation: everything that Begin does between entering the step and handing the ticket out. When a safeguard must be
// asked or a key is taken by someone else, the attempt is dropped whole and made again.
class Attempt {
 public:
  Attempt(LogCore& log, Entrant entrant, Again& again)
      : log_(log),
        entrant_(entrant),
        place_(log.place()),
        again_(again),
        state_(std::make_unique<TicketState>()) {
    state_->log = &log;
  }
  // Without a ticket nobody else gives up what was kept.
  ~Attempt() {
    if (state_ == nullptr || state_->writer == nullptr) return;
    // Without an outcome, the names decide when the step closes.
    if (state_->seq && !state_->writer->Settle(*state_->seq, ECANCELED).ok()) return;
    state_->writer->ReleaseKeep(state_->keep, state_->kept_object, state_->kept_dir,
                                state_->kept_name);
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  Status Enter(StepGate::Way way) {
    TRY_ASSIGN(auto step, log_.EnterStep(way, entrant_));
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
  // The path under which a change of the object itself is recorded; nullopt: it is not. kFrozen: it must not happen.
  Result<std::optional<std::string>> RecordedPath(const ObjectRef& ref, const OpenObject& object);
  // Can what is there be undone at all?
  Status CheckGround(const OpenObject& object, std::string_view path) const;

  void HoldFirst(std::initializer_list<ObjectId> ids) { state_->hold = log_.locks().Take(ids); }
  // One more key. If somebody else has it, this attempt is over.
  Status Hold(ObjectId id) { return state_->hold.TryAdd(id) ? Ok() : Collide(id); }
  Error Collide(ObjectId id) {
    again_.collided = id;
    return Retrying();
  }
  // If there is a question, this attempt is over.
  Status Ask(std::optional<SafeguardQuestion> question) {
    again_.question = std::move(question);
    return again_.question ? Status(Retrying()) : Ok();
  }

  // What the object needs to come back after it has lost the name. The state has it from here on.
  Result<Keep> KeepObject(const OpenObject& object, const NameRef& at, const std::string& path);
  // An anchor that could not be linked: the name itself moves there.
  Status MoveToAnchor(const Keep& keep, const NameRef& at, std::string_view what);
  // Keeps the content that is about to change.
  Status TouchContent(const OpenObject& object, const std::string& path, ContentChange change);
  // Instead of that, where it is possible and cheaper: a fresh inode for the name. False: not done.
  Result<bool> ReplaceInode(const OpenObject& object, const std::string& path);

  StepWriter& writer() { return *state_->writer; }
  TicketState& state() { return *state_; }
  Ticket Finish() { return Ticket(std::move(state_)); }
  Ticket FinishUnrecorded() {
    state_->writer = nullptr;
    return Finish();
  }

 private:
  // The step would copy more than it may: ask, refuse, or go on without protection, as configured.
  Status OverLimit(std::string_view path, const Error& error);

  LogCore& log_;
  const Entrant entrant_;
  const Place& place_;
  Again& again_;
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
  TRY(CheckGround(object, dir.path));
  return writer().TouchMeta(object, dir.path, TouchReason::kNames);
}

Status Attempt::CheckGround(const OpenObject& object, std::string_view path) const {
  if (object.stat.mount != place_.root_mount) {
    return Error(
        Code::kUnsupported,
        fmt::format("{} is on another mount inside the project, where nothing can be undone", path),
        EROFS);
  }
  return CheckEncryptionOf(place_, object, path);
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

Result<std::optional<std::string>> Attempt::RecordedPath(const ObjectRef& ref,
                                                         const OpenObject& object) {
  using Path = std::optional<std::string>;
  TRY_ASSIGN(auto path, Locate(ref, object));
  if (!path && log_.IsFrozen(writer(), object)) return Frozen();
  // Without a name it is nothing of the project.
  if (!path || log_.Ignores(*path, object.stat.mode)) return Path();
  TRY(CheckGround(object, *path));
  return path;
}

Status Attempt::OverLimit(std::string_view path, const Error& error) {
  if (error.code() != Code::kLimit) return error;
  switch (log_.options().on_oversize) {
    case OversizePolicy::kRefuse:
      return error;
    case OversizePolicy::kAsk:
      if (log_.options().safeguard_handler == nullptr) return error;
      if (!log_.safeguards().IsAllowed(SafeguardKind::kUndoLimit))
        return Ask(log_.safeguards().OnUndoLimit(path, writer().copied_bytes()));
      break;
    case OversizePolicy::kUnprotected:
      break;
  }
  TRY(writer().MarkUnprotected(error.message()));
  log_.QueueEvent([&log = log_, id = writer().header().id, why = error.message()] {
    log.observer().OnUnprotected(id, why);
  });
  return Ok();
}

Result<Keep> Attempt::KeepObject(const OpenObject& object, const NameRef& at,
                                 const std::string& path) {
  const std::string name(at.name);
  auto keep = writer().KeepObject(object, at.dir.fd, name.c_str(), path, KeepBy::kLink);
  if (!keep.ok()) {
    TRY(OverLimit(path, keep.error()));
    keep = writer().KeepObject(object, at.dir.fd, name.c_str(), path, KeepBy::kLink);
  }
  if (!keep.ok()) return keep;
  state_->keep = *keep;
  state_->kept_object = object.id;
  state_->kept_dir = at.dir.fd;
  state_->kept_name = name;
  return keep;
}

Status Attempt::MoveToAnchor(const Keep& keep, const NameRef& at, std::string_view what) {
  TRY_ASSIGN(int anchors, writer().files().Anchors());
  const std::string name(at.name);
  if (::renameat(at.dir.fd, name.c_str(), anchors, AnchorName(keep.anchor).c_str()) != 0)
    return Error::FromErrno(errno, what);
  writer().files().NoteAnchored(keep.anchor);
  return Ok();
}

Status Attempt::TouchContent(const OpenObject& object, const std::string& path,
                             ContentChange change) {
  const WriteVisibility visibility = change.kind == ContentChange::Kind::kRange
                                         ? WriteVisibility::kAnnounced
                                         : WriteVisibility::kUnseen;
  Status touched = writer().TouchContent(object, path, change, visibility);
  if (touched.ok()) return Ok();
  TRY(OverLimit(path, touched.error()));
  return writer().TouchContent(object, path, change, visibility);  // at least that it changes
}

Result<bool> Attempt::ReplaceInode(const OpenObject& object, const std::string& path) {
  if (!writer().MayReplaceInode(object)) return false;
  TRY_ASSIGN(Fd parent_fd, OpenDirBeneath(place_.root.get(), ParentOf(path)));
  TRY_ASSIGN(OpenObject parent, OpenObjectFd(place_.identifier, parent_fd.get()));
  // The folder's time is put back afterwards, so nobody else may change names in it meanwhile.
  if (!state_->hold.TryAdd(parent.id)) return false;
  TRY_ASSIGN(parent.stat, StatFd(parent_fd.get()));
  TRY_ASSIGN(state_->replacement,
             writer().TryReplaceInode(object, parent, {parent.id, ParentOf(path), BaseName(path)}));
  if (!state_->replacement) return false;
  state_->replaced_in = std::move(parent);
  state_->kept_name = std::string(BaseName(path));
  return true;
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
    const bool is_asker = !answer;
    if (is_asker) answer = AskSafeguard(log, question);
    // The step goes before the answer: whoever waits for this must not go on in it. Whoever did wait tries again, should that have failed.
    Status rolled_back;
    if (*answer == Decision::kDeny) rolled_back = log.Deny(question.step);
    if (is_asker) log.safeguards().Answered(question, *answer);
    TRY(rolled_back);
    if (*answer == Decision::kDeny) return Denied(question);
  }
}

// A rename on its way, in the order of its steps.
class Renaming {
 public:
  Renaming(LogCore& log, Attempt& attempt, const NameRef& from, const NameRef& to, RenameMode mode)
      : log_(log), attempt_(attempt), from_(from), to_(to), mode_(mode) {}

  // Enters the step and finds out who has the two names. Their folders are held from here on.
  Status Look();
  // nullopt: it is to be recorded.
  std::optional<Result<Ticket>> Shortcut();
  Status HoldAndAsk();
  Status KeepBoth();
  Status Intend();
  Ticket Finish();

 private:
  // Renaming a folder moves every path below it, so nothing else may be under way.
  Result<bool> LooksLikeFolder() const;
  bool replaces() const { return target_ && mode_ == RenameMode::kReplace; }

  LogCore& log_;
  Attempt& attempt_;
  const NameRef &from_, &to_;
  const RenameMode mode_;
  bool folder_ = false;
  Attempt::Dir from_dir_, to_dir_;
  std::string from_path_, to_path_;
  OpenObject object_;
  std::optional<OpenObject> target_;
  Keep keep_;
};

Result<bool> Renaming::LooksLikeFolder() const {
  TRY_ASSIGN(FileStat object, StatAt(from_.dir.fd, std::string(from_.name).c_str()));
  if (object.IsDirectory()) return true;
  if (mode_ != RenameMode::kExchange) return false;
  const auto target = StatAt(to_.dir.fd, std::string(to_.name).c_str());
  return target.ok() && target->IsDirectory();
}

Status Renaming::Look() {
  TRY_ASSIGN(folder_, LooksLikeFolder());
  TRY(attempt_.Enter(folder_ ? StepGate::Way::kAlone : StepGate::Way::kTogether));
  TRY_ASSIGN(from_dir_, attempt_.FindDir(from_.dir));
  TRY_ASSIGN(to_dir_, attempt_.FindDir(to_.dir));
  attempt_.HoldFirst({from_dir_.id, to_dir_.id});
  from_path_ = JoinPath(from_dir_.path, from_.name);
  to_path_ = JoinPath(to_dir_.path, to_.name);
  const Identifier& identifier = log_.place().identifier;
  TRY_ASSIGN(object_, OpenObjectAt(identifier, from_.dir.fd, std::string(from_.name).c_str()));
  auto target = OpenObjectAt(identifier, to_.dir.fd, std::string(to_.name).c_str());
  if (target.ok())
    target_ = std::move(*target);
  else if (target.error().code() != Code::kNotFound || mode_ == RenameMode::kExchange)
    return target.error();
  const bool moves_folder = object_.stat.IsDirectory() || (mode_ == RenameMode::kExchange &&
                                                           target_ && target_->stat.IsDirectory());
  // Somebody gave the name to a folder before it was held.
  return moves_folder && !folder_ ? Status(attempt_.Collide(object_.id)) : Ok();
}

std::optional<Result<Ticket>> Renaming::Shortcut() {
  // Names that undo does not care about on both sides; if one side matters, the move does.
  if (log_.Ignores(from_path_, object_.stat.mode) && log_.Ignores(to_path_, object_.stat.mode))
    return Unrecorded();
  if (!target_) return std::nullopt;
  if (mode_ == RenameMode::kNoReplace)
    return Error(Code::kExists, fmt::format("{} exists", to_path_), EEXIST);
  // Two names of one object: POSIX says that nothing happens. Both folders stay held, so that they are still that when it
  // does not happen.
  if (target_->id == object_.id) return attempt_.FinishUnrecorded();
  return std::nullopt;
}

Status Renaming::HoldAndAsk() {
  TRY(attempt_.Hold(object_.id));
  TRY(attempt_.CheckGround(object_, from_path_));
  if (!target_) return Ok();
  TRY(attempt_.Hold(target_->id));
  TRY(attempt_.CheckGround(*target_, to_path_));
  if (!replaces() || attempt_.writer().IsBorn(target_->id)) return Ok();
  return attempt_.Ask(log_.safeguards().OnRenameOver(to_path_, attempt_.state().claim));
}

Status Renaming::KeepBoth() {
  TRY(attempt_.TouchDir(from_dir_));
  TRY(attempt_.TouchDir(to_dir_));
  // A rename moves the ctime of what is renamed: how it looked before must be on record, or it would look like an edit later.
  TRY(attempt_.writer().TouchMeta(object_, from_path_, TouchReason::kNames));
  if (mode_ == RenameMode::kExchange)
    return attempt_.writer().TouchMeta(*target_, to_path_, TouchReason::kNames);
  if (!replaces()) return Ok();
  TRY_ASSIGN(keep_, attempt_.KeepObject(*target_, to_, to_path_));
  return Ok();
}

Status Renaming::Intend() {
  TRY_ASSIGN(attempt_.state().seq,
             attempt_.writer().IntendRename(Attempt::At(from_dir_, from_.name),
                                            Attempt::At(to_dir_, to_.name), mode_, object_,
                                            target_ ? &*target_ : nullptr, keep_));
  if (!keep_.by_rename) return Ok();
  const std::string what = fmt::format("replace {}", to_path_);
  if (object_.stat.IsDirectory()) return Error::FromErrno(ENOTDIR, what);
  // The old target moves aside first; the bridge's rename then finds the name free.
  return attempt_.MoveToAnchor(keep_, to_, what);
}

Ticket Renaming::Finish() {
  TicketState& state = attempt_.state();
  state.folder_rename = folder_;
  state.intent = {IntentKind::kRename, to_.dir.fd, to_dir_.id, std::string(to_.name), object_.id};
  if (target_) state.target = std::move(*target_);
  state.object = std::move(object_);
  return attempt_.Finish();
}

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
int Ticket::fresh_fd() const {
  if (state_ == nullptr || !state_->replacement) return -1;
  return state_->replacement->fresh_fd.get();
}

Status Ticket::Commit(Outcome outcome) {
  if (state_ == nullptr) return Ok();
  std::unique_ptr<TicketState> state = std::move(state_);
  if (state->writer == nullptr) return Ok();
  // What was moved has to be back before the journal says that nothing happened. A link is the other way round: a journal that still
  // knows of it must find it.
  const bool failed = outcome.sys_errno != 0;
  const bool links_only = state->seq && !state->keep.by_rename && !state->replacement;
  Status given_back;
  if (failed && !links_only) given_back = state->GiveBack();
  if (outcome.sys_errno == 0) state->claim.Count();
  if (state->folder_rename && outcome.sys_errno == 0) ++state->log->folder_renames();
  if (!state->seq) {
    LogCore& log = *state->log;
    state.reset();
    log.FireEvents();
    return given_back;
  }
  ObjectId created;
  if (outcome.sys_errno == 0 && state->intent && state->intent->IsBirth()) {
    auto id =
        state->log->place().identifier.OfName(state->intent->dir_fd, state->intent->name.c_str());
    if (id.ok()) created = *id;  // else it is gone again already
  }
  Status settled = state->writer->Settle(*state->seq, outcome.sys_errno, created);
  if (failed && links_only && settled.ok()) (void)state->GiveBack();
  LogCore& log = *state->log;
  state.reset();
  log.FireEvents();
  return settled;
}

// Judged here, where the names are still held: by the time the step closes a person may have used them. An outcome that cannot be told or
// recorded is judged then after all, and what could not be given back is on record, so that undo has it.
void Ticket::Cancel() {
  if (state_ != nullptr && state_->writer != nullptr) {
    if (const auto outcome = state_->Judge()) (void)Commit(*outcome);
  }
  state_.reset();
}

// --- Names.

Result<Ticket> Interceptor::BeginCreate(const NameRef& at, NodeType type) {
  TRY(CheckName(at));
  const uint32_t mode = FileTypeBits(type);
  if (log_.Ignores(JoinPath(at.dir.path, at.name), mode)) return Unrecorded();
  return Retry(log_, [&](Again& again) -> Result<Ticket> {
    Attempt attempt(log_, entrant_, again);
    TRY(attempt.Enter(StepGate::Way::kTogether));
    TRY_ASSIGN(auto dir, attempt.FindDir(at.dir));
    attempt.HoldFirst({dir.id});
    const std::string name(at.name);
    if (NameExists(at.dir.fd, name.c_str()))
      return Error(Code::kExists, fmt::format("{} exists", JoinPath(dir.path, at.name)), EEXIST);
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
    if (log_.Ignores(path, object.stat.mode)) return Unrecorded();
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
    if (log_.Ignores(path, object.stat.mode)) return Unrecorded();
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
    return Unrecorded();  // each write comes with its offset
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
    if (!object.stat.IsRegular()) return Unrecorded();
    attempt.HoldFirst({object.id});
    TRY_ASSIGN(object.stat, StatFd(object.fd.get()));  // as it is now that nobody else is at it
    TRY_ASSIGN(const auto path, attempt.RecordedPath(ref, object));
    if (!path) return Unrecorded();
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

Result<Ticket> Interceptor::BeginMetadata(const ObjectRef& ref) {
  return Retry(log_, [&](Again& again) -> Result<Ticket> {
    Attempt attempt(log_, entrant_, again);
    TRY(attempt.Enter(StepGate::Way::kTogether));
    TRY_ASSIGN(OpenObject object, OpenObjectFd(log_.place().identifier, ref.fd));
    attempt.HoldFirst({object.id});
    TRY_ASSIGN(object.stat, StatFd(object.fd.get()));
    TRY_ASSIGN(const auto path, attempt.RecordedPath(ref, object));
    if (!path) return Unrecorded();
    TRY(attempt.writer().TouchMeta(object, *path, TouchReason::kDirect));
    TRY(attempt.writer().MakeDurable());
    return attempt.Finish();
  });
}

Result<Ticket> Interceptor::BeginXattr(const ObjectRef& ref) { return BeginMetadata(ref); }
Result<Ticket> Interceptor::BeginFlags(const ObjectRef& ref) { return BeginMetadata(ref); }

}  // namespace sandglass::undo
