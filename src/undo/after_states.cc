// LogCore: how steps leave objects, and what others did to them since.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <unordered_map>

#include "base/io.h"
#include "base/rel_path.h"
#include "undo/link_index.h"
#include "undo/log_core.h"
#include "undo/looker.h"
#include "undo/name_trail.h"
#include "undo/verify.h"

namespace sandglass::undo {

Status LogCore::NoteAfterStates(StepWriter& writer, const StepView& view) {
  Looker looker(*place_);
  int64_t latest = 0;
  for (const auto& [path, expected] : view.expected().map()) {
    if (expected.object == kNoObject) continue;
    // If another hand was faster and this is another object now, no matter: a rollback looks at who it is before how it looks.
    const auto stat = looker.Stat(path);
    if (!stat) continue;
    latest = std::max(latest, stat->ctime_ns);
    TRY(writer.NoteAfter(expected.object, *stat));
  }
  TRY(looker.failure());  // without its after-state an object could be edited unnoticed
  TRY(NoteAnchored(writer, view));
  TRY(NoteLostNames(writer, latest));
  WaitForNextTick(latest);
  return Ok();
}

// Xattrs and flags of folders that the step itself changed: names that come and go move a folder's times, which then tell nothing of these.
void LogCore::AdoptAttributes(const StepView& view) {
  Looker looker(*place_);
  for (const auto& [path, expected] : view.expected().map()) {
    if (!view.changed().contains(expected.object)) continue;
    const auto found = looker.At(path);
    if (!found || found->id != expected.object || !found->stat.IsDirectory()) continue;
    // Another hand may have been at it already: then nobody can tell what the step left.
    const auto signature = objects_.Find(found->id);
    const bool as_left = signature && signature->ctime_ns == found->stat.ctime_ns;
    const auto attributes = as_left ? AttributesAt(*place_, path) : std::optional<uint64_t>();
    objects_.PutAttributes(found->id, attributes.ok() ? *attributes : std::nullopt);
  }
}

// Losing one of several names moves an object's ctime; its other names may not be known here, but the anchor is.
Status LogCore::NoteAnchored(StepWriter& writer, const StepView& view) {
  if (!writer.shares_anchors()) return Ok();
  Status status;
  std::unordered_map<ObjectId, FileStat> shared;
  const auto note = [&](ObjectId object, AnchorId anchor) -> Status {
    TRY_ASSIGN(int anchors, writer.files().Anchors());
    auto stat = StatAt(anchors, AnchorName(anchor).c_str());
    if (!stat.ok() || stat->nlink < 2) return Ok();
    shared.emplace(object, *stat);
    return writer.NoteAfter(object, *stat);
  };
  view.journal().ForEach<RemoveRecord, RenameRecord>([&](const Record& record, size_t) {
    if (!status.ok()) return;
    if (const auto* remove = std::get_if<RemoveRecord>(&record)) {
      if (remove->kept == Kept::kAnchor && remove->nlink > 1)
        status = note(remove->object, remove->anchor);
    } else if (const auto* rename = std::get_if<RenameRecord>(&record)) {
      if (rename->target_kept == Kept::kAnchor) status = note(rename->target, rename->anchor);
    }
  });
  TRY(status);
  NoteRetained(writer, shared);
  return Ok();
}

// Of several names that are all gone, each was one of several when it went: what nobody but steps has a name of is retained by them.
void LogCore::NoteRetained(StepWriter& writer,
                           const std::unordered_map<ObjectId, FileStat>& shared) {
  const auto shares = [](const StepRow& row) { return row.close.shared_anchors > 0; };
  const bool others = std::any_of(steps_.begin(), steps_.end(), shares) ||
                      std::any_of(redo_.begin(), redo_.end(), shares);
  uint64_t retained = 0;
  for (const auto& [object, stat] : shared) {
    const bool ours = stat.nlink <= writer.AnchorCount(object);
    if (ours || (others && IsKeptAlone(writer, object, stat.nlink))) retained += stat.blocks * 512;
  }
  writer.SetSharedRetained(retained);
}

// The same without an anchor: only a walk finds the names that are left. In a part of the project that cannot be searched, it is taken to be
// as it was when it lost the name.
Status LogCore::NoteLostNames(StepWriter& writer, int64_t& latest_ctime_ns) {
  LinkIndex links(*place_);
  for (const auto& [object, then] : writer.LostNames()) {
    const auto path = links.Find(object);
    if (!path && links.complete()) continue;  // it has lost them all
    Looker looker(*place_);
    const auto now = path ? looker.Stat(*path) : std::nullopt;
    TRY(looker.failure());
    const FileStat& stat = now ? *now : then;
    latest_ctime_ns = std::max(latest_ctime_ns, stat.ctime_ns);
    TRY(writer.NoteAfter(object, stat));
  }
  return Ok();
}

// Where the kernel stamps with its coarse clock, an edit right after the step could leave the same time stamp as the step's own
// last change. Waiting for the next tick (4 to 10 ms, and only if something changed within this one) makes the stamp tell them apart.
void LogCore::WaitForNextTick(int64_t latest_ctime_ns) const {
  if (place_->abilities.fine_timestamps) return;
  for (int i = 0; i < 100; ++i) {
    if (StampingNow() > latest_ctime_ns) return;
    ::usleep(500);
  }
}

// Each record is looked at once: an end of the step that failed and was taken back leaves other signatures behind, and they are ours.
Status LogCore::NoticeEditsOf(StepWriter& writer, const StepView& view) {
  TRY(NoticeEdits(view, writer.noticed_records()));
  writer.NoteNoticed(view.journal().size());
  return Ok();
}

Status LogCore::NoticeEdits(const StepView& view, size_t first_record) {
  std::vector<Edit> edits;
  std::vector<std::pair<ObjectId, uint64_t>> noticed;
  std::optional<EarlierNames> names;  // most steps need none
  view.journal().ForEachOf<MetaRecord>([&](const MetaRecord& r, size_t index) {
    if (index < first_record || r.meta.ctime_ns == Metadata::kSeenBefore) return;
    const auto signature = objects_.Find(r.object);
    const FileStat before{.mode = r.meta.mode,
                          .uid = r.meta.uid,
                          .gid = r.meta.gid,
                          .size = r.meta.size,
                          .mtime_ns = r.meta.mtime_ns,
                          .ctime_ns = r.meta.ctime_ns};
    const auto attributes = S_ISDIR(r.meta.mode) ? objects_.FindAttributes(r.object) : std::nullopt;
    const uint64_t found = attributes ? HashAttributes(r.meta.xattrs, r.meta.flags) : 0;
    if (attributes && *attributes != found) noticed.emplace_back(r.object, found);
    const bool same = signature && signature->Matches(before) && found == attributes.value_or(0);
    if (!signature || same) return;
    if (!names) names.emplace(view);
    edits.push_back({r.object, names->Before(index, std::string(r.path))});
  });
  if (!steps_.empty()) TRY(PlaceBarriers(std::move(edits)));
  // A step that changes only names in the folder leaves no attributes behind, and the edit must not be noticed twice.
  for (const auto& [folder, attributes] : noticed) objects_.PutAttributes(folder, attributes);
  return Ok();
}

// Which objects a step left behind with a signature, by today's identities.
static std::unordered_set<ObjectId> LeftBehind(const StepView& view, const ObjectsTable& objects) {
  std::unordered_set<ObjectId> left;
  view.journal().ForEachOf<AfterRecord>(
      [&](const AfterRecord& after, size_t) { left.insert(objects.Current(after.object)); });
  return left;
}

// An edit belongs behind the step that left the object last, by the name that it had there: steps since then have nothing to
// do with it. Where no step is left that did, none can lose the edit, and only the observer is told.
Status LogCore::PlaceBarriers(std::vector<Edit> edits) {
  std::vector<std::string> paths;
  for (size_t index = steps_.size(); index-- > 0 && !edits.empty();) {
    TRY_ASSIGN(Fd dir, OpenSubdir(frame_->steps(), steps_[index].folder.c_str()));
    auto view = StepView::Open(dir.get());
    if (!view.ok()) break;  // damaged: it cannot be taken back anyway, nor can the ones before it
    const std::unordered_set<ObjectId> left = LeftBehind(*view, objects_);
    const NameTrail trail(*view);
    std::erase_if(edits, [&](Edit& edit) {
      auto older = trail.Back(edit.path);
      const bool here = !older || left.contains(edit.object);
      if (here)
        paths.push_back(std::move(edit.path));
      else
        edit.path = std::move(*older);
      return here;
    });
    if (!paths.empty()) TRY(AddBarrier(steps_[index].header.id, std::move(paths)));
    paths.clear();
  }
  if (edits.empty()) return Ok();
  for (Edit& edit : edits) paths.push_back(std::move(edit.path));
  const Barrier told = NewBarrier(StepId{0}, std::move(paths));
  QueueEvent([this, told] { observer_->OnExternalModification(told); });
  return Ok();
}

Barrier LogCore::NewBarrier(StepId after, std::vector<std::string> paths) const {
  return {.after = after,
          .at = Now(),
          .redo_depth = static_cast<uint32_t>(redo_.size()),
          .paths = std::move(paths)};
}

// What an editor saves again and again is on disk after the first time. Of its times, the newest is only remembered.
static bool SamePlacesAndPaths(const std::vector<Barrier>& a, const std::vector<Barrier>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Barrier& x, const Barrier& y) {
    return x.after == y.after && x.redo_depth == y.redo_depth && x.paths == y.paths;
  });
}

Status LogCore::AddBarrier(StepId after, std::vector<std::string> paths) {
  const Barrier barrier = NewBarrier(after, std::move(paths));
  const bool concerns_nobody = steps_.empty() && redo_.empty() && current() == nullptr;
  if (options_.external == ExternalPolicy::kBarrier && !concerns_nobody) {
    std::vector<Barrier> barriers = barriers_;
    barriers.push_back(barrier);
    barriers = MergeBarriers(std::move(barriers));
    std::swap(barriers, barriers_);
    const bool known = SamePlacesAndPaths(barriers, barriers_);
    if (Status saved = known && !barriers_unsaved_ ? Ok() : SaveBarriers(); !saved.ok()) {
      barriers_ = std::move(barriers);  // whoever tries again finds the edit again
      return saved;
    }
  }
  QueueEvent([this, barrier] { observer_->OnExternalModification(barrier); });
  return Ok();
}

Status LogCore::NoteExternalModification(std::span<const std::string> paths) {
  std::vector<std::string> normal;
  for (const std::string& path : paths) {
    TRY_ASSIGN(std::string relative, NormalizeRelPath(path));
    normal.push_back(std::move(relative));
  }
  if (IsTooLong(normal)) normal.clear();
  LifecycleLock lock(*this);
  if (StepWriter* open = current()) {
    if (options_.external == ExternalPolicy::kBarrier) TRY(NoteTold(*open, normal));
    return AddBarrier(open->header().id, std::move(normal));
  }
  return AddBarrier(steps_.empty() ? StepId{0} : steps_.back().header.id, std::move(normal));
}

// By identity, for the step may give it other names yet, or take them. On disk before the barrier is: whoever takes the step back, be it
// the next open, leaves these objects alone.
Status LogCore::NoteTold(StepWriter& open, const std::vector<std::string>& paths) {
  std::unordered_set<ObjectId> fresh;
  Looker looker(*place_);
  for (const std::string& path : paths) {
    const auto found = looker.At(path);
    if (found && !told_.contains(found->id)) fresh.insert(found->id);
  }
  TRY(looker.failure());
  if (fresh.empty()) return Ok();
  const std::string lines = WriteKeepList(fresh);
  TRY_ASSIGN(const Fd file, OpenStoreFile(open.files().dir(), kTold, O_WRONLY | O_CREAT));
  // Where the last whole line ends, and not at the end of the file: an attempt that failed may have left a part of one.
  const uint64_t end = told_.size() * (lines.size() / fresh.size());
  TRY(PWriteFully(file.get(), AsBytes(lines), static_cast<off_t>(end)));
  if (options_.durability == Durability::kPower &&
      (::fdatasync(file.get()) != 0 || ::fsync(open.files().dir()) != 0))
    return Error::FromErrno(errno, "sync what was told of");
  told_.merge(fresh);
  return Ok();
}

namespace {

// Which paths lie below folders that were told of. By identity: the step may have renamed them since.
class ToldFolders {
 public:
  ToldFolders(Looker& looker, const std::unordered_set<ObjectId>& told)
      : looker_(looker), told_(told) {}

  bool Hold(std::string_view path) {
    std::vector<std::string> unknown;
    bool told = false;
    while (!path.empty()) {
      path = ParentOf(path);
      if (const auto known = known_.find(std::string(path)); known != known_.end()) {
        told = known->second;
        break;
      }
      unknown.emplace_back(path);
    }
    for (auto folder = unknown.rbegin(); folder != unknown.rend(); ++folder) {
      told = told || IsTold(*folder);
      known_.emplace(std::move(*folder), told);
    }
    return told;
  }

 private:
  bool IsTold(const std::string& folder) {
    const auto found = looker_.At(folder);
    return found && told_.contains(found->id);
  }

  Looker& looker_;
  const std::unordered_set<ObjectId>& told_;
  std::unordered_map<std::string, bool> known_;
};

}  // namespace

// What people edited while the step in wal/in_progress was open, as far as anybody told. A folder stands for all that is below it.
Result<std::unordered_set<ObjectId>> LogCore::ToldDuring(const StepView& view) {
  TRY_ASSIGN(const Fd dir, OpenSubdir(frame_->wal(), kInProgress));
  const auto text = ReadFileAt(dir.get(), kTold, 1 << 30);
  if (!text.ok() && text.error().code() != Code::kNotFound) return text.error();
  std::unordered_set<ObjectId> told;
  if (text.ok()) told = ParseKeepList(*text);
  if (told.empty()) return told;
  Looker looker(*place_);
  ToldFolders folders(looker, told);
  std::vector<ObjectId> below;
  for (const auto& [path, expected] : view.expected().map()) {
    if (path.empty() || !folders.Hold(path)) continue;
    if (const auto found = looker.At(path)) below.push_back(found->id);
  }
  TRY(looker.failure());
  told.insert(below.begin(), below.end());
  return told;
}

// Did a watcher lose track while the step was open?
bool LogCore::LostTrackDuring(StepId step) const {
  return std::any_of(barriers_.begin(), barriers_.end(), [&](const Barrier& barrier) {
    return barrier.after == step && barrier.paths.empty();
  });
}

Conflict LogCore::LostTrack(StepId step) {
  return {ConflictKind::kBarrier, "",
          "something outside changed during the step; what exactly is unknown", step};
}

// A step that is in the history no more, and had no place in it: what came after it lies behind the newest one.
Status LogCore::MoveBarriersFrom(StepId gone) {
  return steps_.empty() ? DropBarriers(gone) : MoveBarriers(gone, steps_.back().header.id);
}

Status LogCore::MoveBarriers(StepId from, StepId to) {
  bool moved = false;
  for (Barrier& barrier : barriers_) {
    if (barrier.after != from) continue;
    barrier.after = to;
    moved = true;
  }
  if (!moved) return Ok();
  barriers_ = MergeBarriers(std::move(barriers_));
  return SaveBarriers();
}

void LogCore::MoveBarriersFrom(const char* folder) {
  const auto journal = FindJournal(frame_->wal(), folder);
  if (journal.ok() && *journal)
    BestEffort("save barriers", MoveBarriersFrom((*journal)->header().id));
}

static Signature SignatureOf(const AfterRecord& after) {
  return {after.size, after.mtime_ns, after.ctime_ns, after.mode, after.uid, after.gid};
}

// Not only names in it.
static bool ChangesAFolder(const JournalView& journal) {
  bool found = false;
  journal.ForEach<MetaRecord, MarkRecord>([&](const Record& record, size_t) {
    const auto* meta = std::get_if<MetaRecord>(&record);
    // A mark does not tell what it is about.
    found = found || meta == nullptr ||
            (S_ISDIR(meta->meta.mode) && meta->reason == TouchReason::kDirect);
  });
  return found;
}

// The table may only know of a step's after-states once the step is promoted: otherwise, after a crash in between, they would look like
// somebody's edits. Killed right after the promotion, the next open finds the step unmarked and does this then.
Status LogCore::AdoptAfterStates(int step_dir) {
  TRY_ASSIGN(JournalView journal, JournalView::Open(step_dir, "journal"));
  journal.ForEachOf<AfterRecord>(
      [this](const AfterRecord& after, size_t) { objects_.Put(after.object, SignatureOf(after)); });
  objects_.MarkAdopted(journal.header().uid);
  if (ChangesAFolder(journal)) AdoptAttributes(StepView(std::move(journal)));
  return objects_.Flush();
}

Status LogCore::AdoptForgotten() {
  const auto forgotten = [this](const StepRow& row) {
    return !row.damaged && !objects_.IsAdopted(row.header.uid);
  };
  const bool lost =  // killed right after its promotion, only the newest one is unmarked
      objects_.damaged() ||
      (steps_.size() > 1 && std::any_of(steps_.begin(), steps_.end() - 1, forgotten));
  for (const StepRow& row : steps_) {
    if (!forgotten(row)) continue;
    TRY_ASSIGN(Fd dir, OpenSubdir(frame_->steps(), row.folder.c_str()));
    TRY(AdoptAfterStates(dir.get()));
  }
  return lost ? RefillObjects() : Ok();
}

// Without a signature an object would look unedited, whatever was done to it. The journals say how steps and rewinds left it; where they
// know less than the table did, it looks edited, which costs a refusal and nothing else.
Status LogCore::RefillObjects() {
  for (const Way way : {Way::kForth, Way::kBack}) {  // the newest first
    for (auto row = RowsOf(way).rbegin(); row != RowsOf(way).rend(); ++row) {
      TRY_ASSIGN(const auto journal, FindJournal(FolderOf(way), row->folder.c_str()));
      if (!journal) continue;
      std::unordered_map<ObjectId, Signature> left;
      journal->ForEachOf<AfterRecord>(
          [&](const AfterRecord& after, size_t) { left[after.object] = SignatureOf(after); });
      for (const auto& [object, signature] : left) {
        if (!objects_.Find(object)) objects_.Put(object, signature);
      }
    }
  }
  TRY(objects_.Flush());
  CompactObjects();  // without what was damaged
  recovery_.rewind.warnings.push_back(
      "the table of objects in the undo store was damaged, and has been made anew from the "
      "history");
  return Ok();
}

Status LogCore::LoadBarriers() {
  TRY_ASSIGN(auto barriers, ReadBarriers(frame_->store()));
  if (barriers) {
    barriers_ = std::move(*barriers);
    return Ok();
  }
  barriers_ = BarriersInDoubt(steps_, redo_.size());
  recovery_.rewind.warnings.push_back(
      "edits from outside that the undo store knew of cannot be read any more: taking back older "
      "steps needs force");
  BestEffort("save barriers", SaveBarriers());
  return Ok();
}

}  // namespace sandglass::undo
