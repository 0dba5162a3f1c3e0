#include "tests/model/model_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tests/model/planted_project.h"
#include "tests/model/tree_checks.h"
#include "tests/model/verdict.h"
#include "tests/support/tree_walk.h"

namespace sandglass::model {

using test::EntrySnapshot;
using test::TreeSnapshot;
using undo::RewindReport;

namespace {

undo::UndoOptions OptionsFor(const Sequence& sequence) {
  undo::UndoOptions options;
  options.compression =
      sequence.salt % 2 == 0 ? undo::Compression::kBackground : undo::Compression::kOff;
  return options;
}

}  // namespace

ModelRun::ModelRun(const test::TempWorkspace& workspace, Counts& counts, const Sequence& sequence)
    : workspace_(workspace), counts_(counts), sequence_(sequence), elsewhere_(sequence) {}

StoreElsewhere::StoreElsewhere(const Sequence& sequence) {
  constexpr uint32_t kOneOf = 8;
  std::string pattern = "/dev/shm/sandglass-model-XXXXXX";
  if (sequence.salt % kOneOf != kOneOf - 1) return;
  CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

StoreElsewhere::~StoreElsewhere() {
  if (!path_.empty()) (void)test::RemoveTree(path_);
}

Status ModelRun::OpenLog() {
  const std::string& store = elsewhere_.path().empty() ? workspace_.store() : elsewhere_.path();
  TRY_ASSIGN(log_, undo::UndoLog::Open({workspace_.project(), store}, OptionsFor(sequence_)));
  actor_.emplace(*log_, workspace_.project(), sequence_.directories, trace_);
  return Ok();
}

Status ModelRun::Run() {
  PlantProject(workspace_.project(), sequence_.salt);
  TRY(OpenLog());
  TRY_ASSIGN(current_, Look());
  for (const Command& command : sequence_.commands) {
    if (operations_ >= sequence_.operations_wanted() && steps_ >= 3) break;
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
  if (operations_in_step_ >= sequence_.most_per_step) TRY(EndStep());
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
  TreeSnapshot before = current_;
  TRY(Act(
      {.op = Op::kWriteKept, .path = command.path, .other = command.other, .salt = command.salt}));
  TRY_ASSIGN(current_, Look());
  TRY(BeginStep());
  TRY_ASSIGN(StepId newest, NewestClosed());
  if (newest == stack_[stack_.size() - 2].id) {
    return test::Diff(before, current_).empty() ? Ok()
                                                : Wrong("writes between steps are in no step");
  }
  trace_.Add(fmt::format("they are ambient step {}", newest.value));
  Step between{.id = newest, .before = std::move(before)};
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
  TRY(FinishStep(stack_.back(), inodes_));
  return ExpectCounted(stack_.back());
}

// A step that changed something says so: one without changes does not count when steps are taken back. Times of folders are no changes.
Status ModelRun::ExpectCounted(const Step& step) const {
  std::string changed;
  for (const std::string& path : AllPaths(step.before, step.after)) {
    const EntrySnapshot *was = step.before.Find(path), *is = step.after.Find(path);
    const bool folders = was != nullptr && is != nullptr && S_ISDIR(was->mode) && S_ISDIR(is->mode);
    if (SameEntry(was, is) || (folders && SameAttributes(*was, *is))) continue;
    changed = path;
  }
  if (changed.empty()) return Ok();
  TRY_ASSIGN(const auto history, log_->History());
  for (const undo::HistoryEntry& entry : history) {
    if (entry.step && entry.step->id == step.id && entry.step->counts.total() == 0)
      return Wrong(fmt::format("step {} changed {} and says that it changed nothing", step.id.value,
                               test::Printable(changed)));
  }
  return Ok();
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
    const bool file = S_ISREG(entry.mode) && entry.link_group < 0;
    if (!file && !S_ISDIR(entry.mode)) continue;
    const ino_t inode = now.at(entry.path);
    const auto was = before.find(entry.path);
    const bool in_place = was != before.end() && was->second == inode;
    if (!file) {
      const EntrySnapshot* old = in_place ? step.before.Find(entry.path) : nullptr;
      const bool changed = old == nullptr ? !known.contains(inode) : !SameAttributes(*old, entry);
      if (changed && !entry.path.empty()) step.folders.push_back(entry.path);
      if (!changed && old != nullptr && old->mtime != entry.mtime)
        step.named_folders.push_back(entry.path);
      continue;
    }
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
    return Wrong(fmt::format("{} (wanted -> seen):\n    {}", when, Listed(differences)));
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

size_t ModelRun::FirstUnspoiled() const {
  size_t first = stack_.size();
  while (first > floor_ && stack_[first - 1].edited.empty()) --first;
  return first;
}

}  // namespace sandglass::model
