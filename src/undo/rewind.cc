#include "undo/rewind.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/beneath.h"
#include "base/io.h"
#include "base/rel_path.h"
#include "undo/looker.h"
#include "undo/rewinder.h"

namespace sandglass::undo {
namespace {

constexpr size_t kTellEvery = 64;  // records

}  // namespace

Status Rewinder::Run() {
  looked_at_.reserve(in_.view.expected().map().size());
  std::optional<CursorFile> cursor;
  size_t undone = 0;
  if (in_.recorder == nullptr) {
    TRY_ASSIGN(CursorFile file, CursorFile::Open(in_.files.dir(), "journal"));
    cursor.emplace(std::move(file));
    undone = std::min<uint64_t>(cursor->Get(), in_.view.journal().size());
    for (size_t index = in_.view.journal().size(); index-- > in_.view.journal().size() - undone;) {
      if (auto record = in_.view.journal().At(index); record.ok()) NoteUndone(*record, index);
    }
  }
#ifdef SANDGLASS_MUTANT_restore_out_of_order
  for (size_t index = 0; index < in_.view.journal().size(); ++index) {
#else
  for (size_t index = in_.view.journal().size() - undone; index-- > 0;) {
#endif
    if (in_.progress && index % kTellEvery == 0)
      in_.progress(in_.view.journal().size() - index, in_.view.journal().size());
    if (in_.view.journal().IsOneOf<OutcomeRecord, AfterRecord>(index)) continue;
    if (cursor) cursor->Beat(StampingNow());
    auto record = in_.view.journal().At(index);
    if (!record.ok()) continue;
    Status status = std::holds_alternative<MetaRecord>(*record)
                        ? Undo(std::get<MetaRecord>(*record), index)
                        : UndoRecord(*record);
    if (!status.ok()) return status;
    if (!cursor) continue;
    TRY(MarkUnreturned());
    cursor->Set(in_.view.journal().size() - index);
  }
  if (cursor) cursor->Beat(StampingNow());
  TRY(ApplyDeferred());
  if (cursor) TRY(MarkUnreturned());
  return NoteSignatures();
}

// Behind the cursor nobody looks again, and what is told now would be forgotten if we were killed.
Status Rewinder::MarkUnreturned() {
  if (report_.conflicts.empty() || marked_) return Ok();
  marked_ = true;
  return ReplaceFileAt(in_.files.dir(), kUnreturned, "", FileSync::kPower);
}

// What an earlier run of the same rewind already took back: only the notes about it are missing.
void Rewinder::NoteUndone(const Record& record, size_t index) {
  const auto tell_kept = [&](ObjectId object, std::string_view path) {
    if (in_.keep != nullptr && in_.keep->contains(in_.objects.Current(object))) TellKept(path);
  };
  if (const auto* meta = std::get_if<MetaRecord>(&record)) {
    if (!ComesLast(*meta) && !meta->names_only()) tell_kept(meta->object, meta->path);
    Note& note = notes_[meta->path];
    if (ComesLast(*meta)) note.deferred_meta = index;
  } else if (const auto* content = std::get_if<ContentRecord>(&record)) {
    tell_kept(content->object, content->path);
    notes_[content->path];
  } else if (const auto* create = std::get_if<CreateRecord>(&record)) {
    notes_.Erase(JoinPath(create->at.dir, create->at.name));
  } else if (const auto* remove = std::get_if<RemoveRecord>(&record)) {
    notes_[JoinPath(remove->at.dir, remove->at.name)];
  } else if (const auto* replace = std::get_if<ReplaceRecord>(&record)) {
    notes_[JoinPath(replace->at.dir, replace->at.name)];
  } else if (const auto* rename = std::get_if<RenameRecord>(&record)) {
    if (!in_.view.Outcome(rename->seq).failed()) MoveNotes(*rename);
  }
}

void Rewinder::MoveNotes(const RenameRecord& r) {
  const std::string from_path = JoinPath(r.from.dir, r.from.name),
                    to_path = JoinPath(r.to.dir, r.to.name);
  Note moved = notes_[to_path], other = notes_[from_path];
  moved.seen.reset();
  other.seen.reset();
  notes_[from_path] = moved;
  if (r.exchange != 0) {
    notes_[to_path] = other;
    notes_.SwapBelow(to_path, from_path);
  } else {
    notes_.Erase(to_path);
    notes_.MoveBelow(to_path, from_path);
  }
}

Status Rewinder::UndoRecord(const Record& record) {
  if (const auto* content = std::get_if<ContentRecord>(&record)) return Undo(*content);
  if (const auto* create = std::get_if<CreateRecord>(&record)) return Undo(*create);
  if (const auto* remove = std::get_if<RemoveRecord>(&record)) return Undo(*remove);
  if (const auto* rename = std::get_if<RenameRecord>(&record)) return Undo(*rename);
  if (const auto* replace = std::get_if<ReplaceRecord>(&record)) return Undo(*replace);
  return Ok();
}

// --- Finding things.

Result<Rewinder::Parent*> Rewinder::OpenParent(std::string_view dir, ObjectId expected, int slot) {
  std::optional<Parent>& cached = parents_[slot];
  if (!cached || cached->path != dir) {
    auto opened = OpenDirBeneath(place_.root.get(), dir);
    if (!opened.ok() && opened.error().code() == Code::kDenied) {
      TRY(LiftAbove(dir));
      opened = OpenDirBeneath(place_.root.get(), dir);
    }
    if (!opened.ok()) return opened.error();
    OpenObject object{.fd = std::move(*opened)};
    TRY_ASSIGN(object.stat, StatFd(object.fd.get()));
    TRY_ASSIGN(object.id, place_.identifier.OfFd(object.fd.get()));
    FirstLook(object.id, object.stat);
    cached = Parent{std::string(dir), std::move(object)};
    if (in_.recorder != nullptr)
      TRY(in_.recorder->TouchMeta(cached->object, dir, TouchReason::kNames));
    notes_[dir];
  }
  if (expected != kNoObject && cached->object.id != in_.objects.Current(expected)) {
    return Error(Code::kConflict, fmt::format("{} is another folder than it was", dir));
  }
  return &*cached;
}

// Folders on the way that keep us out (a step closed them, or they always were) are opened for the time of the rewind.
Status Rewinder::LiftAbove(std::string_view dir) {
  for (size_t end = 0; end != std::string_view::npos; end = dir.find('/', end + 1)) {
    const std::string path(dir.substr(0, end));
    auto fd = OpenDirBeneath(place_.root.get(), path);
    if (!fd.ok()) return Ok();  // the caller will see the same
    TRY_ASSIGN(OpenObject object, OpenObjectFd(place_.identifier, fd->get()));
    FirstLook(object.id, object.stat);
    if ((object.stat.mode & 0700) == 0700) continue;
    if (in_.recorder != nullptr) TRY(in_.recorder->TouchMeta(object, path, TouchReason::kNames));
    LiftFolder(object, path);
  }
  return Ok();
}

void Rewinder::LiftFolder(const OpenObject& folder, std::string_view path) {
  Lifted& lifted = notes_[path].lifted;
  Lift(folder, S_IRWXU, lifted);
  if (lifted.mode) lifted_ = true;
}

void Rewinder::LowerAgain(const std::string& path, const Note& note) {
  if (!note.lifted.mode && note.lifted.flags == 0) return;
  auto fd = OpenBeneath(place_.root.get(), path, O_PATH | O_NOFOLLOW);
  if (!fd.ok()) return;
  if (auto object = OpenObjectFd(place_.identifier, fd->get()); object.ok())
    Lower(*object, note.lifted);
}

Result<std::optional<OpenObject>> Rewinder::Occupant(Parent& parent, const std::string& name) {
  auto object = OpenObjectAt(place_.identifier, parent.object.fd.get(), name.c_str());
  if (!object.ok() && object.error().code() == Code::kDenied) {
    // A folder without search permission: ours, so lift it.
    lifted_ = true;
    LiftFolder(parent.object, parent.path);
    object = OpenObjectAt(place_.identifier, parent.object.fd.get(), name.c_str());
  }
  if (object.ok()) {
    FirstLook(object->id, object->stat);
    return std::optional<OpenObject>(std::move(*object));
  }
  if (object.error().code() == Code::kNotFound) return std::optional<OpenObject>();
  return object.error();
}

void Rewinder::FirstLook(ObjectId object, const FileStat& stat) {
  if (!looked_at_.insert(object).second) return;
  if (stat.IsDirectory() && in_.keep != nullptr && in_.keep->contains(object))
    moved_times_[object] = {stat.mtime_ns, stat.mtime_ns};
  // A folder that the step did not get to is only passed on the way, and what it left is not outdated.
  if (in_.signatures == Signatures::kOutdated && (!stat.IsDirectory() || IsOnRecord(object)))
    return;
  const auto signature = in_.objects.Find(object);
  if (!signature || (lifted_ && !WasSeenAtTheEnd(object))) return;
  const bool edited = !signature->Matches(stat);
  // Only force goes over an edit of what the step changed, and then all of it is put back.
  if (edited && StepChanged(object)) return;
  if (edited) edited_.insert(object);
  if (stat.IsDirectory() && stat.mtime_ns != signature->mtime_ns)
    moved_times_[object] = {signature->mtime_ns, stat.mtime_ns};
}

bool Rewinder::WasSeenAtTheEnd(ObjectId current) {
  if (!seen_at_the_end_) {
    seen_at_the_end_.emplace();
    in_.view.journal().ForEachOf<AfterRecord>([this](const AfterRecord& after, size_t) {
      seen_at_the_end_->insert(in_.objects.Current(after.object));
    });
  }
  return seen_at_the_end_->contains(current);
}

bool Rewinder::IsOnRecord(ObjectId current) {
  if (!on_record_) {
    on_record_ = ChangedNow(in_.view, in_.objects);
    in_.view.journal().ForEachOf<MetaRecord>([this](const MetaRecord& meta, size_t) {
      on_record_->insert(in_.objects.Current(meta.object));
    });
  }
  return on_record_->contains(current);
}

// The set is built once: what this rewind makes anew has no signature that could tell an edit.
bool Rewinder::StepChanged(ObjectId current) {
  if (in_.view.IsChanged(current)) return true;
  if (!changed_) changed_ = ChangedNow(in_.view, in_.objects);
  return changed_->contains(current);
}

// An object that has no other name left can have been changed by nobody, and losing the last one left its signature behind.
void Rewinder::FirstLookAtAnchor(ObjectId object, const FileStat& stat) {
  if (stat.nlink > 1)
    FirstLook(object, stat);
  else
    looked_at_.insert(object);
}

Result<std::optional<OpenObject>> Rewinder::Recorded(std::string_view path, ObjectId recorded,
                                                     Parent** parent_out) {
  using Nothing = std::optional<OpenObject>;
  if (path.empty()) {  // the root itself
    TRY_ASSIGN(Parent * root, OpenParent("", kNoObject));
    *parent_out = root;
    TRY_ASSIGN(OpenObject object, OpenObjectFd(place_.identifier, root->object.fd.get()));
    return Nothing(std::move(object));
  }
  auto parent = OpenParent(ParentOf(path), kNoObject);
  if (!parent.ok()) {
    if (parent.error().code() != Code::kNotFound && parent.error().code() != Code::kOutsideRoot)
      return parent.error();
    AddConflict(ConflictKind::kMissing, path, "its folder is gone");
    return Nothing();
  }
  *parent_out = *parent;
  TRY_ASSIGN(auto object, Occupant(**parent, std::string(BaseName(path))));
  if (!object || object->id != in_.objects.Current(recorded)) {
    AddConflict(object ? ConflictKind::kReplaced : ConflictKind::kMissing, path,
                "not the recorded object any more");
    return Nothing();
  }
  if (!MayChange(*object)) {
    TellKept(path);
    return Nothing();
  }
  return object;
}

// --- Metadata.

Status Rewinder::Undo(const MetaRecord& r, size_t index) {
  if (SkipsLink(r.meta.mode)) return Ok();
  if (r.names_only()) {
    notes_[r.path].look = LookLeftAlone(in_.view, r);
    return LowerForgotten(r);
  }
  notes_[r.path].seen.reset();
  if (ComesLast(r)) {
    notes_[r.path].deferred_meta = index;
    return Ok();
  }
  Parent* parent = nullptr;
  TRY_ASSIGN(auto object, Recorded(r.path, r.object, &parent));
  if (!object) return Ok();
  return ApplyMeta(*object, r.path, r, notes_[r.path].lifted);
}

Status Rewinder::LowerForgotten(const MetaRecord& r) {
  // Only a step that did not end can have left it so. Anything else that it looks like now is somebody's doing.
  if (in_.signatures != Signatures::kOutdated || (r.meta.mode & S_IRUSR) != 0) return Ok();
  auto fd = OpenBeneath(place_.root.get(), r.path, O_PATH | O_NOFOLLOW);
  if (!fd.ok()) return Ok();
  TRY_ASSIGN(OpenObject object, OpenObjectFd(place_.identifier, fd->get()));
  if (object.id != in_.objects.Current(r.object) || !MayChange(object) ||
      object.stat.mode != (r.meta.mode | S_IRUSR))
    return Ok();
  if (in_.recorder != nullptr) TRY(in_.recorder->TouchMeta(object, r.path, TouchReason::kDirect));
  Lower(object, {.mode = r.meta.mode & 07777});
  return Ok();
}

Status Rewinder::ApplyMeta(const OpenObject& object, std::string_view path, const MetaRecord& r,
                           const Lifted& lifted) {
  // Names of a file changed: what a person did to the file itself is not ours to take back.
  if (WasEdited(object.id) && !object.stat.IsDirectory()) {
    Lower(object, lifted);
    return Ok();
  }
  if (in_.recorder != nullptr) {
    // First touched for its names, an object may have been changed itself later in the step.
    const bool changed = in_.view.IsChanged(r.object);
    TRY(in_.recorder->TouchMeta(object, path, changed ? TouchReason::kDirect : r.reason));
  }
  Status applied = PutBack(object, r, lifted);
  if (!applied.ok()) {
    Lifted more = lifted;
    more.flags |= ClearBlockingFlags(object);
    applied = PutBack(object, r, more);
  }
  if (!applied.ok())
    report_.warnings.push_back(fmt::format("{}: {}", path, applied.error().message()));
  return Ok();
}

Status Rewinder::PutBack(const OpenObject& object, const MetaRecord& r, const Lifted& lifted) {
  Metadata want = r.meta;
  // The later change counts: without the step, the time would be this one.
  if (const auto moved = moved_times_.find(object.id); moved != moved_times_.end())
    want.mtime_ns = moved->second.found_ns;
  if (!OnlyTimesMoved(object, r)) return ApplyMetadata(object, want);
  TRY(ApplyMtime(object, want.mtime_ns));
  Lower(object, lifted);
  return Ok();
}

// What is made anew needs all of it. So does a rewind that was killed: it may have lifted the mode or flags of the folder.
bool Rewinder::OnlyTimesMoved(const OpenObject& object, const MetaRecord& r) const {
  return object.stat.IsDirectory() && in_.recorder != nullptr && !in_.view.IsChanged(r.object) &&
         !made_anew_.contains(object.id);
}

// Deepest first: restoring a folder's time must be the last thing that happens in it.
Status Rewinder::ApplyDeferred() {
  ForgetParents();
  for (auto it = notes_.map().rbegin(); it != notes_.map().rend(); ++it) {
    if (!it->second.deferred_meta) {
      LowerAgain(it->first, it->second);
      continue;
    }
    auto record = in_.view.journal().At(*it->second.deferred_meta);
    if (!record.ok()) continue;
    const auto& meta = std::get<MetaRecord>(*record);
    auto fd = OpenBeneath(place_.root.get(), it->first, O_PATH | O_NOFOLLOW);
    if (!fd.ok()) {
      if (fd.error().code() != Code::kNotFound) report_.warnings.push_back(fd.error().ToString());
      continue;
    }
    TRY_ASSIGN(OpenObject object, OpenObjectFd(place_.identifier, fd->get()));
    if (object.id != in_.objects.Current(meta.object)) continue;
    if (!MayChange(object)) {
      TellKept(it->first);
      if (const auto moved = moved_times_.find(object.id); moved != moved_times_.end())
        TRY(ApplyMtime(object, moved->second.found_ns));
      Lower(object, it->second.lifted);
      continue;
    }
    FirstLook(object.id, object.stat);
    TRY(ApplyMeta(object, it->first, meta, it->second.lifted));
  }
  return Ok();
}

Status Rewinder::NoteSignatures() {
  Looker looker(place_);
  for (const auto& [path, note] : notes_.map()) {
    std::optional<Found> found;
    if (note.seen)
      found = Found{note.object, *note.seen};
    else
      found = note.object != kNoObject ? looker.Known(path, note.object) : looker.At(path);
    if (!found) continue;
    TRY(CheckReturned(path, note, found->stat));
    TRY(NoteSignature(found->id, found->stat));
    if (found->stat.IsDirectory() && !IsOthers(found->id) &&
        (StepChanged(found->id) || made_anew_.contains(found->id))) {
      TRY_ASSIGN(const auto attributes, AttributesAt(place_, path));
      in_.objects.PutAttributes(found->id, attributes);
    }
  }
  TRY(looker.failure());
  return in_.objects.Flush();
}

Status Rewinder::CheckReturned(const std::string& path, const Note& note, const FileStat& stat) {
  if (in_.recorder == nullptr || note.object == kNoObject || !note.look || note.look->Matches(stat))
    return Ok();
  // Another inode may have been put in its place. It is what the step keeps now, and must go back there if the rewind turns back.
  if (const auto found = Looker(place_).At(path); found && found->id != note.object) {
    in_.objects.Succeed(note.object, found->id);
    TRY(in_.objects.Flush());
  }
  if (in_.force == Force::kNo)
    return Error(Code::kCorrupt, fmt::format("{}: {}", path, kKeptChanged));
  AddConflict(ConflictKind::kCorrupt, path, kKeptChanged);
  return Ok();
}

bool LeavesSomething(const std::vector<Conflict>& conflicts) {
  return std::any_of(conflicts.begin(), conflicts.end(), [](const Conflict& conflict) {
    return conflict.kind != ConflictKind::kOccupied;
  });
}

Status Rewind(const RewindInput& input, RewindReport& report) {
  return Rewinder(input, report).Run();
}

}  // namespace sandglass::undo
