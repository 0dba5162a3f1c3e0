#include "undo/attempt.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "undo/encryption.h"
#include "undo/link_index.h"

namespace sandglass::undo {
namespace {

Error Retrying() { return Error(Code::kBusy, "to be tried again"); }

Error Frozen() {
  return Error(
      Code::kFrozen,
      "the file was removed and is kept for undo; it cannot be changed through an old descriptor",
      ESTALE);
}
// Asks whoever there is to ask, holding nothing.
Decision AskSafeguard(LogCore& log, const SafeguardQuestion& question) {
  SafeguardHandler* handler = log.options().safeguard_handler;
  if (handler == nullptr) return Decision::kDeny;
  const auto deadline = SteadyDeadline(log.options().safeguards.timeout);
  const Decision decision = handler->Decide(question);
  return std::chrono::steady_clock::now() > deadline ? Decision::kDeny
                                                     : decision;  // too late is no
}

Error Denied(const SafeguardQuestion& question) {
  return Error(Code::kDenied,
               fmt::format("safeguard {} stopped step {}: not confirmed; the step was rolled back",
                           SafeguardName(question.kind), question.step.value));
}
}  // namespace

Attempt::~Attempt() {
  if (state_ == nullptr || state_->writer == nullptr) return;
  // Without an outcome, the names decide when the step closes.
  if (state_->seq && !state_->writer->Settle(*state_->seq, ECANCELED).ok()) return;
  state_->writer->ReleaseKeep(state_->keep, state_->kept_object, state_->kept_dir,
                              state_->kept_name);
}

Error Attempt::Collide(ObjectId id) {
  again_.collided = id;
  return Retrying();
}

Result<std::optional<ObjectId>> Attempt::FindBorn(const ObjectRef& ref) const {
  using Born = std::optional<ObjectId>;
  if (!place_.identifier.has_handles() || !state_->writer->has_births()) return Born();
  TRY_ASSIGN(const ObjectId id, place_.identifier.OfFd(ref.fd));
  return state_->writer->IsBorn(id) ? Born(id) : Born();
}

Result<bool> Attempt::HoldIfBorn(const ObjectRef& ref) {
  TRY_ASSIGN(const auto born, FindBorn(ref));
  if (born) HoldFirst({*born});
  return born.has_value();
}

Result<OpenObject> Attempt::FindNamed(const NameRef& at) const {
  const std::string name(at.name);
  if (place_.identifier.has_handles() && state_->writer->has_births()) {
    const auto id = place_.identifier.OfName(at.dir.fd, name.c_str());
    if (id.ok() && state_->writer->IsBorn(*id)) {
      TRY_ASSIGN(const FileStat stat, StatAt(at.dir.fd, name.c_str()));
      return OpenObject{.fd = Fd(), .id = *id, .stat = stat};
    }
  }
  return FindObjectAt(place_.identifier, at.dir.fd, name.c_str());
}

Status Attempt::Hold(OpenObject& object) {
  TRY(HoldAlso(object.id));
  if (!object.fd.valid()) return Ok();
  const uint32_t type = object.stat.mode & S_IFMT;
  TRY_ASSIGN(object.stat, StatFd(object.fd.get()));
  // A person gave the name to something else between the look and the open.
  return (object.stat.mode & S_IFMT) == type ? Ok() : Collide(object.id);
}

Status Attempt::Ask(std::optional<SafeguardQuestion> question) {
  again_.question = std::move(question);
  return again_.question ? Status(Retrying()) : Ok();
}

Result<Attempt::Dir> Attempt::FindDir(const DirRef& ref) {
  Dir dir{.fd = ref.fd, .id = kNoObject, .path = std::string(ref.path)};
  TRY_ASSIGN(dir.id, place_.identifier.OfFd(ref.fd));
  // Someone may have renamed a folder since the caller resolved its path. Only then is asking the kernel worth its price.
  if (log_.folder_renames() > 0) {
    if (auto now = ProjectPathOf(place_, ref.fd)) dir.path = *now;
  }
  return dir;
}

// Not through the caller's descriptor, which outlives the folder.
Result<OpenObject> Attempt::OpenDir(const Dir& dir) const {
  const auto gone = [&] {
    return Error(Code::kNotFound, fmt::format("the folder {} is gone", dir.path), ENOENT);
  };
  auto there = OpenDirBeneath(place_.root.get(), dir.path);
  if (!there.ok()) {
    const int err = there.error().sys_errno();
    if (err == ENOENT || err == ENOTDIR || err == ELOOP) return gone();
    return OpenObjectFd(place_.identifier, dir.fd);  // nobody can look, or it is no ground for undo
  }
  OpenObject object;
  object.fd = std::move(*there);
  TRY_ASSIGN(object.id, place_.identifier.OfFd(object.fd.get()));
  if (object.id != dir.id) return gone();
  TRY_ASSIGN(object.stat, StatFd(object.fd.get()));
  return object;
}

Status Attempt::TouchDir(const Dir& dir) {
  if (writer().HasFolder(dir.id)) return Ok();
  TRY_ASSIGN(OpenObject object, OpenDir(dir));
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
  if (!object.fd.valid()) return Ok();  // it was asked when this step made it
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
  if (log_.IsKeptAlone(*state_->writer, object.id, object.stat.nlink)) return Path();
  return AnyPathOf(place_, object);
}

Result<std::optional<std::string>> Attempt::RecordedPath(const ObjectRef& ref,
                                                         const OpenObject& object) {
  using Path = std::optional<std::string>;
  TRY_ASSIGN(auto path, Locate(ref, object));
  // Whatever names it has elsewhere: the inode is what a rollback will bring back.
  if (!path && log_.AnchorsOf(writer(), object.id) > 0) return Frozen();
  // Without a name it is nothing of the project. What has several may have one that is not ignored.
  if (!path || (object.stat.nlink < 2 && LeavesOut(*path, object))) return Path();
  TRY(CheckGround(object, *path));
  return path;
}

std::string Attempt::Uncarried(const std::string& path) const {
  if (!state_->writer->carries()) return path;
  for (std::string_view up = ParentOf(path); !up.empty(); up = ParentOf(up)) {
    const auto fd = OpenDirBeneath(place_.root.get(), up);
    const auto id = fd.ok() ? place_.identifier.OfFd(fd->get()) : Result<ObjectId>(fd.error());
    if (!id.ok()) continue;
    if (const auto from = state_->writer->CarriedFrom(*id))
      return JoinPath(*from, std::string_view(path).substr(up.size() + 1));
  }
  return path;
}

bool Attempt::LeavesOut(const std::string& path, uint32_t mode) const {
  return log_.Ignores(path, mode) && log_.Ignores(Uncarried(path), mode);
}

bool Attempt::LeavesOut(const std::string& path, const OpenObject& object) const {
  return LeavesOut(path, object.stat.mode) && !state_->writer->Knows(object.id) &&
         !log_.HasLeft(object.id);
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

Status BeforeNextAttempt(LogCore& log, const Again& again) {
  if (again.collided) {
    log.locks().WaitFor(*again.collided);
    return Ok();
  }
  const SafeguardQuestion& question = *again.question;
  std::optional<Decision> answer = log.safeguards().AwaitAnswer(question);
  const bool is_asker = !answer;
  if (is_asker) answer = AskSafeguard(log, question);
  // The step goes before the answer: whoever waits for this must not go on in it. Whoever did wait tries again, should that have failed.
  Status rolled_back;
  if (*answer == Decision::kDeny) rolled_back = log.Deny(question.step);
  if (is_asker) log.safeguards().Answered(question, *answer);
  TRY(rolled_back);
  return *answer == Decision::kDeny ? Status(Denied(question)) : Ok();
}

}  // namespace sandglass::undo
