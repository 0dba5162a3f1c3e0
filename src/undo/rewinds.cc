// LogCore's rewinds: rollback, redo and abort (recovery.cc has the fourth). All of them take a step back with Rewind() while a StepWriter in
// wal/rewind records what that does; the rename of wal/rewind to its place is the moment at which it has happened. A rewind that is
// killed before that moment is itself taken back by the next open. An abort keeps no reversal: its moment is the rename of the step to
// wal/aborted.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/io.h"
#include "base/json.h"
#include "base/rel_path.h"
#include "undo/log_core.h"
#include "undo/looker.h"
#include "undo/verify.h"

namespace sandglass::undo {
namespace {

Error ConflictError(Code code, std::string_view what, const std::vector<Conflict>& conflicts) {
  constexpr size_t kShown = 10;
  std::string text(what);
  for (size_t i = 0; i < conflicts.size() && i < kShown; ++i) {
    text += fmt::format("\n  {} ({}): {}", conflicts[i].path.empty() ? "(step)" : conflicts[i].path,
                        ConflictName(conflicts[i].kind), conflicts[i].detail);
  }
  if (conflicts.size() > kShown) text += fmt::format("\n  and {} more", conflicts.size() - kShown);
  return Error(code, std::move(text));
}

Code CodeFor(const std::vector<Conflict>& conflicts) {
  const auto has = [&](ConflictKind kind) {
    return std::any_of(conflicts.begin(), conflicts.end(),
                       [&](const Conflict& c) { return c.kind == kind; });
  };
  if (has(ConflictKind::kCorrupt)) return Code::kCorrupt;
  if (has(ConflictKind::kBusy)) return Code::kBusy;
  return Code::kConflict;
}

// Does the error speak of the step's own bytes? Anything else may be better next time.
bool IsDamage(const Error& error) {
  return error.code() == Code::kCorrupt || error.code() == Code::kVersion;
}

template <class T>
void Append(std::vector<T> from, std::vector<T>& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

void Append(RewindReport from, RewindReport& to) {
  Append(std::move(from.steps), to.steps);
  Append(std::move(from.changes), to.changes);
  Append(std::move(from.conflicts), to.conflicts);
  Append(std::move(from.kept), to.kept);
  Append(std::move(from.warnings), to.warnings);
}

// What taking a change back does to the project.
Change Inverse(Change change) {
  std::swap(change.old_size, change.new_size);
  switch (change.kind) {
    case ChangeKind::kCreated:
      change.kind = ChangeKind::kDeleted;
      break;
    case ChangeKind::kDeleted:
      change.kind = ChangeKind::kCreated;
      break;
    case ChangeKind::kRenamed:
      std::swap(change.path, change.old_path);
      break;
    case ChangeKind::kModified:
      break;
  }
  return change;
}

// What taking the step back does to the project if nobody else has touched it.
std::vector<Change> InverseChanges(const StepView& view) {
  std::vector<Change> changes = view.Changes();
  for (Change& change : changes) change = Inverse(std::move(change));
  return changes;
}

// What a rewind did, by what it recorded.
Result<std::vector<Change>> ChangesOf(StepWriter& recorder) {
  TRY_ASSIGN(StepView own, StepView::Open(recorder.files().dir()));
  return own.Changes();
}

// Does the step give the name another meaning?
bool TouchesName(const StepView& view, const std::string& path) {
  const PathMap<Expected>& expected = view.expected();
  if (expected.contains(path)) return true;
  for (std::string_view up = ParentOf(path); !up.empty(); up = ParentOf(up)) {
    // Above it, only what was created, moved or removed as a whole concerns it.
    if (const Expected* found = expected.Find(up);
        found != nullptr && found->object != view.InitialAt(up))
      return true;
  }
  auto below = expected.map().lower_bound(path + "/");
  return below != expected.map().end() && below->first.starts_with(path + "/");
}

}  // namespace

// --- One rewind.

Result<LogCore::Source> LogCore::Source::Open(int parent_fd, const std::string& folder) {
  TRY_ASSIGN(Fd dir, OpenSubdir(parent_fd, folder.c_str()));
  TRY_ASSIGN(StepView view, StepView::Open(dir.get()));
  return Source{.files = std::make_unique<StepFiles>(std::move(dir)), .view = std::move(view)};
}

Status LogCore::RunRewind(Source& source, Force force, const std::unordered_set<ObjectId>* keep,
                          RewindReport& report, StepRow& reversal) {
  TRY(CheckSpace(source.view, source.spare_redo));
  MutexLock pin(pack_mutex_);
  JournalHeader header = source.view.header();
  header.reverses_uid = header.uid;
  header.uid = RandomId();
  TRY_ASSIGN(auto recorder, StepWriter::Create(*place_, frame_->wal(), kRewind, header,
                                               {.durability = options_.durability}));
  const RewindInput input{.place = *place_,
                          .objects = objects_,
                          .view = source.view,
                          .files = *source.files,
                          .recorder = recorder.get(),
                          .force = force,
                          .symlinks = options_.symlinks,
                          .signatures = source.signatures,
                          .folder_renames = &folder_renames_,
                          .keep = keep};
  const size_t conflicts_before = report.conflicts.size();
  Status done = Rewind(input, report);
  if (done.ok()) {
    const bool as_planned = report.conflicts.size() == conflicts_before && keep == nullptr;
    auto changes = as_planned ? Result(InverseChanges(source.view)) : ChangesOf(*recorder);
    done = changes.ok() ? recorder->Close(Now().ns, CountsOf(*changes)) : changes.error();
    if (changes.ok())
      for (Change& change : *changes) report.changes.push_back(std::move(change));
  }
  if (done.ok()) done = MakePowerSafe(Reach::kEverything);
  if (done.ok()) {
    auto summary = ReadJournalSummary(recorder->files().dir(), "journal");
    if (summary.ok()) {
      reversal.header = std::move(summary->header);
      reversal.close = summary->close;
      WaitForNextTick(StampingNow());
      return Ok();
    }
    done = summary.error();
  }
  recorder.reset();
  Status back = TakeBackReversal();
  if (!back.ok())
    return done.error().WithContext(
        fmt::format("and could not be taken back ({})", back.error().message()));
  return done;
}

// Undoes wal/rewind, whether it failed just now or was killed earlier.
Status LogCore::TakeBackReversal() {
  TRY_ASSIGN(Fd dir, OpenSubdir(frame_->wal(), kRewind));
  auto view = StepView::Open(dir.get());
  if (!view.ok())
    return frame_->Discard(frame_->wal(), kRewind);  // killed before its journal began
  auto origin = FindByUid(view->header().reverses_uid);
  if (!origin.ok()) {
    // What it took back is gone already: it was complete and only its own folder was left.
    if (view->journal().Close().ok()) return frame_->Discard(frame_->wal(), kRewind);
    return origin.error();
  }
  StepFiles files(std::move(dir));
  RewindReport report;
  TRY(Rewind({.place = *place_,
              .objects = objects_,
              .view = *view,
              .files = files,
              .recorder = nullptr,
              .origin = origin->get(),
              .force = Force::kYes},
             report));
  for (const Conflict& conflict : report.conflicts) NoteLeftBehind(conflict);
  TRY(MakePowerSafe(Reach::kEverything));
  return frame_->Discard(frame_->wal(), kRewind);
}

Result<std::unique_ptr<StepFiles>> LogCore::FindByUid(uint64_t uid) {
  const auto matches = [&](int dir) {
    auto view = JournalView::Open(dir, "journal");
    return view.ok() && view->header().uid == uid;
  };
  if (auto dir = OpenSubdir(frame_->wal(), kInProgress); dir.ok() && matches(dir->get())) {
    return std::make_unique<StepFiles>(std::move(*dir));
  }
  for (int folder : {frame_->steps(), frame_->redo()}) {
    for (const std::string& name : ListNames(folder)) {
      auto dir = OpenSubdir(folder, name.c_str());
      if (dir.ok() && matches(dir->get())) return std::make_unique<StepFiles>(std::move(*dir));
    }
  }
  return Error(Code::kNotFound, "the step that an interrupted rewind was taking back is missing");
}

// What a rewind writes back must fit, and so must what it keeps for redo. Redo is the first thing to give up.
Status LogCore::CheckSpace(const StepView& view, SpareRedo spare) {
  uint64_t need = 1 << 20;
  view.journal().ForEachOf<ContentRecord>(
      [&](const ContentRecord& content, size_t) { need += content.length; });
  const auto fits = [&] {
    struct statvfs info{};
    return ::fstatvfs(frame_->store(), &info) != 0 || info.f_bavail * info.f_frsize > need;
  };
  if (fits()) return Ok();
  if (spare == SpareRedo::kNo) TRY(ClearRedo());
  EmptyTrash();
  if (fits()) return Ok();
  return Error(
      Code::kNoSpace,
      fmt::format(
          "the disk has too little room to take this back safely; free {} bytes and try again",
          need));
}

// --- Rollback.

// A rollback of a step is crossed by what came right after it, a redo by what came since the rollback.
bool LogCore::IsCrossed(const Barrier& barrier, const Crossing& crossing) {
  const StepRow& row = crossing.row;
  return crossing.way == Way::kForth ? barrier.at.ns >= row.close.closed_ns
                                     : barrier.after == row.header.id;
}

// Also under another name, where only the object tells.
bool LogCore::Touches(const Crossing& crossing, const std::string& path) const {
  if (TouchesName(crossing.view, path)) return true;
  NameTrail::End end{.path = path, .object = {}};
  if (crossing.later != nullptr) end = crossing.later->Follow(path);
  if (end.kind != NameTrail::End::Kind::kHere) return crossing.view.IsChanged(end.object);
  const auto found = Looker(*place_).At(end.path);
  return found && !found->stat.IsDirectory() && crossing.view.IsChanged(found->id);
}

std::vector<Conflict> LogCore::Conflicts(const Crossing& crossing, StepFiles& files,
                                         const std::vector<Barrier>& barriers) {
  const StepView& view = crossing.view;
  std::vector<Conflict> conflicts =
      FindEdits(*place_, objects_, view, files, shadows_, crossing.later);
  for (const Barrier& barrier : barriers) {
    if (!IsCrossed(barrier, crossing)) continue;
    if (barrier.paths.empty())
      conflicts.push_back(
          {ConflictKind::kBarrier, "", "something outside changed; what exactly is unknown"});
    for (const std::string& path : barrier.paths) {
      if (Touches(crossing, path))
        conflicts.push_back(
            {ConflictKind::kBarrier, path, "was changed from outside after this step"});
    }
  }
  MutexLock pin(pack_mutex_);
  for (Conflict& damage : FindDamage(view, files, StepEnd::kClosed))
    conflicts.push_back(std::move(damage));
  return conflicts;
}

// Paths that the step does not touch are still edited when it has been taken back: for these the barrier stands behind the
// step before. What it does touch was crossed by force.
std::vector<Barrier> LogCore::BarriersBeyond(const Crossing& crossing,
                                             std::vector<Barrier> barriers,
                                             std::optional<StepId> older) const {
  std::vector<Barrier> beyond;
  for (Barrier& barrier : barriers) {
    if (IsCrossed(barrier, crossing)) {
      std::erase_if(barrier.paths,
                    [&](const std::string& path) { return Touches(crossing, path); });
      if (barrier.paths.empty() || (crossing.way == Way::kBack && !older)) continue;
      if (crossing.way == Way::kBack) barrier.after = *older;
    }
    beyond.push_back(std::move(barrier));
  }
  return beyond;
}

std::optional<StepId> LogCore::OlderThan(size_t index) const {
  if (index == 0) return std::nullopt;
  return steps_[index - 1].header.id;
}

Status LogCore::SetBarriers(std::vector<Barrier> barriers) {
  if (barriers_.empty() && barriers.empty()) return Ok();
  barriers_ = std::move(barriers);
  return SaveBarriers();
}

Status LogCore::SaveBarriers() {
  barriers_unsaved_ = true;
  TRY(undo::SaveBarriers(frame_->store(), barriers_, file_sync()));
  barriers_unsaved_ = false;
  return Ok();
}

Result<size_t> LogCore::RowsToPop(uint32_t count) const {
  if (count == 0) return Error(Code::kInvalid, "how many steps to take back? At least 1");
  size_t rows = 0;
  for (auto row = steps_.rbegin(); row != steps_.rend() && count > 0; ++row) {
    ++rows;
    const bool unprotected = row->close.protection == Protection::kUnprotected;
    if (row->damaged || unprotected || row->close.counts.total() > 0) --count;
  }
  if (count > 0) {
    return Error(Code::kNotFound, rows == 0 ? "there is nothing to undo"
                                            : "there are fewer steps to undo than that");
  }
  return rows;
}

// A rewind that failed and could not be taken back at once (a full disk, say) is taken back before anything else happens.
Status LogCore::EnsureSettled() {
  TRY(FinishAbort());
  if (NameExists(frame_->wal(), kRewind)) TRY(TakeBackReversal());
  TRY(DropLeftovers());
  if (barriers_unsaved_) BestEffort("save barriers", SaveBarriers());
  return Ok();
}

Status LogCore::SettleForRewind() {
  TRY(CloseAmbientLocked());
  if (current() != nullptr)
    return Error(Code::kBusy, "a step is open; wait until it ends, or abort it");
  TRY(EnsureSettled());
  return SettleBetweenSteps();
}

Result<RewindReport> LogCore::Rollback(uint32_t count, Force force) {
  LifecycleLock lock(*this);
  TRY(SettleForRewind());
  return RollbackLocked(count, force);
}

Result<RewindReport> LogCore::RollbackLocked(uint32_t count, Force force) {
  TRY_ASSIGN(size_t rows, RowsToPop(count));
  StepGate::Pass pass = gate_.Enter(StepGate::Way::kAlone);
  return Travel(steps_.size() - rows, force);
}

// Takes steps back or redoes them until `target` are left: all of it or nothing. What fails after the commit point of a step is a warning
// and no reason to turn back. Killed in between, the next open goes on.
Result<RewindReport> LogCore::Travel(size_t target, Force force) {
  size_t start = steps_.size();
  const bool several = (target < start ? start - target : target - start) > 1;
  if (several) {
    TRY(ReplaceFileAt(frame_->wal(), kTarget,
                      fmt::format("{} {}\n", target, force == Force::kYes ? "force" : "gentle"),
                      file_sync()));
  }
  const std::vector<Barrier> barriers = barriers_;
  RewindReport report;
  Status status;
  while (status.ok() && steps_.size() != target) {
    if (steps_.size() > target && force == Force::kYes && !IsReadable(steps_.back())) {
      status = SetNewestAside(report);
      if (status.ok()) --start;  // there is no way back to it
      continue;
    }
    status = steps_.size() > target ? RollbackNewest(force, report) : RedoNewest(force, report);
  }
  if (!status.ok()) {
    RewindReport ignored;
    Status back = EnsureSettled();
    while (back.ok() && steps_.size() != start) {
      back = steps_.size() > start ? RollbackNewest(Force::kYes, ignored)
                                   : RedoNewest(Force::kYes, ignored);
    }
    if (!back.ok()) {
      status = status.error().WithContext("only a part of the steps could be taken back or redone");
    } else if (several) {
      BestEffort("put barriers back", SetBarriers(barriers));
    }
  }
  if (several) ::unlinkat(frame_->wal(), kTarget, 0);
  NoteFailure("watch live writers on", RenewShadows(), report);
  if (!status.ok()) return status.error();
  TrimRedo(report);
  return report;
}

bool LogCore::IsReadable(const StepRow& row) {
  auto source = Source::Open(frame_->steps(), row.folder);
  return source.ok() || !IsDamage(source.error());
}

// It cannot be taken back, and would keep all steps before it from being: force gives it up. What it changed stays, and what older steps
// find changed by it is crossed by force like anybody's edit.
Status LogCore::SetNewestAside(RewindReport& report) {
  const StepRow row = steps_.back();
  TRY(frame_->SetAside(frame_->steps(), row.folder.c_str()));
  steps_.pop_back();
  report.conflicts.push_back(
      {ConflictKind::kCorrupt, "",
       fmt::format("step {} cannot be read and was set aside", row.header.id.value)});
  std::vector<Barrier> barriers = barriers_;
  const std::optional<StepId> older = OlderThan(steps_.size());
  for (Barrier& barrier : barriers) {
    if (barrier.after == row.header.id) barrier.after = older.value_or(StepId{0});
  }
  NoteFailure("save barriers", SetBarriers(std::move(barriers)), report);
  NoteFailure("sync the folders of the store", MakePowerSafe(Reach::kFolders), report);
  ForgetFrozen();
  return Ok();
}

Status LogCore::ResumeTravel() {
  auto text = ReadFileAt(frame_->wal(), kTarget, 64);
  if (!text.ok()) return Ok();
  recovery_.interrupted_rewind = true;
  const size_t target = std::strtoull(text->c_str(), nullptr, 10);
  const bool reachable = target <= steps_.size() || target - steps_.size() <= redo_.size();
  const Force force = text->find("force") != std::string::npos ? Force::kYes : Force::kNo;
  if (reachable) {
    auto report = Travel(target, force);
    if (report.ok())
      Append(std::move(*report), recovery_.rewind);
    else
      recovery_.rewind.warnings.push_back("an interrupted undo was not completed: " +
                                          report.error().message());
  }
  ::unlinkat(frame_->wal(), kTarget, 0);
  return Ok();
}

Status LogCore::RollbackNewest(Force force, RewindReport& report) {
  const StepRow row = steps_.back();
  auto source = Source::Open(frame_->steps(), row.folder);
  if (!source.ok()) return source.error().WithContext(fmt::format("step {}", row.header.id.value));
  const StepView& view = source->view;
  if (view.unprotected() && force == Force::kNo) {
    return Error(
        Code::kUnprotected,
        fmt::format("step {} was not recorded in full ({}), so it cannot be taken back exactly",
                    row.header.id.value, view.unprotected_why()));
  }
  const Crossing crossing{Way::kBack, row, view};
  auto conflicts = Conflicts(crossing, *source->files, barriers_);
  if (!conflicts.empty() && force == Force::kNo) {
    return ConflictError(
        CodeFor(conflicts),
        fmt::format("step {} cannot be taken back without force:", row.header.id.value), conflicts);
  }
  for (Conflict& conflict : conflicts) report.conflicts.push_back(std::move(conflict));
  auto barriers = BarriersBeyond(crossing, barriers_, OlderThan(steps_.size() - 1));
  StepRow reversal;
  TRY(RunRewind(*source, force, nullptr, report, reversal));
  reversal.folder = fmt::format("{}", next_redo_);
  if (::renameat(frame_->wal(), kRewind, frame_->redo(), reversal.folder.c_str()) != 0) {
    Error error = Error::FromErrno(errno, "finish the rollback");
    TRY(TakeBackReversal());
    return error;
  }
  ++next_redo_;
  redo_.push_back(std::move(reversal));
  steps_.pop_back();
  report.steps.push_back(row.header.id);
  NoteFailure("save barriers", SetBarriers(std::move(barriers)), report);
  ForgetFrozen();
  NoteFailure("drop what was taken back", DropRow(frame_->steps(), row), report);
  return Ok();
}

Status LogCore::DropBarriers(StepId after) {
  if (std::erase_if(barriers_, [&](const Barrier& b) { return b.after == after; }) == 0)
    return Ok();
  return SaveBarriers();
}

Status LogCore::MakePowerSafe(Reach reach) {
  if (options_.durability == Durability::kProcess) return Ok();
  if (reach == Reach::kEverything) {
    for (int fd : {place_->root.get(), frame_->store()}) {
      if (::syncfs(fd) != 0) return Error::FromErrno(errno, "sync the file system");
    }
    return Ok();
  }
  for (int fd : {frame_->redo(), frame_->steps(), frame_->wal()}) {
    if (::fsync(fd) != 0) return Error::FromErrno(errno, "sync a folder of the store");
  }
  return Ok();
}

void LogCore::NoteFailure(std::string_view what, const Status& status, RewindReport& report) {
  BestEffort(what, status);
  if (!status.ok())
    report.warnings.push_back(fmt::format("{}: {}", what, status.error().message()));
}

void LogCore::BestEffort(std::string_view what, const Status& status) {
  if (!status.ok())
    options_.log.Warn("tried again later", {{"what", what}, {"error", status.error().message()}});
}

Result<RewindReport> LogCore::PlanRollback(uint32_t count) {
  LifecycleLock lock(*this);
  TRY(SettleForRewind());
  TRY_ASSIGN(size_t rows, RowsToPop(count));
  RewindReport report;
  LaterSteps later;
  std::vector<Barrier> barriers = barriers_;
  for (size_t i = 0; i < rows; ++i) {
    const size_t index = steps_.size() - 1 - i;
    const StepRow& row = steps_[index];
    auto source = Source::Open(frame_->steps(), row.folder);
    if (!source.ok() && IsDamage(source.error())) {
      report.conflicts.push_back(
          {ConflictKind::kCorrupt, "",
           fmt::format("step {} cannot be read; force sets it aside", row.header.id.value)});
      continue;
    }
    if (!source.ok()) return source.error();
    const StepView& view = source->view;
    report.steps.push_back(row.header.id);
    if (view.unprotected())
      report.conflicts.push_back(
          {ConflictKind::kCorrupt, "", "not recorded in full: " + view.unprotected_why()});
    const Crossing crossing{Way::kBack, row, view, &later};
    for (Conflict& conflict : Conflicts(crossing, *source->files, barriers))
      report.conflicts.push_back(std::move(conflict));
    for (Change& change : InverseChanges(view)) report.changes.push_back(std::move(change));
    barriers = BarriersBeyond(crossing, std::move(barriers), OlderThan(index));
    later.Add(view);
  }
  return report;
}

// --- Redo: taking back what a rollback recorded.

Result<RewindReport> LogCore::Redo(uint32_t count, Force force) {
  LifecycleLock lock(*this);
  TRY(SettleForRewind());
  if (count == 0) return Error(Code::kInvalid, "how many steps to redo? At least 1");
  if (redo_.size() < count)
    return Error(Code::kNotFound, redo_.empty() ? "there is nothing to redo"
                                                : "there are fewer steps to redo than that");
  StepGate::Pass pass = gate_.Enter(StepGate::Way::kAlone);
  return Travel(steps_.size() + count, force);
}

// There is no way around one that cannot be read: what lies below it would be redone upon the wrong ground.
Result<LogCore::Source> LogCore::OpenRedo(const StepRow& row) {
  auto source = Source::Open(frame_->redo(), row.folder);
  if (source.ok() || (!IsDamage(source.error()) && source.error().code() != Code::kNotFound))
    return source;
  return source.error().WithContext(
      fmt::format("nothing more can be redone, because redo/{} in the undo store is damaged; "
                  "the next step drops it, and rolling back still works",
                  row.folder));
}

Status LogCore::RedoNewest(Force force, RewindReport& report) {
  const StepRow row = redo_.back();
  TRY_ASSIGN(Source source, OpenRedo(row));
  source.spare_redo = SpareRedo::kYes;
  const Crossing crossing{Way::kForth, row, source.view};
  auto conflicts = Conflicts(crossing, *source.files, barriers_);
  if (!conflicts.empty() && force == Force::kNo) {
    return ConflictError(
        CodeFor(conflicts),
        fmt::format("step {} cannot be redone without force:", row.header.id.value), conflicts);
  }
  for (Conflict& conflict : conflicts) report.conflicts.push_back(std::move(conflict));
  auto barriers = BarriersBeyond(crossing, barriers_, std::nullopt);
  StepRow again;
  TRY(RunRewind(source, force, nullptr, report, again));
  again.folder = fmt::format("{}", row.header.id.value);
  if (::renameat(frame_->wal(), kRewind, frame_->steps(), again.folder.c_str()) != 0) {
    Error error = Error::FromErrno(errno, "finish the redo");
    TRY(TakeBackReversal());
    return error;
  }
  steps_.push_back(std::move(again));
  redo_.pop_back();
  objects_.MarkAdopted(steps_.back().header.uid);  // the rewind itself noted what it left
  report.steps.push_back(row.header.id);
  NoteFailure("save signatures", objects_.Flush(), report);
  NoteFailure("save barriers", SetBarriers(std::move(barriers)), report);
  ForgetFrozen();
  NoteFailure("drop what was redone", DropRow(frame_->redo(), row), report);
  return Ok();
}

Result<RewindReport> LogCore::PlanRedo(uint32_t count) {
  LifecycleLock lock(*this);
  TRY(SettleForRewind());
  if (count == 0) return Error(Code::kInvalid, "how many steps to redo? At least 1");
  if (redo_.size() < count)
    return Error(Code::kNotFound, redo_.empty() ? "there is nothing to redo"
                                                : "there are fewer steps to redo than that");
  RewindReport report;
  LaterSteps later;
  std::vector<Barrier> barriers = barriers_;
  for (uint32_t i = 0; i < count; ++i) {
    const StepRow& row = redo_[redo_.size() - 1 - i];
    TRY_ASSIGN(Source source, OpenRedo(row));
    const StepView& view = source.view;
    report.steps.push_back(row.header.id);
    const Crossing crossing{Way::kForth, row, view, &later};
    for (Conflict& conflict : Conflicts(crossing, *source.files, barriers))
      report.conflicts.push_back(std::move(conflict));
    for (Change& change : InverseChanges(view)) report.changes.push_back(std::move(change));
    barriers = BarriersBeyond(crossing, std::move(barriers), std::nullopt);
    later.Add(view);
  }
  return report;
}

// --- Abort.

Result<RewindReport> LogCore::AbortStep() {
  LifecycleLock lock(*this);
  if (current() == nullptr) return Error(Code::kNotFound, "no step is open");
  return AbortLocked();
}

Result<RewindReport> LogCore::AbortLocked() {
  StepGate::Pass pass = gate_.Enter(StepGate::Way::kAlone);
  TRY(EnsureSettled());
  RewindReport report;
  if (!current()->closed()) TRY(SettleShadows(*current()));
  TRY_ASSIGN(Source source, Source::Open(frame_->wal(), kInProgress));
  source.signatures = Signatures::kOutdated;
  TRY(NoticeEdits(source.view));
  if (source.view.unprotected())
    report.warnings.push_back("the step was not recorded in full: " +
                              source.view.unprotected_why());
  // From here on changes are ours: a recovery of this very abort must not take them for a person's.
  TRY(ReplaceFileAt(frame_->wal(), kKeepFile, "", file_sync()));
  StepRow reversal;
  TRY(RunRewind(source, Force::kYes, nullptr, report, reversal));
  if (::renameat(frame_->wal(), kInProgress, frame_->wal(), kAborted) != 0) {
    Error error = Error::FromErrno(errno, "finish the abort");
    TRY(TakeBackReversal());
    return error;
  }
  report.steps.push_back(current()->header().id);
  TakeCurrent();
  ForgetFrozen();
  NoteFailure("drop the aborted step", FinishAbort(), report);
  return report;
}

// The step in wal/aborted has been taken back: only its folder and that of its reversal are left to drop. The reversal goes first, or it
// would be taken for one that was killed.
Status LogCore::FinishAbort() {
  if (!NameExists(frame_->wal(), kAborted)) return Ok();
  ::unlinkat(frame_->wal(), kKeepFile, 0);
  TRY(MakePowerSafe(Reach::kFolders));
  TRY(DropFolder(frame_->wal(), kRewind, nullptr));
  return DropFolder(frame_->wal(), kAborted, nullptr);
}

}  // namespace sandglass::undo
