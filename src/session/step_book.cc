#include "session/step_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace sandglass::session {
namespace {

// While one command follows the other at once, entries are put off no longer than this: others read the history beside us.
constexpr std::chrono::milliseconds kLongest{1'000};
constexpr size_t kMost = 256;

Status CloseIn(undo::UndoLog& log) {
  auto closed = log.CloseStep();
  return closed.ok() ? Ok() : Status(closed.error());
}

// Where it was denied, it is taken back already.
Status TakeBack(undo::UndoLog& log) {
  if (log.open_step()) {
    auto aborted = log.AbortStep();
    return aborted.ok() ? Ok() : Status(aborted.error());
  }
  const Status closed = CloseIn(log);
  const bool gone = !closed.ok() && (closed.error().code() == Code::kNotFound ||
                                     closed.error().code() == Code::kDenied);
  return gone ? Ok() : closed;
}

}  // namespace

void StepBook::Add(undo::UndoLog& log, const std::string& store) {
  MutexLock lock(mutex_);
  projects_.push_back({&log, EmptySteps(store, log, clock_)});
}

Status StepBook::Announce(const session::Announce& ask) {
  MutexLock lock(mutex_);
  const bool recorded = ask.if_unchanged == undo::IfUnchanged::kRecorded;
  if (std::ranges::any_of(projects_, &Project::has_step))
    return Error(Code::kBusy, fmt::format("step {} has not ended", announced_.step.value));
  if (put_off_ > 0 && !recorded) TRY(EnterLocked());
  announced_ = ask;
  if (put_off_ == 0) return AnnounceInLogs();
  held_ = true;
  unsettled_ = true;
  return Ok();
}

// Until that has worked in all of them, calls that could change something fail; it may be tried again.
Status StepBook::AnnounceInLogs() {
  const LogActivity::Busy busy(activity_);
  held_ = true;
  unsettled_ = true;
  for (Project& project : projects_) {
    if (project.has_step) continue;
    auto announced = project.log->AnnounceStep({.label = announced_.label, .id = announced_.step},
                                               announced_.if_unchanged);
    if (!announced.ok()) return announced.error();
    project.has_step = true;
  }
  held_ = false;
  unsettled_ = false;
  return Ok();
}

Status StepBook::BeforeCall() {
  if (!unsettled_) return Ok();
  MutexLock lock(mutex_);
  return unsettled_ ? EnterLocked() : Ok();
}

void StepBook::EnterAll() {
  MutexLock lock(mutex_);
  if (put_off_ > 0) (void)EnterLocked();
}

// An error: the step that was held still is.
Status StepBook::EnterLocked() {
  const LogActivity::Busy busy(activity_);
  put_off_ = 0;
  for (Project& project : projects_) {
    if (const Status entered = project.empty.Enter(); !entered.ok())
      notices_.Add(entered.error().message());
  }
  if (held_) return AnnounceInLogs();
  unsettled_ = false;
  return Ok();
}

Result<bool> StepBook::Close(EmptyEntry empty_entry, Left left, Ending ending) {
  MutexLock lock(mutex_);
  const bool later =
      empty_entry == EmptyEntry::kLater && left == Left::kNone && ending == Ending::kKept;
  if (later && (held_ || IsEmptyForSure())) {
    PutOff();
    return false;
  }
  if (held_) TRY(EnterLocked());
  const bool changed = MayHaveChanged();
  TRY(CloseInLogs(ending));
  return changed;
}

void StepBook::PutOff() {
  const LogActivity::Busy busy(activity_);
  held_ = false;
  for (Project& project : projects_) {
    // Forgets it: nobody is left who could have begun it, so there is nothing to take back.
    if (std::exchange(project.has_step, false)) (void)project.log->AbortStep();
    project.empty.PutOff({announced_.step, announced_.label, clock_.Now()});
  }
  last_put_off_ = announced_.step;
  unsettled_ = true;
  if (put_off_++ == 0) put_off_since_ = steady_clock_.Now();
}

// In all projects, whatever fails in one of them; the first failure is told.
Status StepBook::CloseInLogs(Ending ending) {
  const LogActivity::Busy busy(activity_);
  Status all;
  for (Project& project : projects_) {
    if (!std::exchange(project.has_step, false)) continue;
    Status closed = ending == Ending::kKept ? CloseIn(*project.log) : TakeBack(*project.log);
    if (!closed.ok() && all.ok()) all = std::move(closed);
  }
  return all;
}

std::optional<Instant> StepBook::EnterBy() const {
  MutexLock lock(mutex_);
  if (put_off_ == 0) return std::nullopt;
  return put_off_ < kMost ? put_off_since_ + kLongest : Instant{};
}

bool StepBook::Begun() const {
  return std::ranges::any_of(projects_, [](const Project& project) {
    return project.has_step && project.log->open_step().has_value();
  });
}

bool StepBook::HasBegun() const {
  MutexLock lock(mutex_);
  return Begun();
}

// What processes wrote to files that they had open before is seen when it closes.
bool StepBook::MayHaveChanged() const {
  return Begun() || std::ranges::any_of(projects_, [](const Project& project) {
           return project.has_step && project.log->has_shadows();
         });
}

// It has not begun, and it will have its entry, so that its id is used.
bool StepBook::IsEmptyForSure() const {
  const bool recorded = announced_.if_unchanged == undo::IfUnchanged::kRecorded;
  return recorded && !MayHaveChanged() &&
         std::ranges::all_of(projects_, [](const Project& project) {
           return project.has_step && !project.log->open_step() && project.log->redo_depth() == 0;
         });
}

StepId StepBook::NextId() const {
  MutexLock lock(mutex_);
  StepId next{last_put_off_.value + 1};
  if (held_) next.value = std::max(next.value, announced_.step.value + 1);
  for (const Project& project : projects_) next = std::max(next, project.log->next_step_id());
  return next;
}

}  // namespace sandglass::session
