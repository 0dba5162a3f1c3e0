#include "undo/verify.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <unordered_map>
#include <unordered_set>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "undo/link_index.h"
#include "undo/looker.h"
#include "undo/running.h"

namespace sandglass::undo {
namespace {

// Does the object that the step left have the name?
std::optional<Conflict> CompareName(const ObjectsTable& objects, const StepView& view,
                                    const std::string& path, const Expected& expected,
                                    std::optional<ObjectId> found) {
  if (expected.object == kNoObject) {
    const ObjectId before = view.InitialAt(path);
    if (!found || before == kNoObject || objects.Current(*found) == objects.Current(before))
      return std::nullopt;  // nothing there, nothing to come back, or it never left
    return Conflict{ConflictKind::kOccupied, path, "has been created since"};
  }
  if (!found) return Conflict{ConflictKind::kMissing, path, "has been removed since"};
  if (objects.Current(*found) != objects.Current(expected.object))
    return Conflict{ConflictKind::kReplaced, path, "has been replaced since"};
  return std::nullopt;
}

using MaybeConflict = Result<std::optional<Conflict>>;

// Does it look as the step left it, if taking the step back would change it?
MaybeConflict CompareState(const Place& place, const ObjectsTable& objects, const StepView& view,
                           const Shadows& shadows, const std::string& path,
                           const std::string& path_now, const Expected& expected,
                           const Found& found) {
  if (expected.parent_only || !(expected.changed || view.IsBorn(expected.object)))
    return std::optional<Conflict>();
  if (shadows.Has(found.id))
    return std::optional(
        Conflict{ConflictKind::kBusy, path, "a running process has it open for writing"});
  TRY_ASSIGN(const bool as_left, LooksAsLeft(place, objects, path_now, found));
  if (as_left) return std::optional<Conflict>();
  return std::optional(Conflict{ConflictKind::kEdited, path, "has been changed since"});
}

// What was kept is not there, not what it was, or on a part of the disk that cannot be read: damage. Any other error says nothing about it.
MaybeConflict DamageOr(const Error& error, std::string_view path, std::string why) {
  const bool lost = error.code() == Code::kNotFound || error.sys_errno() == EIO;
  if (!lost && !IsDamage(error)) return error;
  return std::optional(Conflict{ConflictKind::kCorrupt, std::string(path), std::move(why)});
}

MaybeConflict CheckContent(const ContentRecord& r, StepFiles& files) {
  if (r.length == 0) return std::optional<Conflict>();
  const auto read = [&]() -> Status {
    if (r.keeping == Keeping::kPack)
      TRY(files.ReadKept(r));
    else
      TRY(files.OpenKept(r));
    return Ok();
  };
  const Status whole = read();
  if (whole.ok()) return std::optional<Conflict>();
  return DamageOr(whole.error(), r.path, whole.error().message());
}

// The anchors that a step has, by listing their folders.
class PresentAnchors {
 public:
  explicit PresentAnchors(int step_dir) {
    ForEachAnchor(step_dir, [this](int, const char* name) {
      slots_.insert(static_cast<uint32_t>(std::strtoul(name, nullptr, 10)));
    });
  }
  bool Has(AnchorId anchor) const { return slots_.contains(anchor.value); }

 private:
  std::unordered_set<uint32_t> slots_;
};

// What objects looked like of which a step only changed names: their anchors must still look so.
class Untouched {
 public:
  explicit Untouched(const StepView& view) : view_(view) {}

  // Records are shown in order, and an object's metadata comes before its anchor.
  void See(const MetaRecord& r) {
    if (const auto look = LookLeftAlone(view_, r)) looks_.try_emplace(r.object, *look);
  }
  bool StillLooksSo(ObjectId object, const FileStat& stat) const {
    const auto found = looks_.find(object);
    return found == looks_.end() || found->second.Matches(stat);
  }

 private:
  const StepView& view_;
  std::unordered_map<ObjectId, KeptLook> looks_;
};

MaybeConflict CheckAnchor(const std::string& path, AnchorId anchor, ObjectId object,
                          const Untouched& untouched, StepFiles& files) {
  auto anchors = files.Anchors();
  auto stat = anchors.ok() ? StatAt(*anchors, AnchorName(anchor).c_str())
                           : Result<FileStat>(anchors.error());
  if (!stat.ok()) return DamageOr(stat.error(), path, kKeptMissing);
  if (untouched.StillLooksSo(object, *stat)) return std::optional<Conflict>();
  return std::optional(Conflict{ConflictKind::kCorrupt, path, kKeptChanged});
}

// An anchor of the step: what has been kept of which object that lost the name `path`.
struct AnchorAt {
  std::string path;
  AnchorId slot;
  ObjectId object;
};

std::optional<AnchorAt> AnchorOf(const StepView& view, const Record& record) {
  if (const auto* r = std::get_if<RemoveRecord>(&record);
      r != nullptr && r->kept == Kept::kAnchor && !view.Outcome(r->seq).failed())
    return AnchorAt{JoinPath(r->at.dir, r->at.name), r->anchor, r->object};
  if (const auto* r = std::get_if<RenameRecord>(&record);
      r != nullptr && r->target_kept == Kept::kAnchor && !view.Outcome(r->seq).failed())
    return AnchorAt{JoinPath(r->to.dir, r->to.name), r->anchor, r->target};
  // Killed before the exchange, the anchor is the fresh inode and not the one that was to be kept.
  if (const auto* r = std::get_if<ReplaceRecord>(&record);
      r != nullptr && view.Outcome(r->seq).known && !view.Outcome(r->seq).failed())
    return AnchorAt{JoinPath(r->at.dir, r->at.name), r->anchor, r->old_object};
  return std::nullopt;
}

bool Names(const std::vector<Conflict>& conflicts, const std::string& path) {
  return std::any_of(conflicts.begin(), conflicts.end(),
                     [&](const Conflict& conflict) { return conflict.path == path; });
}

Conflict EditedAsWell(const std::string& path, const LaterSteps* later) {
  return {ConflictKind::kEdited, later == nullptr ? path : later->Back(path).value_or(path),
          "has been changed since, under this name"};
}

// The step changed an object and took the name that it did so under, but the object lives on under names that the step never saw.
std::optional<Conflict> CheckOtherNames(const Place& place, const ObjectsTable& objects,
                                        const AnchorAt& anchor, StepFiles& files,
                                        const LaterSteps* later) {
  auto anchors = files.Anchors();
  if (!anchors.ok()) return std::nullopt;  // damage, which is another question
  auto stat = StatAt(*anchors, AnchorName(anchor.slot).c_str());
  if (!stat.ok() || stat->nlink < 2) return std::nullopt;
  const auto signature = objects.Find(objects.Current(anchor.object));
  if (!signature || signature->Matches(*stat)) return std::nullopt;
  auto object = OpenObjectAt(place.identifier, *anchors, AnchorName(anchor.slot).c_str());
  if (!object.ok()) return std::nullopt;
  const auto path = LinkIndex(place).Find(object->id);
  if (!path) return std::nullopt;  // only other steps keep it
  return EditedAsWell(*path, later);
}

// The same where a copy was kept instead of an anchor: what lives on is found by a walk.
class CopiedObjects {
 public:
  CopiedObjects(const Place& place, const ObjectsTable& objects, const StepView& view)
      : objects_(objects), looker_(place), links_(place) {
    view.journal().ForEachOf<AfterRecord>(
        [this](const AfterRecord& after, size_t) { left_.insert(after.object); });
  }

  std::optional<Conflict> Check(ObjectId object, const LaterSteps* later) {
    // Each once, and only those that the step did not take the last name of.
    if (left_.erase(object) == 0) return std::nullopt;
    const auto signature = objects_.Find(objects_.Current(object));
    const auto path = signature ? links_.Find(objects_.Current(object)) : std::nullopt;
    const auto stat = path ? looker_.Stat(*path) : std::nullopt;
    if (!stat || signature->Matches(*stat)) return std::nullopt;
    return EditedAsWell(*path, later);
  }
  const Status& failure() const { return looker_.failure(); }

 private:
  const ObjectsTable& objects_;
  Looker looker_;
  LinkIndex links_;
  std::unordered_set<ObjectId> left_;
};

// The object that lost a name in the step and that a copy was kept of.
ObjectId CopiedBy(const StepView& view, const Record& record) {
  if (const auto* r = std::get_if<RemoveRecord>(&record);
      r != nullptr && r->kept == Kept::kContent && !view.Outcome(r->seq).failed())
    return r->object;
  if (const auto* r = std::get_if<RenameRecord>(&record);
      r != nullptr && r->target_kept == Kept::kContent && !view.Outcome(r->seq).failed())
    return r->target;
  return kNoObject;
}

// Folders whose times are those that the step left: no name in them has come or gone since, and the free ones need no look.
class QuietFolders {
 public:
  QuietFolders(const ObjectsTable& objects, const Place& place)
      : objects_(objects), looker_(place) {}

  bool Has(std::string_view dir, const StepView& view) {
    if (!known_ || dir != dir_) {
      known_ = true;
      dir_ = dir;
      quiet_ = IsQuiet(view.expected().Find(dir));
    }
    return quiet_;
  }

 private:
  bool IsQuiet(const Expected* expected) {
    if (expected == nullptr || expected->object == kNoObject) return false;
    const auto found = looker_.At(dir_);
    const ObjectId object = objects_.Current(expected->object);
    if (!found || found->id != object) return false;
    const auto signature = objects_.Find(object);
    return signature && signature->mtime_ns == found->stat.mtime_ns &&
           signature->ctime_ns == found->stat.ctime_ns;
  }

  const ObjectsTable& objects_;
  Looker looker_;
  bool known_ = false, quiet_ = false;
  std::string dir_;
};

// Folders that keep us out now. What is in them cannot be compared: no matter where the step itself, or one that is taken back first,
// closed the folder. Anybody else may have changed something in there before.
class ClosedFolders {
 public:
  ClosedFolders(const Place& place, const ObjectsTable& objects, const StepView& view)
      : place_(place), objects_(objects), view_(view), looker_(place) {}

  bool SinceTheStep(const std::string& path, ObjectId object, const LaterSteps* later) {
    if (!seen_) {
      seen_.emplace();
      view_.journal().ForEachOf<AfterRecord>(
          [this](const AfterRecord& after, size_t) { seen_->insert(after.object); });
      changed_ = ChangedNow(view_, objects_);
    }
    if (!seen_->contains(object)) return false;  // it was closed when the step ended
    const ObjectId folder = Closed(path);
    return !changed_.contains(folder) &&
           (later == nullptr || !later->HaveChangedNow(folder, objects_));
  }

 private:
  // The deepest folder above that can be seen.
  ObjectId Closed(std::string_view path) {
    while (!path.empty()) {
      path = ParentOf(path);
      if (const auto found = looker_.At(std::string(path))) return found->id;
    }
    const auto root = place_.identifier.OfFd(place_.root.get());
    return root.ok() ? *root : kNoObject;
  }

  const Place& place_;
  const ObjectsTable& objects_;
  const StepView& view_;
  Looker looker_;
  std::optional<std::unordered_set<ObjectId>> seen_;  // by who ended the step
  std::unordered_set<ObjectId> changed_;              // by the step, as of today
};

}  // namespace

Result<std::optional<uint64_t>> AttributesAt(const Place& place, const std::string& path) {
  const auto fd = OpenBeneath(place.root.get(), path, O_PATH | O_NOFOLLOW);
  const auto folder = fd.ok() ? OpenObjectFd(place.identifier, fd->get()) : fd.error();
  const auto hash = folder.ok() ? HashAttributes(*folder) : folder.error();
  if (hash.ok()) return std::optional(*hash);
  if (!SaysAbsent(hash.error().sys_errno())) return hash.error();
  return std::optional<uint64_t>();
}

Result<bool> LooksAsLeft(const Place& place, const ObjectsTable& objects, const std::string& path,
                         const Found& found) {
  const auto signature = objects.Find(found.id);
  if (!signature) return true;
  if (!signature->Matches(found.stat)) return false;
  const auto then =
      found.stat.IsDirectory() ? objects.FindAttributes(found.id) : std::optional<uint64_t>();
  if (!then) return true;
  TRY_ASSIGN(const auto now, AttributesAt(place, path));
  return !now || *now == *then;
}

Result<std::vector<Conflict>> FindEdits(const Place& place, const ObjectsTable& objects,
                                        const StepView& view, StepFiles& files,
                                        const Shadows& shadows, SymlinkPolicy symlinks,
                                        const LaterSteps* later) {
  std::vector<Conflict> conflicts;
#ifdef SANDGLASS_MUTANT_no_conflict_check
  return conflicts;
#endif
  Looker looker(place);
  QuietFolders quiet(objects, place);
  ClosedFolders closed(place, objects, view);
  RunningPrograms running(place, objects, view);
  for (const auto& [path, expected] : view.expected().map()) {
    if (later == nullptr && expected.object == kNoObject && quiet.Has(ParentOf(path), view))
      continue;
    const NameTrail::End end =
        later == nullptr ? NameTrail::End{.path = path, .object = {}} : later->Follow(path);
    const bool here = end.kind == NameTrail::End::Kind::kHere;
    const auto found = here ? looker.At(end.path) : std::nullopt;
    if (here && looker.denied()) {
      if (closed.SinceTheStep(end.path, expected.object, later))
        conflicts.push_back({ConflictKind::kEdited, path, "is in a folder that was closed since"});
      continue;
    }
    std::optional<ObjectId> object;
    if (found) object = found->id;
    if (end.kind == NameTrail::End::Kind::kGone) object = end.object;
    // A symlink that nobody cares for makes room: it may be the step's own.
    const bool makes_room = found && found->stat.IsSymlink() && expected.object == kNoObject &&
                            symlinks != SymlinkPolicy::kReadWrite;
    if (makes_room) object.reset();
    auto conflict = CompareName(objects, view, path, expected, object);
    if (!conflict && found && expected.object != kNoObject) {
      TRY_ASSIGN(conflict,
                 CompareState(place, objects, view, shadows, path, end.path, expected, *found));
    }
    if (!conflict && found && expected.changed) conflict = running.Check(path, end.path, *found);
    if (conflict) conflicts.push_back(std::move(*conflict));
  }
  TRY(looker.failure());
  if (!view.has_changed_objects()) return conflicts;
  CopiedObjects copied(place, objects, view);
  view.journal().ForEach<RemoveRecord, RenameRecord, ReplaceRecord>(
      [&](const Record& record, size_t) {
        const auto anchor = AnchorOf(view, record);
        if (anchor && !view.IsChanged(anchor->object)) return;
        auto conflict = anchor ? CheckOtherNames(place, objects, *anchor, files, later)
                               : copied.Check(CopiedBy(view, record), later);
        if (conflict && !Names(conflicts, conflict->path))
          conflicts.push_back(std::move(*conflict));
      });
  TRY(copied.failure());
  return conflicts;
}

std::unordered_set<ObjectId> ChangedNow(const StepView& view, const ObjectsTable& objects) {
  std::unordered_set<ObjectId> now;
  for (const auto* objects_of_step : {&view.changed(), &view.born()}) {
    for (const ObjectId object : *objects_of_step) now.insert(objects.Current(object));
  }
  return now;
}

bool LaterSteps::HaveChangedNow(ObjectId current, const ObjectsTable& objects) const {
  return std::any_of(changed_.begin(), changed_.end(),
                     [&](ObjectId changed) { return objects.Current(changed) == current; });
}

NameTrail::End LaterSteps::Follow(std::string_view path) const {
  NameTrail::End end{.path = std::string(path), .object = {}};
  for (auto trail = trails_.rbegin(); trail != trails_.rend(); ++trail) {
    end = trail->Follow(end.path);
    if (end.kind != NameTrail::End::Kind::kHere) break;
  }
  return end;
}

std::optional<std::string> LaterSteps::Back(std::string path) const {
  std::optional<std::string> at = std::move(path);
  for (auto trail = trails_.begin(); at && trail != trails_.end(); ++trail) at = trail->Back(*at);
  return at;
}

std::optional<KeptLook> LookLeftAlone(const StepView& view, const MetaRecord& r) {
  if (!S_ISREG(r.meta.mode) || view.IsChanged(r.object)) return std::nullopt;
  return KeptLook{r.meta.size, r.meta.mtime_ns};
}

Result<std::vector<Conflict>> FindDamage(const StepView& view, StepFiles& files, StepEnd end,
                                         AnchorCheck check, const LaterSteps* later) {
  std::vector<Conflict> conflicts;
  Status status;
  const auto note = [&](MaybeConflict conflict) {
    if (!conflict.ok() && status.ok()) status = conflict.error();
    if (conflict.ok() && *conflict) conflicts.push_back(std::move(**conflict));
  };
  if (view.journal().damaged() > 0) {
    conflicts.push_back(
        {ConflictKind::kCorrupt, "",
         fmt::format("{} records of its journal are damaged", view.journal().damaged()),
         view.header().id});
  }
  if (end == StepEnd::kClosed && !view.journal().Close().ok())
    conflicts.push_back(
        {ConflictKind::kCorrupt, "", "the end of its journal is missing", view.header().id});
  Untouched untouched(view);
  std::optional<PresentAnchors> present;
  if (check == AnchorCheck::kPresence) present.emplace(files.dir());
  view.journal().ForEach<MetaRecord, ContentRecord, RemoveRecord, RenameRecord, ReplaceRecord>(
      [&](const Record& record, size_t) {
        if (const auto* meta = std::get_if<MetaRecord>(&record)) {
          if (!present && (later == nullptr || !later->HaveChanged(meta->object)))
            untouched.See(*meta);
        } else if (const auto* content = std::get_if<ContentRecord>(&record)) {
          if (!view.IsDropped(*content)) note(CheckContent(*content, files));
        } else if (const auto anchor = AnchorOf(view, record)) {
          if (present && present->Has(anchor->slot)) return;
          note(CheckAnchor(anchor->path, anchor->slot, anchor->object, untouched, files));
        }
      });
  TRY(status);
  return conflicts;
}

bool HasHappened(IntentKind kind, ObjectId object, ObjectId now) {
  switch (kind) {
    case IntentKind::kCreate:
      return now != kNoObject && (object == kNoObject || object == now);
    case IntentKind::kRemove:
      return now != object;
    case IntentKind::kRename:
      return now == object;
  }
  return false;
}

Result<std::vector<OutcomeRecord>> JudgeOpenIntents(const Place& place, const StepView& view) {
  std::vector<OutcomeRecord> outcomes;
  Looker looker(place);
  const auto has = [&](const NameAt& at) {
    auto found = looker.At(JoinPath(at.dir, at.name));
    return found ? found->id : kNoObject;
  };
  const auto judge = [&](OpSeq seq, bool happened, ObjectId created = kNoObject) {
    outcomes.push_back({.seq = seq, .sys_errno = happened ? 0 : ECANCELED, .object = created});
  };
  using enum IntentKind;
  const auto open = [&](OpSeq seq) { return !view.Outcome(seq).known; };
  for (size_t i = 0; i < view.journal().size(); ++i) {
    auto record = view.journal().At(i);
    if (!record.ok()) continue;
    if (const auto* create = std::get_if<CreateRecord>(&*record)) {
      if (!open(create->seq)) continue;
      const ObjectId now = has(create->at);
      const ObjectId linked = create->birth == Birth::kLink ? create->object : kNoObject;
      judge(create->seq, HasHappened(kCreate, linked, now),
            create->birth == Birth::kNew ? now : kNoObject);
    } else if (const auto* remove = std::get_if<RemoveRecord>(&*record)) {
      if (open(remove->seq))
        judge(remove->seq, HasHappened(kRemove, remove->object, has(remove->at)));
    } else if (const auto* rename = std::get_if<RenameRecord>(&*record)) {
      if (open(rename->seq))
        judge(rename->seq, HasHappened(kRename, rename->object, has(rename->to)));
    } else if (const auto* replace = std::get_if<ReplaceRecord>(&*record)) {
      if (open(replace->seq)) judge(replace->seq, has(replace->at) == replace->fresh_object);
    }
  }
  TRY(looker.failure());
  return outcomes;
}

namespace {

// Folders in which an interrupted step only changed names, as they were before it.
class FoldersBefore {
 public:
  FoldersBefore(const Place& place, const StepView& view) : place_(place) {
    view.journal().ForEachOf<MetaRecord>([&](const MetaRecord& r, size_t) {
      if (S_ISDIR(r.meta.mode) && !view.IsChanged(r.object))
        before_.try_emplace(r.object, Look{r.meta.mode, r.meta.uid, r.meta.gid,
                                           HashAttributes(r.meta.xattrs, r.meta.flags)});
    });
  }

  // Names in a folder move both of its times to the same moment. Anything else was done to the folder itself.
  Result<bool> OnlyNamesChanged(const std::string& path, const Found& found) const {
    if (found.stat.mtime_ns != found.stat.ctime_ns) return false;
    const auto before = before_.find(found.id);
    if (before == before_.end()) return true;
    const Look& look = before->second;
    TRY_ASSIGN(const auto attributes, AttributesAt(place_, path));
    return look.mode == found.stat.mode && look.uid == found.stat.uid &&
           look.gid == found.stat.gid && attributes.value_or(look.attributes) == look.attributes;
  }

 private:
  struct Look {
    uint32_t mode, uid, gid;
    uint64_t attributes;
  };
  const Place& place_;
  std::unordered_map<ObjectId, Look> before_;
};

// What lost a name in the step, was copied for want of an anchor, and may have further names.
std::vector<ObjectId> SharedCopies(const StepView& view) {
  std::vector<ObjectId> copies;
  view.journal().ForEach<RemoveRecord, RenameRecord>([&](const Record& record, size_t) {
    const auto* remove = std::get_if<RemoveRecord>(&record);
    const ObjectId copied = CopiedBy(view, record);
    if (copied != kNoObject && (remove == nullptr || remove->nlink != 1)) copies.push_back(copied);
  });
  return copies;
}

}  // namespace

Result<std::vector<ObjectId>> FindLateChanges(const Place& place, const ObjectsTable& objects,
                                              const StepView& view, int step_dir,
                                              int64_t cutoff_ns) {
  const FoldersBefore folders(place, view);
  std::vector<ObjectId> late;
  Looker looker(place);
  LinkIndex links(place);
  for (const auto& [path, expected] : view.expected().map()) {
    auto found = looker.At(path);
    if (!found || found->stat.ctime_ns <= cutoff_ns) continue;
    const bool known = found->id == objects.Current(expected.object) ||
                       found->id == objects.Current(expected.before);
    bool names = false;
    if (found->stat.IsDirectory() && known) {
      TRY_ASSIGN(names, folders.OnlyNamesChanged(path, *found));
    }
    if (!names) late.push_back(found->id);
  }
  ForEachAnchor(step_dir, [&](int folder, const char* name) {
    const auto stat = StatAt(folder, name);
    if (!stat.ok() || stat->nlink < 2 || stat->ctime_ns <= cutoff_ns) return;
    if (const auto object = OpenObjectAt(place.identifier, folder, name); object.ok())
      late.push_back(object->id);
  });
  for (const ObjectId& copied : SharedCopies(view)) {
    const auto path = links.Find(objects.Current(copied));
    const auto stat = path ? looker.Stat(*path) : std::nullopt;
    if (stat && stat->ctime_ns > cutoff_ns) late.push_back(objects.Current(copied));
  }
  TRY(looker.failure());
  return late;
}

}  // namespace sandglass::undo
