// Rewinder: names. What was created goes, what was removed or replaced comes back, what was renamed moves back.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "undo/rewinder.h"

namespace sandglass::undo {

Status Rewinder::Undo(const CreateRecord& r) {
  const Settled outcome = in_.view.Outcome(r.seq);
  if (outcome.failed() || SkipsLink(r.mode)) return Ok();
  auto parent = OpenParent(r.at.dir, r.at.parent);
  const std::string path = JoinPath(r.at.dir, r.at.name), name(r.at.name);
  if (!parent.ok()) {
    if (passed_.IsBorn(r.at.parent)) return Ok();  // gone with its folder, by the step itself
    AddConflict(ConflictKind::kMissing, path, parent.error().message());
    return Ok();
  }
  TRY_ASSIGN(auto occupant, Occupant(**parent, name));
  if (!occupant) return TellTaken(r, path);
  const ObjectId object = r.object != kNoObject ? r.object : outcome.created;
  if (object == kNoObject && outcome.known) return Ok();  // ours was gone before anyone could look
  if (object != kNoObject && occupant->id != in_.objects.Current(object)) {
    AddConflict(ConflictKind::kReplaced, path, "someone else's object has this name now; kept");
    return Ok();
  }
  if (!MayChange(*occupant)) {
    TellKept(path);
    return r.birth == Birth::kReturned ? ShareWithOrigin(r.origin, **parent, name) : Ok();
  }
#ifdef SANDGLASS_MUTANT_keep_born_files
  if (occupant->stat.IsRegular()) return Ok();
#endif
  if (in_.recorder == nullptr) return TakeAwayRaw(r, **parent, name, *occupant);
  return TakeAway(r.at, **parent, name, *occupant);
}

// Of a killed rewind, which had brought the object back from where the rewound step keeps it. If it is not there again, somebody has
// taken it away since.
Status Rewinder::TellTaken(const CreateRecord& r, const std::string& path) {
  if (in_.recorder != nullptr || r.birth != Birth::kReturned) return Ok();
  TRY_ASSIGN(const int anchors, in_.origin->Anchors());
  if (!NameExists(anchors, AnchorName(r.origin).c_str()))
    AddConflict(ConflictKind::kMissing, path, "removed or renamed after the interruption");
  return Ok();
}

// Of a killed rewind, too: what a person has edited keeps its name, and the rewound step has it as well, as it must to be taken back
// later.
Status Rewinder::ShareWithOrigin(AnchorId slot, Parent& parent, const std::string& name) {
  if (in_.recorder != nullptr || in_.origin == nullptr || !place_.abilities.links) return Ok();
  TRY_ASSIGN(const int anchors, in_.origin->Anchors());
  if (::linkat(parent.object.fd.get(), name.c_str(), anchors, AnchorName(slot).c_str(), 0) == 0 ||
      errno == EEXIST)
    return Ok();
  return Error::FromErrno(errno, fmt::format("keep {}", JoinPath(parent.path, name)));
}

Status Rewinder::TakeAway(const NameAt& at, Parent& parent, const std::string& name,
                          const OpenObject& object) {
  const std::string path = JoinPath(at.dir, at.name);
  TRY_ASSIGN(Keep keep, in_.recorder->KeepObject(object, parent.object.fd.get(), name.c_str(), path,
                                                 KeepBy::kRename));
  TRY_ASSIGN(OpSeq seq, in_.recorder->IntendRemove(at, object, keep));
  int err = 0;
  if (keep.kept == Kept::kAnchor) {
    TRY_ASSIGN(int anchors, in_.recorder->files().Anchors());
    err = Attempt(parent, &object, [&] {
      return ::renameat(parent.object.fd.get(), name.c_str(), anchors,
                        AnchorName(keep.anchor).c_str());
    });
  } else {
    const int flags = object.stat.IsDirectory() ? AT_REMOVEDIR : 0;
    err = Attempt(parent, &object,
                  [&] { return ::unlinkat(parent.object.fd.get(), name.c_str(), flags); });
  }
  TRY(in_.recorder->Settle(seq, err));
  return TakenAway(path, object, err);
}

Status Rewinder::TakenAway(const std::string& path, const OpenObject& object, int err) {
  if (object.stat.IsDirectory()) ForgetParents();
  if (err == ENOTEMPTY || err == EEXIST) {
    report_.kept.push_back(path);
    return Ok();
  }
  if (err != 0) return Error::FromErrno(err, fmt::format("remove {}", path));
  notes_.Erase(path);
  return NoteOtherNames(object);
}

// Losing a name moves the ctime of an object that has others. That is our doing and no edit, so its signature moves along.
Status Rewinder::NoteOtherNames(const OpenObject& object) {
  if (object.stat.IsDirectory() || object.stat.nlink < 2) return Ok();
  TRY_ASSIGN(FileStat stat, StatFd(object.fd.get()));
  return NoteSignature(object.id, stat);
}

// A person's edit of what the step left alone stays one: an older step that changed the object must still find it.
Status Rewinder::NoteSignature(ObjectId object, const FileStat& stat) {
  if (IsOthers(object)) return Ok();
  FileStat left = stat;
  // A folder's time that is not ours stays so for older steps.
  if (const auto moved = moved_times_.find(object);
      moved != moved_times_.end() && moved->second.found_ns == stat.mtime_ns)
    left.mtime_ns = moved->second.signed_ns;
  in_.objects.Put(object, Signature::Of(left));
  return in_.recorder != nullptr ? in_.recorder->NoteAfter(object, left) : Ok();
}

Status Rewinder::TakeAwayRaw(const CreateRecord& r, Parent& parent, const std::string& name,
                             const OpenObject& object) {
  const std::string path = JoinPath(r.at.dir, r.at.name);
  int err = 0;
  if (r.birth == Birth::kReturned) {
    CHECK(in_.origin != nullptr);
    TRY_ASSIGN(int anchors, in_.origin->Anchors());
    err = Attempt(parent, &object, [&] {
      return ::renameat(parent.object.fd.get(), name.c_str(), anchors,
                        AnchorName(r.origin).c_str());
    });
  } else {
    const int flags = object.stat.IsDirectory() ? AT_REMOVEDIR : 0;
    err = Attempt(parent, &object,
                  [&] { return ::unlinkat(parent.object.fd.get(), name.c_str(), flags); });
  }
  return TakenAway(path, object, err);
}

Status Rewinder::Undo(const RemoveRecord& r) {
  if (in_.view.Outcome(r.seq).failed()) return Ok();
  const Kept kept = passed_.Contains(r.object) ? Kept::kDirectory : r.kept;
  if (kept == Kept::kNothing) return Ok();
  if (SkipsLink(r.mode)) {
    report_.warnings.push_back(LinkLeftOut(JoinPath(r.at.dir, r.at.name)));
    return Ok();
  }
  return BringBack({r.at, r.object, r.mode, kept, r.anchor, r.nlink, r.rdev, r.symlink_target});
}

std::string LinkLeftOut(std::string_view path) {
  return fmt::format("{}: symlinks are not restored under this policy", path);
}

Status Rewinder::BringBack(const Lost& lost) {
  auto parent = OpenParent(lost.at.dir, lost.at.parent);
  const std::string path = JoinPath(lost.at.dir, lost.at.name), name(lost.at.name);
  if (!parent.ok()) {
    AddConflict(ConflictKind::kMissing, path, parent.error().message());
    return Ok();
  }
  Note& note = notes_[path];
  if (lost.kept == Kept::kAnchor && in_.recorder != nullptr) {
    // Most names are free, and the rename itself finds out.
    TRY_ASSIGN(bool returned, ReturnAnchor(lost, **parent, name, note));
    if (returned) return Ok();
  }
  TRY_ASSIGN(auto occupant, Occupant(**parent, name));
  if (occupant && occupant->id == in_.objects.Current(lost.object)) return Ok();  // it never left
  if (occupant && IsMadeAnew(lost, *occupant)) {
    // A person's folder takes the old one's part, and keeps its looks.
    if (!MayChange(*occupant)) TRY(NoteOccupied(path));
    in_.objects.Succeed(lost.object, occupant->id);
    return in_.objects.Flush();
  }
  if (occupant) {
    // A symlink that this policy leaves alone makes room: it may be the step's own.
    const bool makes_room = in_.recorder != nullptr && SkipsLink(occupant->stat.mode);
    if (!makes_room) TRY(NoteOccupied(path));
    // After a crash the person's object keeps the name; by force the step's does. The other one gets a name beside.
    const bool theirs = (in_.recorder == nullptr || in_.keep != nullptr) && !makes_room;
    if (theirs && lost.kept == Kept::kAnchor) return ReturnAside(lost, **parent, name);
    if (in_.recorder == nullptr) return Ok();
    TRY(SetAside(lost.at, **parent, name, *occupant));
  }
  if (lost.kept == Kept::kAnchor) return ReturnToFreeName(lost, **parent, name);
  return MakeAnew(lost, **parent, name);
}

// Of a killed rewind: was that killed between making the object anew and noting whose place it took?
bool Rewinder::IsMadeAnew(const Lost& lost, const OpenObject& occupant) const {
  if (in_.recorder != nullptr || (occupant.stat.mode & S_IFMT) != (lost.mode & S_IFMT))
    return false;
  return lost.kept == Kept::kDirectory || (lost.kept == Kept::kContent && MayChange(occupant));
}

// Whoever did this was faster than the look before the rewind, or had done it before the step was closed.
Status Rewinder::NoteOccupied(const std::string& path) {
  constexpr const char* kWhat = "someone else's object has this name now";
  if (in_.recorder != nullptr && in_.force == Force::kNo)
    return Error(Code::kConflict, fmt::format("{}: {}", path, kWhat));
  AddConflict(ConflictKind::kOccupied, path, kWhat);
  return Ok();
}

Status Rewinder::ReturnToFreeName(const Lost& lost, Parent& parent, const std::string& name) {
  const std::string path = JoinPath(lost.at.dir, lost.at.name);
  TRY_ASSIGN(bool returned, ReturnAnchor(lost, parent, name, notes_[path]));
  if (returned) return Ok();
  return Error(Code::kExists, fmt::format("{} was taken again at once", path));
}

static std::optional<std::string> FreeNameBeside(int dir_fd, const std::string& name) {
  for (int n = 1; n < 1000; ++n) {
    std::string beside = fmt::format("{}.kept-{}", name.substr(0, 240), n);
    if (!NameExists(dir_fd, beside.c_str())) return beside;
  }
  return std::nullopt;
}

Status Rewinder::ReturnAside(const Lost& lost, Parent& parent, const std::string& name) {
  if (in_.recorder == nullptr) {  // it may have been killed right behind this very rename
    TRY_ASSIGN(const int anchors, in_.files.Anchors());
    if (!NameExists(anchors, AnchorName(lost.anchor).c_str())) return Ok();
  }
  const auto beside = FreeNameBeside(parent.object.fd.get(), name);
  if (!beside) return Error(Code::kExists, "no free name beside an occupied one");
  Lost renamed = lost;
  renamed.at.name = *beside;
  report_.kept.push_back(JoinPath(lost.at.dir, *beside));
  return ReturnToFreeName(renamed, parent, *beside);
}

// The name is taken by something that is not ours. Nothing may be lost: it moves to a name beside, which the report gives.
Status Rewinder::SetAside(const NameAt& at, Parent& parent, const std::string& name,
                          const OpenObject& occupant) {
  const auto beside = FreeNameBeside(parent.object.fd.get(), name);
  if (!beside) return Error(Code::kExists, "no free name beside an occupied one");
  const NameAt to{at.parent, at.dir, *beside};
  TRY_ASSIGN(OpSeq seq,
             in_.recorder->IntendRename(at, to, RenameMode::kNoReplace, occupant, nullptr, {}));
  const auto move_aside = [&] {
    return static_cast<int>(::renameat2(parent.object.fd.get(), name.c_str(),
                                        parent.object.fd.get(), beside->c_str(), RENAME_NOREPLACE));
  };
  const int err = Attempt(parent, &occupant, move_aside, Stays::kYes);
  TRY(in_.recorder->Settle(seq, err));
  if (err != 0)
    return Error::FromErrno(err, fmt::format("set {} aside", JoinPath(at.dir, at.name)));
  const std::string from_path = JoinPath(at.dir, at.name), to_path = JoinPath(at.dir, *beside);
  if (occupant.stat.IsDirectory()) notes_.MoveBelow(from_path, to_path);
  // A step that is still there may know it as it was; the new name changed its time. What was edited since stays so.
  const auto known = in_.objects.Find(occupant.id);
  if (known && known->Matches(occupant.stat)) notes_[to_path].object = occupant.id;
  report_.kept.push_back(to_path);
  return Ok();
}

Result<bool> Rewinder::ReturnAnchor(const Lost& lost, Parent& parent, const std::string& name,
                                    Note& note) {
  TRY_ASSIGN(int anchors, in_.files.Anchors());
  AnchorName anchor(lost.anchor);
  const ObjectId object = in_.objects.Current(lost.object);
  if (lost.nlink == 1) {
    looked_at_.insert(object);
  } else if (const auto kept = LookAt(anchors, anchor.c_str())) {
    FirstLookAtAnchor(object, *kept);
  }
  std::optional<OpSeq> seq;
  if (in_.recorder != nullptr) {
    TRY_ASSIGN(seq, in_.recorder->IntendCreate(lost.at, Birth::kReturned, lost.mode, lost.object,
                                               lost.anchor));
  }
  const int err = Attempt(parent, nullptr, [&] {
    return static_cast<int>(::renameat2(anchors, anchor.c_str(), parent.object.fd.get(),
                                        name.c_str(), RENAME_NOREPLACE));
  });
  if (seq) TRY(in_.recorder->Settle(*seq, err));
  if (err == EEXIST) return false;
  if (err == ENOENT) {
    AddConflict(ConflictKind::kCorrupt, JoinPath(lost.at.dir, lost.at.name), kKeptMissing);
    return true;
  }
  if (err == EXDEV) {  // the store has moved behind another mount since
    TRY(CopyAnchor(lost, parent, name));
    return true;
  }
  if (err != 0) {
    return Error::FromErrno(err, fmt::format("bring back {}", JoinPath(lost.at.dir, lost.at.name)));
  }
  note.object = object;
  // While everything about it is in the processor's caches, a look costs less than at the end.
  if (lost.nlink == 1 && !in_.view.IsChanged(lost.object))
    note.seen = LookAt(parent.object.fd.get(), name.c_str());
  return true;
}

Status Rewinder::CopyAnchor(const Lost& lost, Parent& parent, const std::string& name) {
  TRY_ASSIGN(int anchors, in_.files.Anchors());
  TRY_ASSIGN(OpenObject kept,
             OpenObjectAt(place_.identifier, anchors, AnchorName(lost.anchor).c_str()));
  TRY_ASSIGN(Metadata meta, CaptureMetadata(kept));
  Lost anew = lost;
  anew.kept = Kept::kContent;
  anew.mode = meta.mode;
  anew.rdev = meta.rdev;
  anew.symlink_target = meta.symlink_target;
  TRY(MakeAnew(anew, parent, name));
  TRY_ASSIGN(OpenObject fresh,
             OpenObjectAt(place_.identifier, parent.object.fd.get(), name.c_str()));
  if (fresh.stat.nlink > 1) return Ok();  // one more name for what was copied already
  if (S_ISREG(meta.mode)) {
    Fd out(::openat(parent.object.fd.get(), name.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!out.valid()) return Error::FromErrno(errno, fmt::format("copy back {}", name));
    TRY(CopySparse(kept.fd.get(), out.get(), meta.size));
  }
  return ApplyMetadata(fresh, meta);
}

Status Rewinder::MakeAnew(const Lost& lost, Parent& parent, const std::string& name) {
  if (!S_ISDIR(lost.mode) && lost.nlink != 1) {
    const ObjectId object = in_.objects.Current(lost.object);
    if (const auto other = links_.Find(object))
      return LinkAgain(lost, object, *other, parent, name);
  }
  const std::string path = JoinPath(lost.at.dir, lost.at.name);
  const int dir = parent.object.fd.get();
  std::optional<OpSeq> seq;
  if (in_.recorder != nullptr) {
    TRY_ASSIGN(seq, in_.recorder->IntendCreate(lost.at, Birth::kNew, lost.mode));
  }
  const bool has_flags = !S_ISDIR(lost.mode) && !S_ISREG(lost.mode);
  const NodeSpec node{.mode = lost.mode,
                      .rdev = lost.rdev,
                      .symlink_target = std::string(lost.symlink_target),
                      .flags = has_flags ? FlagsFor(lost.object) : 0};
  const int err = Attempt(parent, nullptr, [&] { return MakeNode(dir, name, node); });
  ObjectId created = kNoObject;
  if (err == 0) {
    TRY_ASSIGN(created, place_.identifier.OfName(dir, name.c_str()));
    in_.objects.Succeed(lost.object, created);
    TRY(in_.objects.Flush());
    links_.Add(created, path);
    made_anew_.insert(created);
  }
  if (seq) TRY(in_.recorder->Settle(*seq, err, created));
  if (err != 0) return Error::FromErrno(err, fmt::format("make {} anew", path));
  return Ok();
}

// Those that a symlink or a special file had: what is kept as content has its metadata on record, earlier in the journal.
uint32_t Rewinder::FlagsFor(ObjectId object) {
  if (!flags_) {
    flags_.emplace();
    in_.view.journal().ForEachOf<MetaRecord>([this](const MetaRecord& r, size_t) {
      const bool special = !S_ISREG(r.meta.mode) && !S_ISDIR(r.meta.mode);
      if (special && !r.names_only()) flags_->emplace(r.object, r.meta.flags);
    });
  }
  const auto found = flags_->find(object);
  return found == flags_->end() ? 0 : found->second;
}

// The object lives on under another name.
Status Rewinder::LinkAgain(const Lost& lost, ObjectId object, const std::string& other,
                           Parent& parent, const std::string& name) {
  TRY_ASSIGN(const Fd dir, OpenDirBeneath(place_.root.get(), ParentOf(other)));
  const std::string other_name(BaseName(other));
  // Before the new name moves its ctime.
  if (const auto stat = LookAt(dir.get(), other_name.c_str())) FirstLook(object, *stat);
  std::optional<OpSeq> seq;
  if (in_.recorder != nullptr) {
    TRY_ASSIGN(seq, in_.recorder->IntendCreate(lost.at, Birth::kLink, lost.mode, object));
  }
  const int err = Attempt(parent, nullptr, [&] {
    return ::linkat(dir.get(), other_name.c_str(), parent.object.fd.get(), name.c_str(), 0);
  });
  if (seq) TRY(in_.recorder->Settle(*seq, err));
  if (err != 0)
    return Error::FromErrno(
        err, fmt::format("link {} to {} again", JoinPath(lost.at.dir, lost.at.name), other));
  return Ok();
}

Status Rewinder::Undo(const RenameRecord& r) {
  if (in_.view.Outcome(r.seq).failed()) return Ok();
  const Kept kept = passed_.Contains(r.target) ? Kept::kDirectory : r.target_kept;
  const bool returns = r.target != kNoObject && !SkipsLink(r.target_mode) &&
                       (r.exchange != 0 || kept != Kept::kNothing);
  // A symlink is left where it is, unless it has the place of something that is not.
  if (SkipsLink(r.mode) && !returns) return Ok();
  const std::string to_path = JoinPath(r.to.dir, r.to.name),
                    from_path = JoinPath(r.from.dir, r.from.name);
  auto from = OpenParent(r.from.dir, r.from.parent, 0);
  auto to = OpenParent(r.to.dir, r.to.parent, 1);
  if (!from.ok() || !to.ok()) {
    const bool only_born = in_.view.IsBorn(r.object) && r.target_kept == Kept::kNothing;
    if (only_born) return Ok();  // gone with their folder, by the step itself
    AddConflict(ConflictKind::kMissing, to_path, (from.ok() ? to : from).error().message());
    return Ok();
  }
  TRY_ASSIGN(auto moved, Occupant(**to, std::string(r.to.name)));
  if (r.exchange != 0) return UndoExchange(r, **from, **to, moved);
  if (moved && moved->id == in_.objects.Current(r.object)) {
    TRY(MoveBack(r, **from, **to));
  } else if (!in_.view.IsBorn(r.object)) {
    TRY_ASSIGN(auto there, Occupant(**from, std::string(r.from.name)));
    if (!there || there->id != in_.objects.Current(r.object)) {
      AddConflict(moved ? ConflictKind::kReplaced : ConflictKind::kMissing, to_path,
                  "not the renamed object any more");
    }
  }
  if (!returns) return Ok();
  return BringBack(
      {r.to, r.target, r.target_mode, kept, r.anchor, 0, r.target_rdev, r.target_symlink});
}

// One of the two may have been born in the step and be gone by now, or a person has put something else in its place: then the other
// one moves back alone.
Status Rewinder::UndoExchange(const RenameRecord& r, Parent& from, Parent& to,
                              const std::optional<OpenObject>& at_to) {
  TRY_ASSIGN(auto at_from, Occupant(from, std::string(r.from.name)));
  const bool object_moved = at_to && at_to->id == in_.objects.Current(r.object);
  const bool target_moved = at_from && at_from->id == in_.objects.Current(r.target);
  if (object_moved && target_moved) return MoveBack(r, from, to);
  RenameRecord alone = r;
  alone.exchange = 0;
  if (object_moved) return MoveBack(alone, from, to);
  if (target_moved) {
    std::swap(alone.from, alone.to);
    std::swap(alone.object, alone.target);
    return MoveBack(alone, to, from);
  }
  const bool never = at_from && at_from->id == in_.objects.Current(r.object);
  const bool both_gone = in_.view.IsBorn(r.object) && in_.view.IsBorn(r.target);
  if (!never && !both_gone) {
    AddConflict(ConflictKind::kReplaced, JoinPath(r.to.dir, r.to.name),
                "not the exchanged objects any more");
  }
  return Ok();
}

// What has to be opened for it changes itself, if only until it is moved.
TouchReason Rewinder::ReasonToMove(const OpenObject& object) {
  const bool closed = IsWrittenWhenMoved(object, Stays::kYes) && (object.stat.mode & S_IWUSR) == 0;
  return closed ? TouchReason::kDirect : TouchReason::kNames;
}

Status Rewinder::MoveBack(const RenameRecord& r, Parent& from, Parent& to) {
  const std::string from_name(r.from.name), to_name(r.to.name);
  const std::string from_path = JoinPath(r.from.dir, from_name),
                    to_path = JoinPath(r.to.dir, to_name);
  const bool exchange = r.exchange != 0;
  TRY_ASSIGN(auto object, Occupant(to, to_name));
  if (!object) return Ok();
  TRY_ASSIGN(auto blocker, Occupant(from, from_name));
  if (!exchange && blocker) {
    TRY(NoteOccupied(from_path));
    if (in_.recorder == nullptr) return Ok();
    TRY(SetAside(r.from, from, from_name, *blocker));
  }
  std::optional<OpSeq> seq;
  if (in_.recorder != nullptr) {
    TRY(in_.recorder->TouchMeta(*object, to_path, ReasonToMove(*object)));
    if (exchange && blocker)
      TRY(in_.recorder->TouchMeta(*blocker, from_path, ReasonToMove(*blocker)));
    TRY_ASSIGN(seq, in_.recorder->IntendRename(
                        r.to, r.from, exchange ? RenameMode::kExchange : RenameMode::kNoReplace,
                        *object, exchange && blocker ? &*blocker : nullptr, {}));
  }
  const unsigned flags = exchange ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  const auto rename_back = [&] {
    return static_cast<int>(::renameat2(to.object.fd.get(), to_name.c_str(), from.object.fd.get(),
                                        from_name.c_str(), flags));
  };
  // Either folder, and either object, may be in the way.
  const auto with_other_side = [&] {
    errno = Attempt(from, exchange && blocker ? &*blocker : nullptr, rename_back, Stays::kYes);
    return errno == 0 ? 0 : -1;
  };
  const int err = Attempt(to, &*object, with_other_side, Stays::kYes);
  if (seq) TRY(in_.recorder->Settle(*seq, err));
  if (err != 0)
    return Error::FromErrno(err, fmt::format("rename {} back to {}", to_path, from_path));
  MoveNotes(r);
  if (object->stat.IsDirectory() || (blocker && blocker->stat.IsDirectory())) {
    if (in_.folder_renames != nullptr) ++*in_.folder_renames;
    // Paths below have changed; the two parents themselves have not, unless one lies below the other's child.
    ForgetParents();
    TRY(OpenParent(r.from.dir, r.from.parent, 0));
    TRY(OpenParent(r.to.dir, r.to.parent, 1));  // the caller's references are to these two places
  }
  return Ok();
}

Status Rewinder::Undo(const ReplaceRecord& r) {
  if (in_.view.Outcome(r.seq).failed()) return Ok();
  const std::string path = JoinPath(r.at.dir, r.at.name), name(r.at.name);
  auto parent = OpenParent(r.at.dir, r.at.parent);
  if (!parent.ok()) {
    AddConflict(ConflictKind::kMissing, path, parent.error().message());
    return Ok();
  }
  notes_[path];
  TRY_ASSIGN(auto now, Occupant(**parent, name));
  const bool swapped = now && now->id == in_.objects.Current(r.fresh_object);
  if (now && now->id == in_.objects.Current(r.old_object)) return ReturnReplaced(r, **parent, name);
  if (now && !swapped) {
    AddConflict(ConflictKind::kReplaced, path, "someone else's object has this name now");
    if (in_.recorder == nullptr) return Ok();
    TRY(SetAside(r.at, **parent, name, *now));
    now.reset();
  }
  if (swapped && !MayChange(*now)) {
    TellKept(path);
    return r.returned != 0 ? ShareWithOrigin(r.origin, **parent, name) : Ok();
  }
  if (now) return ExchangeInodes(r, **parent, name, *now);
  // The fresh inode was removed later in the step: the old one comes back as after a removal.
  if (in_.recorder == nullptr && r.returned != 0) return ReturnReplaced(r, **parent, name);
  return ReturnToFreeName({r.at, r.old_object, S_IFREG, Kept::kAnchor, r.anchor, 0, 0, {}},
                          **parent, name);
}

Status Rewinder::ExchangeInodes(const ReplaceRecord& r, Parent& parent, const std::string& name,
                                const OpenObject& now) {
  const std::string path = JoinPath(r.at.dir, r.at.name);
  TRY_ASSIGN(int anchors, in_.files.Anchors());
  AnchorName kept(r.anchor);
  const auto old = StatAt(anchors, kept.c_str());
  if (!old.ok()) {
    AddConflict(ConflictKind::kCorrupt, path, kKeptMissing);
    return Ok();
  }
  if (in_.recorder == nullptr) {
    const int err = Attempt(parent, &now, [&] {
      return static_cast<int>(::renameat2(anchors, kept.c_str(), parent.object.fd.get(),
                                          name.c_str(), RENAME_EXCHANGE));
    });
    if (err != 0) return Error::FromErrno(err, fmt::format("bring back {}", path));
    return ReturnReplaced(r, parent, name);
  }
  FirstLookAtAnchor(in_.objects.Current(r.old_object), *old);
  // The old inode moves to the recorder's folder first, so that the exchange leaves the present one there, ready for redo.
  TRY(in_.recorder->TouchMeta(now, path, TouchReason::kDirect));
  TRY_ASSIGN(int mine, in_.recorder->files().Anchors());
  TRY_ASSIGN(AnchorId slot, SlotFor(now, path));
  AnchorName slot_name(slot);
  TRY_ASSIGN(OpSeq seq, in_.recorder->IntendReplace(r.at, now.id, r.old_object, slot, r.anchor));
  if (::renameat2(anchors, kept.c_str(), mine, slot_name.c_str(), RENAME_NOREPLACE) != 0) {
    return Error::FromErrno(errno, fmt::format("bring back {}", path));
  }
  const int err = Attempt(parent, &now, [&] {
    return static_cast<int>(::renameat2(mine, slot_name.c_str(), parent.object.fd.get(),
                                        name.c_str(), RENAME_EXCHANGE));
  });
  if (err != 0) return Error::FromErrno(err, fmt::format("bring back {}", path));
  TRY(in_.recorder->Settle(seq, 0));
  return NoteOtherNames(now);
}

Result<AnchorId> Rewinder::SlotFor(const OpenObject& object, const std::string& path) {
  if (place_.abilities.links) {
    TRY_ASSIGN(const Keep keep, in_.recorder->KeepObject(object, -1, "", path, KeepBy::kRename));
    if (keep.kept == Kept::kAnchor) return keep.anchor;
  }
  return in_.recorder->files().NewAnchor();
}

// Of a killed rewind: the inode that came from the rewound step goes back to where that step keeps it.
Status Rewinder::ReturnReplaced(const ReplaceRecord& r, Parent&, const std::string&) {
  if (in_.recorder != nullptr || r.returned == 0 || in_.origin == nullptr) return Ok();
  TRY_ASSIGN(int mine, in_.files.Anchors());
  TRY_ASSIGN(int theirs, in_.origin->Anchors());
  if (!NameExists(mine, AnchorName(r.anchor).c_str())) return Ok();
  if (::renameat2(mine, AnchorName(r.anchor).c_str(), theirs, AnchorName(r.origin).c_str(),
                  RENAME_NOREPLACE) != 0) {
    return Error::FromErrno(errno, "return a kept inode");
  }
  return Ok();
}

}  // namespace sandglass::undo
