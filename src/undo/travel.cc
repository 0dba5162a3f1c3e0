// LogCore's travels: over how many steps a rollback or a redo goes, what is in its way, and what becomes of edits from outside that it
// crosses. What one step takes is in rewinds.cc.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/io.h"
#include "base/rel_path.h"
#include "undo/log_core.h"
#include "undo/looker.h"
#include "undo/verify.h"

namespace sandglass::undo {
namespace {

void AppendReport(RewindReport from, RewindReport& to) {
  Append(std::move(from.steps), to.steps);
  Append(std::move(from.changes), to.changes);
  Append(std::move(from.conflicts), to.conflicts);
  Append(std::move(from.kept), to.kept);
  Append(std::move(from.warnings), to.warnings);
}

size_t Distance(size_t a, size_t b) { return a < b ? b - a : a - b; }

// Is there anything that a person may have done?
bool TellsEdits(const std::vector<Conflict>& conflicts) {
  return std::any_of(conflicts.begin(), conflicts.end(), [](const Conflict& conflict) {
    return conflict.kind != ConflictKind::kBusy && conflict.kind != ConflictKind::kCorrupt;
  });
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

// A rollback of a step is crossed by what came right after it, a redo by what came since the rollback.
bool LogCore::IsCrossed(const Barrier& barrier, const Crossing& crossing) {
  return crossing.way == Way::kForth ? barrier.redo_depth > crossing.index
                                     : barrier.after == crossing.row.header.id;
}

// Also under another name, where only the object tells.
bool LogCore::Touches(const Crossing& crossing, const std::string& path) const {
  if (TouchesName(crossing.view, path)) return true;
  NameTrail::End end{.path = path, .object = {}};
  if (crossing.later != nullptr) end = crossing.later->Follow(path);
  if (end.kind == NameTrail::End::Kind::kHere) {
    Looker looker(*place_);
    const auto found = looker.At(end.path);
    if (!looker.failure().ok()) return true;  // in doubt it does
    if (!found || found->stat.IsDirectory()) return false;
    end.object = found->id;
  }
  return ChangedNow(crossing.view, objects_).contains(objects_.Current(end.object));
}

Result<std::vector<Conflict>> LogCore::Conflicts(const Crossing& crossing, StepFiles& files,
                                                 const std::vector<Barrier>& barriers,
                                                 AnchorCheck check) {
  const StepView& view = crossing.view;
  TRY_ASSIGN(std::vector<Conflict> conflicts, FindEdits(*place_, objects_, view, files, shadows_,
                                                        options_.symlinks, crossing.later));
  for (const Barrier& barrier : barriers) {
    if (!IsCrossed(barrier, crossing)) continue;
    if (barrier.paths.empty())
      conflicts.push_back({ConflictKind::kBarrier, "",
                           "something outside changed since; what exactly is unknown",
                           crossing.row.header.id});
    for (const std::string& path : barrier.paths) {
      if (Touches(crossing, path))
        conflicts.push_back(
            {ConflictKind::kBarrier, path, "was changed from outside after this step"});
    }
  }
  MutexLock pin(pack_mutex_);
  TRY_ASSIGN(auto damage, FindDamage(view, files, StepEnd::kClosed, check, crossing.later));
  Append(std::move(damage), conflicts);
  return conflicts;
}

// Paths that the step does not touch are still edited when it has been taken back: for these the barrier stands behind the
// step before. What it does touch was crossed by force. Of a barrier that knows no paths, nobody can tell.
std::vector<Barrier> LogCore::BarriersBeyond(const Crossing& crossing,
                                             std::vector<Barrier> barriers,
                                             std::optional<StepId> older) const {
  std::vector<Barrier> beyond;
  const size_t redoable = crossing.way == Way::kForth ? crossing.index : redo_.size();
  for (Barrier& barrier : barriers) {
    const bool crossed = IsCrossed(barrier, crossing), whole_tree = barrier.paths.empty();
    // What is taken back from now on came after it.
    barrier.redo_depth = static_cast<uint32_t>(std::min<size_t>(barrier.redo_depth, redoable));
    if (crossed) {
      std::erase_if(barrier.paths,
                    [&](const std::string& path) { return Touches(crossing, path); });
      if (barrier.paths.empty() && !whole_tree) continue;
      if (crossing.way == Way::kBack && !older) continue;
      if (crossing.way == Way::kBack) barrier.after = *older;
    }
    beyond.push_back(std::move(barrier));
  }
  return beyond;
}

std::optional<StepId> LogCore::OlderThan(Way way, size_t index) const {
  if (way == Way::kForth || index == 0) return std::nullopt;
  return steps_[index - 1].header.id;
}

Status LogCore::SetBarriers(std::vector<Barrier> barriers) {
  if (barriers_.empty() && barriers.empty()) return Ok();
  barriers_ = MergeBarriers(std::move(barriers));
  return SaveBarriers();
}

Status LogCore::SaveBarriers() {
  barriers_unsaved_ = true;
  TRY(undo::SaveBarriers(frame_->store(), barriers_, file_sync()));
  barriers_unsaved_ = false;
  return Ok();
}

// How many rows are `count` steps that changed something. Those without changes go along: when taking back, those above; when redoing,
// also those that follow, so that a redo leads back to where an undo came from.
Result<size_t> LogCore::RowsToCross(Way way, uint32_t count) const {
  const bool back = way == Way::kBack;
  if (count == 0) {
    return Error(Code::kInvalid, back ? "how many steps to take back? At least 1"
                                      : "how many steps to redo? At least 1");
  }
  const std::vector<StepRow>& all = back ? steps_ : redo_;
  size_t rows = 0;
  uint32_t crossed = 0;
  for (auto row = all.rbegin(); row != all.rend(); ++row) {
    if (crossed == count && (back || row->IsChange())) break;
    ++rows;
    if (row->IsChange()) ++crossed;
  }
  if (crossed == count) return rows;
  if (crossed == 0) {
    return Error(Code::kNotFound, back ? "there is nothing to undo" : "there is nothing to redo");
  }
  return Error(
      Code::kNotFound,
      fmt::format("there {} to {}",
                  crossed == 1 ? "is only 1 step" : fmt::format("are only {} steps", crossed),
                  back ? "undo" : "redo"));
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
  TRY_ASSIGN(size_t rows, RowsToCross(Way::kBack, count));
  StepGate::Pass pass = gate_.Enter(StepGate::Way::kAlone);
  return Travel({.target = steps_.size() - rows, .start = steps_.size(), .force = force});
}

// Takes steps back or redoes them until `target` are left: all of it or nothing. What fails after the commit point of a step is a warning
// and no reason to turn back. Killed in between, the next open goes on.
Result<RewindReport> LogCore::Travel(Journey journey) {
  const bool several = std::max(Distance(journey.start, journey.target),
                                Distance(steps_.size(), journey.target)) > 1;
  const std::vector<Barrier> barriers = barriers_;
  RewindReport report;
  Status status;
  if (several) {
    if (journey.force == Force::kNo) status = LookAhead(journey.target);
    if (status.ok()) status = SetOut(journey);
  }
  progress_ = {.total = options_.progress ? PathsUntil(journey.target) : 0};
  while (status.ok() && steps_.size() != journey.target) {
    const Way way = WayTo(journey.target);
    if (way == Way::kBack && journey.force == Force::kYes && !IsReadable(steps_.back())) {
      status = SetNewestAside(report);
      if (status.ok()) --journey.start;  // there is no way back to it
      continue;
    }
    status = CrossNewest(way, journey.force, several ? SpareRedo::kYes : SpareRedo::kNo, report);
  }
  progress_ = {};
  if (!status.ok()) {
    Status back = TurnBack(journey.start, journey.force);
    if (!back.ok()) {
      status = status.error().WithContext("only a part of the steps could be taken back or redone");
    } else if (several) {
      BestEffort("put barriers back", SetBarriers(barriers));
    }
  }
  if (several) NoteFailure("forget where this rewind was going", Arrive(), report);
  const bool by_force = journey.force == Force::kYes || !status.ok();
  NoteFailure("watch live writers on", RenewShadows(by_force ? Renewal::kAll : Renewal::kOurs),
              report);
  if (!status.ok()) return status.error();
  TrimRedo(report);
  return report;
}

uint64_t LogCore::PathsUntil(size_t target) {
  const std::vector<StepRow>& rows = RowsOf(WayTo(target));
  const size_t count = std::min(Distance(steps_.size(), target), rows.size());
  uint64_t paths = 0;
  for (size_t i = rows.size() - count; i < rows.size(); ++i) paths += rows[i].close.counts.total();
  return paths;
}

Status LogCore::SetOut(const Journey& journey) {
  return ReplaceFileAt(frame_->wal(), kTarget, WriteJourney(journey), file_sync());
}

// As long as the target stands there, the next open would go there again, over whatever steps there are by then.
Status LogCore::Arrive() {
  on_the_way_ = ::unlinkat(frame_->wal(), kTarget, 0) != 0 && errno != ENOENT;
  return on_the_way_ ? Error::FromErrno(errno, "remove wal/target") : Ok();
}

// What is in the way of an older step is told before the newest is touched. What comes up later than this look makes the travel turn back.
Status LogCore::LookAhead(size_t target) {
  const Way way = WayTo(target);
  const size_t count = Distance(steps_.size(), target);
  for (size_t i = 0; i < count && way == Way::kBack; ++i) {
    const StepRow& row = steps_[steps_.size() - 1 - i];
    if (row.close.protection != Protection::kUnprotected || row.damaged) continue;
    TRY_ASSIGN(const Source source, OpenSource(way, row));
    if (source.view.unprotected()) return NotRecordedInFull(row, source.view.unprotected_why());
  }
  TRY_ASSIGN(RewindReport plan, Plan(way, count, AnchorCheck::kLooks));
  if (plan.conflicts.empty()) return Ok();
  return RefusalOf(way, fmt::format("{} steps", count), plan.conflicts);
}

// By force, for live writers are no reason to stop half-way. But unless force was asked for, what a person did meanwhile is in the way of
// turning back as it is of going on: then the log stays where it is, which is a place between two steps.
Status LogCore::TurnBack(size_t start, Force force) {
  TRY(EnsureSettled());
  if (Distance(steps_.size(), start) > 0)
    TRY(SetOut({.target = start, .start = start, .force = force}));
  RewindReport ignored;
  while (steps_.size() != start) {
    TRY_ASSIGN(const RewindReport plan, Plan(WayTo(start), 1, AnchorCheck::kPresence));
    const Force now = TellsEdits(plan.conflicts) ? force : Force::kYes;
    TRY(CrossNewest(WayTo(start), now, SpareRedo::kYes, ignored));
  }
  return Ok();
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
      {ConflictKind::kCorrupt, "", "cannot be read and was set aside", row.header.id});
  std::vector<Barrier> barriers = barriers_;
  const std::optional<StepId> older = OlderThan(Way::kBack, steps_.size());
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
  auto journey = ParseJourney(*text);
  const size_t most = steps_.size() + redo_.size();
  if (journey && journey->target <= most) {
    journey->start = std::min<size_t>(journey->start, most);  // a step may have been set aside
    // Force was for what lay in the way then, not for what somebody has done since the kill.
    journey->force = Force::kNo;
    auto report = Travel(*journey);
    if (report.ok())
      AppendReport(std::move(*report), recovery_.rewind);
    else
      TellStopped(journey->target, report.error());
  }
  return Arrive();
}

// An interrupted travel that cannot go on: why, and all that is in its way from where it stands.
void LogCore::TellStopped(size_t target, const Error& why) {
  recovery_.rewind.warnings.push_back("an interrupted undo was not completed: " + why.message());
  const size_t left = Distance(steps_.size(), target);
  if (left == 0 || left > RowsOf(WayTo(target)).size()) return;
  auto plan = Plan(WayTo(target), left, AnchorCheck::kLooks);
  if (plan.ok()) Append(std::move(plan->conflicts), recovery_.rewind.conflicts);
}

Status LogCore::DropBarriers(StepId after) {
  if (std::erase_if(barriers_, [&](const Barrier& b) { return b.after == after; }) == 0)
    return Ok();
  return SaveBarriers();
}

Error LogCore::NotRecordedInFull(const StepRow& row, std::string_view why) {
  return Error(
      Code::kUnprotected,
      fmt::format("step {} was not recorded in full ({}), so it cannot be taken back exactly",
                  row.header.id.value, why));
}

Error LogCore::RefusalOf(Way way, std::string_view what, const std::vector<Conflict>& conflicts) {
  return Refusal(fmt::format("{} cannot be {} without force", what,
                             way == Way::kBack ? "taken back" : "redone"),
                 conflicts);
}

// There is no way around a redo that cannot be read: what lies below it would be redone upon the wrong ground.
Result<LogCore::Source> LogCore::OpenSource(Way way, const StepRow& row) {
  auto source = Source::Open(FolderOf(way), row.folder);
  if (source.ok()) return source;
  const Error& error = source.error();
  if (way == Way::kBack || !(IsDamage(error) || error.code() == Code::kNotFound))
    return error.WithContext(fmt::format("step {}", row.header.id.value));
  return error.WithContext(
      fmt::format("nothing more can be redone, because redo/{} in the undo store is damaged; "
                  "the next step drops it, and rolling back still works",
                  row.folder));
}

// Takes the newest step back, or redoes the newest one that was.
Status LogCore::CrossNewest(Way way, Force force, SpareRedo spare, RewindReport& report) {
  if (RowsOf(way).empty()) return Error(Code::kNotFound, "there are no more steps this way");
  const StepRow row = RowsOf(way).back();
  TRY_ASSIGN(Reversed reversed, Reverse(way, row, force, spare, report));
  TRY(Promote(way, std::move(reversed.row), report));
  NoteFailure("save barriers", SetBarriers(std::move(reversed.barriers)), report);
  ForgetFrozen();
  NoteFailure("drop what was crossed", DropRow(FolderOf(way), row), report);
  return Ok();
}

// The step's journal is closed again when this returns: whoever closes a removed file last waits until its blocks are free.
Result<LogCore::Reversed> LogCore::Reverse(Way way, const StepRow& row, Force force,
                                           SpareRedo spare, RewindReport& report) {
  auto source = OpenSource(way, row);
  if (!source.ok()) return source.error();
  source->spare_redo = way == Way::kBack ? spare : SpareRedo::kYes;
  const StepView& view = source->view;
  if (way == Way::kBack && view.unprotected() && force == Force::kNo)
    return NotRecordedInFull(row, view.unprotected_why());
  const Crossing crossing{way, row, RowsOf(way).size() - 1, view};
  TRY_ASSIGN(auto conflicts,
             Conflicts(crossing, *source->files, barriers_, AnchorCheck::kPresence));
  const std::string step = fmt::format("step {}", row.header.id.value);
  if (!conflicts.empty() && force == Force::kNo) return RefusalOf(way, step, conflicts);
  Append(std::move(conflicts), report.conflicts);
  Reversed reversed{
      .row = {},
      .barriers = BarriersBeyond(crossing, barriers_, OlderThan(way, steps_.size() - 1))};
  Status done = RunRewind(*source, force, nullptr, report, reversed.row);
  if (!done.ok() && done.error().code() == Code::kCorrupt && force == Force::kNo) {
    // It met one damaged anchor and turned back. Whoever asked wants to hear of all of them.
    MutexLock pin(pack_mutex_);
    const auto damage = FindDamage(view, *source->files, StepEnd::kClosed, AnchorCheck::kLooks);
    if (damage.ok() && !damage->empty()) return RefusalOf(way, step, *damage);
  }
  TRY(done);
  return reversed;
}

// The reversal in wal/rewind becomes history: of redo after a rollback, of steps after a redo.
Status LogCore::Promote(Way way, StepRow reversal, RewindReport& report) {
  const Way other = way == Way::kBack ? Way::kForth : Way::kBack;
  const StepId id = reversal.header.id;
  reversal.folder = fmt::format("{}", way == Way::kBack ? next_redo_ : id.value);
  if (::renameat(frame_->wal(), kRewind, FolderOf(other), reversal.folder.c_str()) != 0) {
    Error error = Error::FromErrno(errno, "finish the rewind");
    TRY(TakeBackReversal());
    return error;
  }
  if (way == Way::kBack) {
    ++next_redo_;
  } else {
    objects_.MarkAdopted(reversal.header.uid);  // the rewind itself noted what it left
    NoteFailure("save signatures", objects_.Flush(), report);
  }
  RowsOf(other).push_back(std::move(reversal));
  RowsOf(way).pop_back();
  report.steps.push_back(id);
  return Ok();
}

Result<RewindReport> LogCore::PlanRollback(uint32_t count) {
  LifecycleLock lock(*this);
  TRY(SettleForRewind());
  TRY_ASSIGN(size_t rows, RowsToCross(Way::kBack, count));
  return Plan(Way::kBack, rows, AnchorCheck::kLooks);
}

Result<RewindReport> LogCore::PlanRedo(uint32_t count) {
  LifecycleLock lock(*this);
  TRY(SettleForRewind());
  TRY_ASSIGN(size_t rows, RowsToCross(Way::kForth, count));
  return Plan(Way::kForth, rows, AnchorCheck::kLooks);
}

Result<RewindReport> LogCore::Plan(Way way, size_t count, AnchorCheck check) {
  const std::vector<StepRow>& rows = RowsOf(way);
  RewindReport report;
  LaterSteps later;
  std::vector<Barrier> barriers = barriers_;
  for (size_t left = rows.size(); left-- > rows.size() - count;) {
    const StepRow& row = rows[left];
    auto source = OpenSource(way, row);
    if (!source.ok() && IsDamage(source.error()) && way == Way::kBack) {
      report.conflicts.push_back(
          {ConflictKind::kCorrupt, "", "cannot be read; force sets it aside", row.header.id});
      continue;
    }
    if (!source.ok()) return source.error();
    const StepView& view = source->view;
    report.steps.push_back(row.header.id);
    if (view.unprotected())
      report.conflicts.push_back({ConflictKind::kCorrupt, "",
                                  "not recorded in full: " + view.unprotected_why(),
                                  row.header.id});
    const Crossing crossing{way, row, left, view, &later};
    TRY_ASSIGN(auto conflicts, Conflicts(crossing, *source->files, barriers, check));
    Append(std::move(conflicts), report.conflicts);
    Append(view.InverseChanges(), report.changes);
    barriers = BarriersBeyond(crossing, std::move(barriers), OlderThan(way, left));
    later.Add(view);
  }
  return report;
}

Result<RewindReport> LogCore::Redo(uint32_t count, Force force) {
  LifecycleLock lock(*this);
  TRY(SettleForRewind());
  TRY_ASSIGN(size_t rows, RowsToCross(Way::kForth, count));
  StepGate::Pass pass = gate_.Enter(StepGate::Way::kAlone);
  return Travel({.target = steps_.size() + rows, .start = steps_.size(), .force = force});
}

}  // namespace sandglass::undo
