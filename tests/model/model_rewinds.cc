// ModelRun: rollback, redo, restore, and edits that must stand in their way.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/rel_path.h"
#include "tests/model/external_edit.h"
#include "tests/model/model_run.h"
#include "tests/model/tree_checks.h"
#include "tests/model/verdict.h"

namespace sandglass::model {

using test::EntrySnapshot;
using test::Printable;
using test::TreeSnapshot;
using undo::Force;
using undo::RewindReport;

namespace {

bool Names(const std::vector<undo::Conflict>& conflicts, const std::string& path) {
  return std::any_of(conflicts.begin(), conflicts.end(),
                     [&](const undo::Conflict& conflict) { return conflict.path == path; });
}

}  // namespace

void ModelRun::MoveToRedo(size_t from) {
  while (stack_.size() > from) {
    redo_.push_back(std::move(stack_.back()));
    stack_.pop_back();
  }
}

Status ModelRun::Rollback(const Command& command) {
  TRY(EndStep());
  if (stack_.size() <= floor_) return Ok();
  Dice dice(command.salt);
  const uint32_t count = 1 + dice.Below(3);
  if (dice.Below(4) != 3) actor_->CloseWriters();
  Result<RewindReport> plan = log_->PlanRollback(count);
  if (!plan.ok() && plan.error().code() == Code::kNotFound)
    return Ok();  // fewer than `count` have changes
  if (!plan.ok()) return plan.error().WithContext("plan rollback");
  if (plan->steps.empty()) return Ok();
  TRY_ASSIGN(size_t oldest, OldestOf(*plan));
  if (oldest < floor_) return Ok();
  Done(command);
  if (HasEditFrom(oldest)) return RollbackOverEdit(count, dice);
  return RollbackPlanned(count, *plan);
}

// With writers still there the log may say that it is busy, as long as it changes nothing; when they are gone it must not.
Result<RewindReport> ModelRun::RollbackDespiteWriters(uint32_t count) {
  Result<RewindReport> report = log_->Rollback(count);
  const bool busy =
      !report.ok() && !actor_->LiveWriters().empty() &&
      (report.error().code() == Code::kBusy || report.error().code() == Code::kConflict);
  if (!busy) {
    actor_->CloseWriters();
    return report;
  }
  trace_.Add(fmt::format("busy: {}", report.error().ToString()));
  TRY(ExpectUntouched("after a rollback that was refused as busy"));
  actor_->CloseWriters();
  return log_->Rollback(count);
}

Status ModelRun::RollbackPlanned(uint32_t count, const RewindReport& plan) {
  trace_.Add(fmt::format("roll back {} ({})", count, Ids(plan.steps)));
  Result<RewindReport> report = RollbackDespiteWriters(count);
  if (!report.ok()) return report.error().WithContext("rollback");
  if (report->steps != plan.steps) {
    return Wrong(
        fmt::format("planned steps {}, took back {}", Ids(plan.steps), Ids(report->steps)));
  }
  TRY_ASSIGN(size_t oldest, OldestOf(*report));
  TRY(ExpectTree(stack_[oldest].before, "after a rollback"));
  MoveToRedo(oldest);
  return Ok();
}

Status ModelRun::RefuseRollback(uint32_t count, const std::string& edited) {
  actor_->CloseWriters();
  TRY_ASSIGN(RewindReport plan, log_->PlanRollback(count));
  if (!Names(plan.conflicts, edited)) {
    return Wrong(
        fmt::format("the plan has no conflict at {}, edited from outside", Printable(edited)));
  }
  const Result<RewindReport> report = log_->Rollback(count);
  if (report.ok()) return Wrong(fmt::format("rolled back over an edit of {}", Printable(edited)));
  if (report.error().code() != Code::kConflict)
    return report.error().WithContext("expected a conflict");
  const std::string& message = report.error().message();
  if (message.find(edited) == std::string::npos && Printable(edited) == edited) {
    return Wrong(fmt::format("the refusal does not name {}: {}", edited, message));
  }
  return ExpectUntouched("after a rollback that was refused");
}

// Is it what a person put there after the step? A store on another file system brings it back as another inode.
bool ModelRun::IsPersons(const Step& step, const EntrySnapshot& entry, ino_t inode) const {
  if (step.edited_inode == inode) return true;
  return !elsewhere_.path().empty() && step.edited_to && SameContent(&*step.edited_to, &entry);
}

Status ModelRun::ForceRollback(uint32_t count) {
  Result<RewindReport> report = log_->Rollback(count, Force::kYes);
  if (!report.ok()) return report.error().WithContext("forced rollback");
  TRY_ASSIGN(size_t oldest, OldestOf(*report));
  std::set<std::string> uncertain;
  for (size_t i = oldest; i < stack_.size(); ++i) {
    if (stack_[i].edited.empty()) continue;
    uncertain.merge(UncertainAfterForce(stack_[oldest].before, stack_[i].after, stack_[i].edited));
  }
  TRY_ASSIGN(TreeSnapshot seen, Look());
  TRY_ASSIGN(const Inodes inodes, LookAtInodes());
  ++counts_.checks;
  for (const EntrySnapshot& entry : seen.entries()) {
    // What a person made is never deleted: it stays, and so does its folder, under the name that the folder returns to.
    const bool persons = std::any_of(
        stack_.begin() + static_cast<std::ptrdiff_t>(oldest), stack_.end(),
        [&](const Step& step) { return IsPersons(step, entry, inodes.at(entry.path)); });
    if (persons || IsSavedAside(entry.path)) uncertain.merge(Neighbourhood(seen, entry.path));
  }
  const test::CompareOptions but_uncertain{
      .exclude = {[&](std::string_view path) { return uncertain.contains(std::string(path)); }}};
  const std::vector<std::string> differences =
      test::Diff(stack_[oldest].before, seen, but_uncertain);
  if (!differences.empty()) {
    return Wrong(
        fmt::format("after a forced rollback (wanted -> seen):\n    {}", Listed(differences)));
  }
  const bool exact = test::Diff(stack_[oldest].before, seen).empty();
  current_ = std::move(seen);
  MoveToRedo(oldest);
  redo_spoiled_ = true;
  if (!exact) floor_ = stack_.size();
  return Ok();
}

Status ModelRun::RollbackOverEdit(uint32_t count, Dice& dice) {
  const auto newest = std::find_if(stack_.rbegin(), stack_.rend(),
                                   [](const Step& step) { return !step.edited.empty(); });
  trace_.Add(fmt::format("roll back {} over an edit of {}", count, Printable(newest->edited)));
  TRY(RefuseRollback(count, newest->edited));
  if (dice.OneIn(2)) return Ok();
  trace_.Add("with force");
  return ForceRollback(count);
}

// Redo.

void ModelRun::TakeFromRedo(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    stack_.push_back(std::move(redo_.back()));
    redo_.pop_back();
  }
}

void ModelRun::ForgetRedo() {
  redo_.clear();
  redo_spoiled_ = false;
}

Status ModelRun::Redo(const Command& command) {
  TRY(EndStep());
  if (redo_.empty())
    TRY(Rollback({.op = Op::kRollback, .path = 0, .other = 0, .salt = command.salt}));
  if (redo_.empty() || redo_spoiled_) return Ok();
  actor_->CloseWriters();
  const uint32_t count = 1 + Dice(command.salt).Below(3);
  Result<RewindReport> plan = log_->PlanRedo(count);
  if (!plan.ok() && plan.error().code() == Code::kNotFound) return Ok();
  if (!plan.ok()) return plan.error().WithContext("plan redo");
  if (plan->steps.empty()) return Ok();
  trace_.Add(fmt::format("redo {} ({})", count, Ids(plan->steps)));
  Result<RewindReport> report = log_->Redo(count);
  if (!report.ok()) return report.error().WithContext("redo");
  const auto found = std::find_if(redo_.rbegin(), redo_.rend(), [&](const Step& step) {
    return step.id == report->steps.back();
  });
  if (found == redo_.rend())
    return Wrong(fmt::format("redid an unknown step: {}", Ids(report->steps)));
  TRY(ExpectTree(found->after, "after a redo"));
  Done(command);
  TakeFromRedo(static_cast<size_t>(found - redo_.rbegin()) + 1);
  return Ok();
}

// Restore.

Status ModelRun::CheckRestored(const TreeSnapshot& wanted, const TreeSnapshot& seen,
                               const std::string& path) {
  for (const std::string& at : AllPaths(wanted, seen)) {
    if (IsBeneath(at, path) && !SameEntry(wanted.Find(at), seen.Find(at))) {
      return Wrong(fmt::format("{} is not what it was before the step (all differences):\n    {}",
                               Printable(at), Listed(test::Diff(wanted, seen))));
    }
  }
  if (std::string above = ChangedAbove(current_, seen, path); !above.empty()) return Wrong(above);
  std::set<std::string> near = Neighbourhood(current_, path);
  near.merge(Neighbourhood(wanted, path));
  const test::CompareOptions elsewhere{.exclude = {[&](std::string_view at) {
                                         return IsBeneath(at, path) ||
                                                near.contains(std::string(at));
                                       }}};
  const std::vector<std::string> differences = test::Diff(current_, seen, elsewhere);
  if (differences.empty()) return Ok();
  return Wrong(fmt::format("restoring {} changed something else:\n    {}", Printable(path),
                           Listed(differences)));
}

// Something that differs from what it was and whose folder is there to put it.
std::optional<std::string> ModelRun::PathToRestore(const TreeSnapshot& wanted,
                                                   uint32_t choice) const {
  std::vector<std::string> changed;
  for (const std::string& path : AllPaths(wanted, current_)) {
    if (path.empty() || SameEntry(wanted.Find(path), current_.Find(path))) continue;
    const EntrySnapshot* parent = current_.Find(ParentOf(path));
    if (parent != nullptr && S_ISDIR(parent->mode)) changed.push_back(path);
  }
  if (changed.empty()) return std::nullopt;
  return changed[choice % changed.size()];
}

Status ModelRun::Restore(const Command& command) {
  TRY(EndStep());
  const size_t first = FirstUnspoiled();
  if (first == stack_.size()) return Ok();
  actor_->CloseWriters();
  const Step& step = stack_[first + command.other % (stack_.size() - first)];
  const std::optional<std::string> path = PathToRestore(step.before, command.path);
  if (!path) return Ok();
  trace_.Add(fmt::format("restore {} to before step {}", Printable(*path), step.id.value));
  TRY_ASSIGN(Inodes inodes, LookAtInodes());
  const std::vector<std::string> paths = {*path};
  Result<RewindReport> report = log_->Restore(step.id, paths);
  const bool edited = HasEditFrom(0) || folder_edited_;
  if (!report.ok() && report.error().code() == Code::kConflict && edited) {
    // An older edit of something that only moved along since: nobody can tell that it is older.
    trace_.Add(fmt::format("with force: {}", report.error().ToString()));
    TRY(ExpectUntouched("after a restore that was refused"));
    report = log_->Restore(step.id, paths, Force::kYes);
  }
  if (!report.ok()) return report.error().WithContext("restore");
  TRY_ASSIGN(TreeSnapshot seen, Look());
  ++counts_.checks;
  TRY(CheckRestored(step.before, seen, *path));
  Done(command);
  if (report->steps.empty()) return ExpectUntouched("after a restore with nothing to do");
  return PushRestore(std::move(seen), inodes);
}

// A restore is a step like any other, and can be taken back.
Status ModelRun::PushRestore(TreeSnapshot seen, const Inodes& inodes_before) {
  TRY_ASSIGN(StepId made, NewestClosed());
  if (made == stack_.back().id) return Wrong("a restore left no step of its own");
  Step step{.id = made, .before = current_};
  current_ = std::move(seen);
  TRY(FinishStep(step, inodes_before));
  stack_.push_back(std::move(step));
  ForgetRedo();
  return Ok();
}

// A person's edits.

Status ModelRun::RefuseRedo(const std::string& edited) {
  trace_.Add("try to redo over it");
  const Result<RewindReport> report = log_->Redo(1);
  if (report.ok()) return Wrong(fmt::format("redid over an edit of {}", Printable(edited)));
  if (report.error().code() != Code::kConflict)
    return report.error().WithContext("expected a conflict");
  return ExpectUntouched("after a redo that was refused");
}

Result<std::optional<std::string>> ModelRun::PathOfInode(ino_t wanted) const {
  using Path = std::optional<std::string>;
  TRY_ASSIGN(const Inodes inodes, LookAtInodes());
  for (const auto& [path, inode] : inodes) {
    if (inode == wanted) return Path(path);
  }
  return Path();
}

// Edits a folder that the newest step changed nothing of but names in it, and rolls the step back at once: the edit is there afterwards,
// or it stood in the way (because the step had touched the folder without a visible change).
Status ModelRun::EditNamedFolder(const Command& command) {
  const Step& newest = stack_.back();
  if (newest.named_folders.empty()) return Ok();
  const std::string path = newest.named_folders[command.path % newest.named_folders.size()];
  Dice dice(command.salt);
  TRY_ASSIGN(const char* how, EditFromOutside(workspace_.Path(path), EditOf::kFolder, dice));
  trace_.Add(fmt::format("external edit of folder {}: {}; roll back", Printable(path), how));
  TRY_ASSIGN(current_, Look());
  const EntrySnapshot edited = *current_.Find(path);
  TRY_ASSIGN(const Inodes before, LookAtInodes());
  const size_t vouched = floor_;
  floor_ = stack_.size();
  redo_spoiled_ = true;
  folder_edited_ = true;
  Done(command);
  Result<RewindReport> report = log_->Rollback(1);
  if (!report.ok() &&
      (report.error().code() == Code::kConflict || report.error().code() == Code::kNotFound))
    return ExpectUntouched("after a rollback that an edited folder stood in the way of");
  if (!report.ok()) return report.error().WithContext("rollback over an edited folder");
  TRY_ASSIGN(size_t oldest, OldestOf(*report));
  TRY_ASSIGN(TreeSnapshot seen, Look());
  ++counts_.checks;
  // A step without changes does not count, so that older ones may have gone too, with edits that were made since, and the folder may have
  // another name again, or be gone with the step that made it.
  TRY_ASSIGN(const auto then, PathOfInode(before.at(path)));
  const EntrySnapshot* now = then ? seen.Find(*then) : nullptr;
  const bool unmade = !then && oldest + 1 < stack_.size();
  const bool kept = now != nullptr && SameAttributes(edited, *now) &&
                    (std::string_view(how) != "time" || edited.mtime == now->mtime);
  if (!kept && !unmade)
    return Wrong(fmt::format("a rollback took a person's {} of {}", how, Printable(path)));
  const test::CompareOptions elsewhere{
      .exclude = {[&](std::string_view at) { return then && at == *then; }}};
  const std::vector<std::string> differences = test::Diff(stack_[oldest].before, seen, elsewhere);
  if (!differences.empty() && oldest >= vouched)
    return Wrong(fmt::format("after a rollback beside an edited folder (wanted -> seen):\n    {}",
                             Listed(differences)));
  current_ = std::move(seen);
  MoveToRedo(oldest);
  floor_ = stack_.size();
  return Ok();
}

// Edits a file that the newest step changed, so that rolling that step back would lose the edit.
Status ModelRun::ExternalEdit(const Command& command) {
  TRY(EndStep());
  if (stack_.size() <= floor_ || !stack_.back().edited.empty()) return Ok();
  actor_->CloseWriters();
  // The log learns that they are gone when it looks next; until then a change of their files is taken for theirs.
  if (Result<RewindReport> look = log_->PlanRollback(1); !look.ok()) {
    if (look.error().code() != Code::kNotFound) return look.error().WithContext("plan rollback");
  }
  Step& newest = stack_.back();
  Dice dice(command.salt);
  if (dice.OneIn(4)) return EditNamedFolder(command);
  const bool folder = dice.OneIn(3) && !newest.folders.empty();
  const std::vector<std::string>& choice = folder ? newest.folders : newest.changed;
  if (choice.empty()) return Ok();
  const std::string path = choice[command.path % choice.size()];
  // A file that lost a name in the step may have been changed under that one alone. Then the step knows nothing of the name
  // that is left, and whoever takes or replaces that loses nothing by a rollback.
  const EntrySnapshot* before = newest.before.Find(path);
  const bool had_names = before != nullptr && before->link_group >= 0;
  EditOf what = had_names ? EditOf::kObject : EditOf::kNameOrObject;
  if (folder) what = EditOf::kFolder;
  TRY_ASSIGN(const char* how, EditFromOutside(workspace_.Path(path), what, dice));
  trace_.Add(fmt::format("external edit of {}: {}", Printable(path), how));
  if (dice.OneIn(2)) {
    trace_.Add("seen by a watcher");
    TRY(log_->NoteExternalModification(std::vector<std::string>{path}));
  }
  TRY_ASSIGN(current_, Look());
  newest.edited = path;
  TRY_ASSIGN(const Inodes inodes, LookAtInodes());
  const auto edited = inodes.find(path);
  newest.edited_inode = edited == inodes.end() ? 0 : edited->second;
  if (const EntrySnapshot* now = current_.Find(path)) newest.edited_to = *now;
  Done(command);
  const bool redo_touches_it =
      !redo_.empty() && !redo_spoiled_ &&
      std::ranges::find(redo_.back().changed_in_place, path) != redo_.back().changed_in_place.end();
  redo_spoiled_ = true;
  if (redo_touches_it) TRY(RefuseRedo(path));
  return Ok();
}

// At the end everything that the model can vouch for is taken back at once and redone at once.
Status ModelRun::Unwind() {
  TRY(EndStep());
  actor_->CloseWriters();
  const size_t first = FirstUnspoiled();
  if (first == stack_.size()) return Ok();
  uint32_t count = 0;
  Result<RewindReport> plan = Wrong("no step has changes");
  for (uint32_t more = 1; more <= stack_.size() - first; ++more) {
    Result<RewindReport> longer = log_->PlanRollback(more);
    if (!longer.ok() || longer->steps.empty()) break;
    TRY_ASSIGN(size_t oldest, OldestOf(*longer));
    if (oldest < first) break;
    count = more;
    plan = std::move(longer);
  }
  if (count == 0) return Ok();
  const TreeSnapshot at_the_end = current_;
  TRY(RollbackPlanned(count, *plan));
  trace_.Add(fmt::format("redo all {}", count));
  Result<RewindReport> redone = log_->Redo(count);
  if (!redone.ok()) return redone.error().WithContext("redo of everything");
  return ExpectTree(at_the_end, "after redoing everything");
}

}  // namespace sandglass::model
