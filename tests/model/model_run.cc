#include "tests/model/model_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/rel_path.h"
#include "tests/model/external_edit.h"
#include "tests/support/tree_walk.h"

namespace sandglass::model {

using test::EntrySnapshot;
using test::Printable;
using test::TreeSnapshot;
using undo::Force;
using undo::RewindReport;

namespace {

constexpr uint64_t kMostPerStep = 11;  // so that 33 operations are three steps
constexpr uint64_t kEnoughOperations = 34;
constexpr size_t kShownDifferences = 12;

Error Wrong(std::string what) { return Error{Code::kInvalid, std::move(what)}; }

std::string Ids(const std::vector<StepId>& ids) {
  std::string text;
  for (const StepId id : ids) text += fmt::format("{}{}", text.empty() ? "" : ", ", id.value);
  return text;
}

std::string Shown(std::vector<std::string> lines) {
  const size_t all = lines.size();
  if (all > kShownDifferences) {
    lines.resize(kShownDifferences);
    lines.push_back(fmt::format("and {} more", all - kShownDifferences));
  }
  return fmt::format("{}", fmt::join(lines, "\n    "));
}

bool SameContent(const EntrySnapshot* a, const EntrySnapshot* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return (a->mode & S_IFMT) == (b->mode & S_IFMT) && a->size == b->size &&
         a->content == b->content && a->symlink_target == b->symlink_target;
}

bool SameEntry(const EntrySnapshot* a, const EntrySnapshot* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return SameContent(a, b) && a->mode == b->mode && a->uid == b->uid && a->gid == b->gid &&
         a->flags == b->flags && a->mtime == b->mtime && a->xattrs == b->xattrs &&
         a->device == b->device;
}

std::set<std::string> AllPaths(const TreeSnapshot& a, const TreeSnapshot& b) {
  std::set<std::string> paths;
  for (const TreeSnapshot* tree : {&a, &b}) {
    for (const EntrySnapshot& entry : tree->entries()) paths.insert(entry.path);
  }
  return paths;
}

// Every path that names the same object as something at or below `top`, and every directory above one of them: all that a
// change of `top` may show in.
std::set<std::string> Neighbourhood(const TreeSnapshot& tree, const std::string& top) {
  std::set<std::string> paths = {top};
  for (const std::vector<std::string>& group : tree.link_groups()) {
    const bool touches = std::any_of(group.begin(), group.end(),
                                     [&](const std::string& path) { return IsBeneath(path, top); });
    if (touches) paths.insert(group.begin(), group.end());
  }
  std::set<std::string> with_parents = paths;
  for (std::string_view path : paths) {
    while (!path.empty()) {
      path = ParentOf(path);
      with_parents.insert(std::string(path));
    }
  }
  return with_parents;
}

// The directories above what is restored stay as they are, but for their times.
std::string ChangedAbove(const TreeSnapshot& before, const TreeSnapshot& after,
                         std::string_view path) {
  while (!path.empty()) {
    path = ParentOf(path);
    const EntrySnapshot* was = before.Find(path);
    const EntrySnapshot* is = after.Find(path);
    if (was == nullptr || is == nullptr) continue;
    if (was->mode != is->mode || was->uid != is->uid || was->gid != is->gid ||
        was->flags != is->flags || was->xattrs != is->xattrs) {
      return fmt::format("restoring changed the directory above, {}", Printable(path));
    }
  }
  return "";
}

// A forced rewind may keep or drop a person's edit, and the edited object may have had another name before the step.
std::set<std::string> UncertainAfterForce(const TreeSnapshot& before, const TreeSnapshot& after,
                                          const std::string& edited) {
  std::set<std::string> uncertain = Neighbourhood(before, edited);
  for (const std::string& path : AllPaths(before, after)) {
    if (!SameContent(before.Find(path), after.Find(path)))
      uncertain.merge(Neighbourhood(before, path));
  }
  return uncertain;
}

bool Names(const std::vector<undo::Conflict>& conflicts, const std::string& path) {
  return std::any_of(conflicts.begin(), conflicts.end(),
                     [&](const undo::Conflict& conflict) { return conflict.path == path; });
}

}  // namespace

ModelRun::ModelRun(const test::TempWorkspace& workspace, Counts& counts, undo::UndoOptions options)
    : workspace_(workspace), counts_(counts), options_(std::move(options)) {}

Status ModelRun::OpenLog() {
  TRY_ASSIGN(log_, undo::UndoLog::Open({workspace_.project(), workspace_.store()}, options_));
  actor_.emplace(*log_, workspace_.project(), trace_);
  return Ok();
}

Status ModelRun::Run(const Commands& commands) {
  PlantProject(workspace_.project(), commands.empty() ? 0 : commands.front().salt);
  TRY(OpenLog());
  TRY_ASSIGN(current_, Look());
  for (const Command& command : commands) {
    if (operations_ >= kEnoughOperations && steps_ >= 3) break;
    TRY(RunCommand(command));
  }
  TRY(Unwind());
  counts_.AddStrategies(*log_);
  counts_.steps += steps_;
  return Ok();
}

Status ModelRun::RunCommand(const Command& command) {
  switch (command.op) {
    case Op::kAmbient:
      return ActOutsideOfStep(command);
    case Op::kWriteBetween:
      return WriteBetweenSteps(command);
    case Op::kEndStep:
      return EndStep();
    case Op::kAbortStep:
      return AbortStep();
    case Op::kRollback:
      return Rollback(command);
    case Op::kRedo:
      return Redo(command);
    case Op::kRestore:
      return Restore(command);
    case Op::kExternalEdit:
      return ExternalEdit(command);
    case Op::kReopen:
      return Reopen();
    default:
      break;
  }
  if (operations_in_step_ >= kMostPerStep) TRY(EndStep());
  if (!step_open_) TRY(BeginStep());
  return Act(command);
}

Status ModelRun::Act(const Command& command) {
  TRY_ASSIGN(Effect effect, actor_->Apply(command));
  if (effect == Effect::kUnsupported) ++counts_.unsupported[static_cast<size_t>(command.op)];
  if (effect != Effect::kDone) return Ok();
  Done(command);
  if (InfoOf(command.op).family == OpFamily::kChange) {
    ++operations_;
    ++operations_in_step_;
  }
  return Ok();
}

// Steps.

Status ModelRun::BeginStep() {
  TRY_ASSIGN(StepId id, log_->OpenStep({.label = "model"}));
  trace_.Add(fmt::format("begin step {}", id.value));
  TRY_ASSIGN(inodes_, LookAtInodes());
  stack_.push_back({.id = id, .before = current_});
  ForgetRedo();
  step_open_ = true;
  operations_in_step_ = 0;
  return Ok();
}

// A change while no step is open: the log opens an ambient one by itself.
Status ModelRun::ActOutsideOfStep(const Command& command) {
  TRY(EndStep());
  TRY_ASSIGN(inodes_, LookAtInodes());
  const Command change{.op = command.salt % 2 == 0 ? Op::kWriteNew : Op::kUnlinkLast,
                       .path = command.path,
                       .other = command.other,
                       .salt = command.salt};
  TRY(Act(change));
  const std::optional<StepId> ambient = log_->open_step();
  if (!ambient) return Ok();
  if (ambient->value >= 0) return Wrong(fmt::format("ambient step has the id {}", ambient->value));
  trace_.Add(fmt::format("ambient step {}", ambient->value));
  stack_.push_back({.id = *ambient, .before = current_});
  ForgetRedo();
  step_open_ = true;
  Done(command);
  return EndStep();
}

// A world's process goes on writing to a file after its step has ended: the log finds that when the next step begins, and
// makes an ambient step of it.
Status ModelRun::WriteBetweenSteps(const Command& command) {
  TRY(EndStep());
  if (actor_->LiveWriters().empty() || stack_.empty()) return Ok();
  const TreeSnapshot before = current_;
  TRY(Act(
      {.op = Op::kWriteKept, .path = command.path, .other = command.other, .salt = command.salt}));
  TRY_ASSIGN(current_, Look());
  TRY(BeginStep());
  if (test::Diff(before, current_).empty()) return Ok();
  TRY_ASSIGN(StepId ambient, NewestClosed());
  if (ambient.value >= 0) return Wrong("writes between steps made no ambient step");
  trace_.Add(fmt::format("they are ambient step {}", ambient.value));
  Step between{.id = ambient, .before = before};
  TRY(FinishStep(between, inodes_));  // the same inodes as before: nothing was made or moved
  stack_.insert(stack_.end() - 1, std::move(between));
  Done(command);
  return Ok();
}

Status ModelRun::EndStep() {
  if (!step_open_) return Ok();
  const std::vector<undo::ObjectRef> writers = actor_->LiveWriters();
  trace_.Add(fmt::format("end step {}, {} live writers", stack_.back().id.value, writers.size()));
  TRY(log_->CloseStep(writers));
  step_open_ = false;
  if (operations_in_step_ > 0) ++steps_;
  operations_in_step_ = 0;
  ++counts_.done[static_cast<size_t>(Op::kEndStep)];
  TRY_ASSIGN(current_, Look());
  return FinishStep(stack_.back(), inodes_);
}

Status ModelRun::AbortStep() {
  if (!step_open_) return Ok();
  actor_->CloseWriters();
  trace_.Add(fmt::format("abort step {}", stack_.back().id.value));
  TRY(log_->AbortStep());
  step_open_ = false;
  operations_in_step_ = 0;
  TRY(ExpectTree(stack_.back().before, "after aborting a step"));
  stack_.pop_back();
  ++counts_.done[static_cast<size_t>(Op::kAbortStep)];
  return Ok();
}

Status ModelRun::Reopen() {
  TRY(EndStep());
  trace_.Add("reopen the log");
  counts_.AddStrategies(*log_);
  actor_.reset();
  log_.reset();
  TRY(OpenLog());
  if (log_->recovery().recovered) return Wrong("recovery after a clean end");
  ++counts_.done[static_cast<size_t>(Op::kReopen)];
  return ExpectUntouched("after opening the log again");
}

// Records what the project is after the step that began with the inodes `before`.
Status ModelRun::FinishStep(Step& step, const Inodes& before) const {
  step.after = current_;
  TRY_ASSIGN(const Inodes now, LookAtInodes());
  std::set<ino_t> known;
  for (const auto& [path, inode] : before) known.insert(inode);
  for (const EntrySnapshot& entry : current_.entries()) {
    if (!S_ISREG(entry.mode) || entry.link_group >= 0) continue;
    const ino_t inode = now.at(entry.path);
    const auto was = before.find(entry.path);
    const bool in_place = was != before.end() && was->second == inode;
    if (in_place && SameEntry(step.before.Find(entry.path), &entry)) continue;
    if (in_place) step.changed_in_place.push_back(entry.path);
    if (in_place || !known.contains(inode)) step.changed.push_back(entry.path);
  }
  return Ok();
}

// Looking and comparing.

Result<TreeSnapshot> ModelRun::Look() { return TreeSnapshot::Capture(workspace_.project()); }

Result<ModelRun::Inodes> ModelRun::LookAtInodes() const {
  TRY_ASSIGN(Fd root, test::OpenDirectory(workspace_.project()));
  Inodes inodes;
  TRY(test::WalkTree(root.get(), [&](const test::WalkEntry& entry) {
    inodes.emplace(entry.path, entry.st.stx_ino);
    return Ok();
  }));
  return inodes;
}

Status ModelRun::ExpectTree(const TreeSnapshot& wanted, const char* when) {
  TRY_ASSIGN(TreeSnapshot seen, Look());
  ++counts_.checks;
  const std::vector<std::string> differences = test::Diff(wanted, seen);
  if (!differences.empty()) {
    return Wrong(fmt::format("{} (wanted -> seen):\n    {}", when, Shown(differences)));
  }
  current_ = std::move(seen);
  return Ok();
}

Result<size_t> ModelRun::OldestOf(const RewindReport& plan) const {
  if (plan.steps.empty()) return Wrong("the plan takes nothing back");
  const auto found = std::find_if(stack_.begin(), stack_.end(),
                                  [&](const Step& step) { return step.id == plan.steps.back(); });
  if (found == stack_.end())
    return Wrong(fmt::format("the plan has an unknown step: {}", Ids(plan.steps)));
  const auto oldest = static_cast<size_t>(found - stack_.begin());
  if (stack_.size() - oldest < plan.steps.size())
    return Wrong("the plan takes back more than there is");
  return oldest;
}

Result<StepId> ModelRun::NewestClosed() const {
  TRY_ASSIGN(std::vector<undo::HistoryEntry> history, log_->History());
  for (auto entry = history.rbegin(); entry != history.rend(); ++entry) {
    if (entry->step) return entry->step->id;
  }
  return Wrong("the history is empty");
}

bool ModelRun::HasEditFrom(size_t index) const {
  return std::any_of(stack_.begin() + static_cast<std::ptrdiff_t>(index), stack_.end(),
                     [](const Step& step) { return !step.edited.empty(); });
}

// Rollback.

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
  ++counts_.checks;
  const test::CompareOptions but_uncertain{
      .exclude = {[&](std::string_view path) { return uncertain.contains(std::string(path)); }}};
  const std::vector<std::string> differences =
      test::Diff(stack_[oldest].before, seen, but_uncertain);
  if (!differences.empty()) {
    return Wrong(
        fmt::format("after a forced rollback (wanted -> seen):\n    {}", Shown(differences)));
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
                               Printable(at), Shown(test::Diff(wanted, seen))));
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
                           Shown(differences)));
}

Status ModelRun::Restore(const Command& command) {
  TRY(EndStep());
  size_t first = stack_.size();
  while (first > floor_ && stack_[first - 1].edited.empty()) --first;
  if (first == stack_.size()) return Ok();
  actor_->CloseWriters();
  const size_t index = first + command.other % (stack_.size() - first);
  const TreeSnapshot wanted = stack_[index].before;
  std::vector<std::string> changed;
  for (const std::string& path : AllPaths(wanted, current_)) {
    if (!path.empty() && !SameEntry(wanted.Find(path), current_.Find(path)))
      changed.push_back(path);
  }
  if (changed.empty()) return Ok();
  const std::string path = changed[command.path % changed.size()];
  const EntrySnapshot* parent = current_.Find(ParentOf(path));
  if (parent == nullptr || !S_ISDIR(parent->mode)) return Ok();
  trace_.Add(fmt::format("restore {} to before step {}", Printable(path), stack_[index].id.value));
  TRY_ASSIGN(Inodes inodes, LookAtInodes());
  Result<RewindReport> report = log_->Restore(stack_[index].id, std::vector<std::string>{path});
  if (!report.ok()) return report.error().WithContext("restore");
  TRY_ASSIGN(TreeSnapshot seen, Look());
  ++counts_.checks;
  TRY(CheckRestored(wanted, seen, path));
  TRY_ASSIGN(StepId made, NewestClosed());
  if (made == stack_.back().id) {
    return Wrong("a restore left no step of its own");
  }
  Step step{.id = made, .before = current_};
  current_ = std::move(seen);
  TRY(FinishStep(step, inodes));
  stack_.push_back(std::move(step));
  ForgetRedo();
  Done(command);
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

// Edits a file that the newest step changed, so that rolling that step back would lose the edit.
Status ModelRun::ExternalEdit(const Command& command) {
  TRY(EndStep());
  if (stack_.size() <= floor_ || !stack_.back().edited.empty()) return Ok();
  actor_->CloseWriters();
  Step& newest = stack_.back();
  if (newest.changed.empty()) return Ok();
  const std::string path = newest.changed[command.path % newest.changed.size()];
  Dice dice(command.salt);
  TRY_ASSIGN(const char* how, EditFromOutside(workspace_.Path(path), dice));
  trace_.Add(fmt::format("external edit of {}: {}", Printable(path), how));
  if (dice.OneIn(2)) {
    trace_.Add("seen by a watcher");
    TRY(log_->NoteExternalModification(std::vector<std::string>{path}));
  }
  TRY_ASSIGN(current_, Look());
  newest.edited = path;
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
  size_t first = stack_.size();
  while (first > floor_ && stack_[first - 1].edited.empty()) --first;
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
  const auto rows = static_cast<uint32_t>(plan->steps.size());
  trace_.Add(fmt::format("redo all {}", rows));
  Result<RewindReport> redone = log_->Redo(rows);
  if (!redone.ok()) return redone.error().WithContext("redo of everything");
  return ExpectTree(at_the_end, "after redoing everything");
}

}  // namespace sandglass::model
