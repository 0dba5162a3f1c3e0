#include "control/step_boundaries.h"

#include <algorithm>
#include <utility>

#include "base/result.h"

namespace sandglass::control {

StepBoundaries::StepBoundaries(const Clock& clock, BoundaryTimes times, StepId first_ambient)
    : clock_(clock), times_(times), next_ambient_(first_ambient) {
  CHECK(first_ambient.value < 0);
}

void StepBoundaries::OpenStep(StepId id) {
  const Instant now = clock_.Now();
  open_ = Open{.id = id, .opened = now, .last_activity = now};
  changes_.push_back({.id = id, .edge = StepEdge::kOpened});
}

void StepBoundaries::Close(CloseCause cause) {
  changes_.push_back({.id = open_->id, .edge = StepEdge::kClosed, .cause = cause});
  open_.reset();
}

StepId StepBoundaries::CommandBegins(StepId command) {
  CHECK(command.value > 0);
  Tick();
  if (open_ && (open_->ambient() || open_->waiting_since)) Close(CloseCause::kNextCommand);
  if (!open_) OpenStep(command);
  open_->commands.emplace(command, Member{});
  return open_->id;
}

void StepBoundaries::CommandEnds(StepId command) {
  if (!open_ || !open_->commands.contains(command)) return;
  open_->commands[command].running = false;
  const auto running = [](const auto& entry) { return entry.second.running; };
  if (!open_->waiting_since && std::ranges::none_of(open_->commands, running)) {
    open_->waiting_since = clock_.Now();
  }
  CloseIfDue();
}

void StepBoundaries::SetProcesses(StepId command, Processes processes) {
  if (!open_ || !open_->commands.contains(command)) return;
  open_->commands[command].processes = processes;
  CloseIfDue();
}

StepId StepBoundaries::OperationBegins() {
  // The window may have passed before anyone called Tick; what comes now is late.
  CloseIfDue();
  if (!open_) {
    OpenStep(next_ambient_);
    --next_ambient_.value;
  }
  ++open_->in_flight;
  open_->last_activity = clock_.Now();
  return open_->id;
}

void StepBoundaries::OperationEnds(StepId step) {
  // It may have outlived its step.
  if (!open_ || open_->id != step || open_->in_flight == 0) return;
  --open_->in_flight;
  open_->last_activity = clock_.Now();
  CloseIfDue();
}

void StepBoundaries::Hold(StepId step) {
  if (open_ && open_->id == step) ++open_->held;
}

void StepBoundaries::LetGo(StepId step) {
  if (!open_ || open_->id != step || open_->held == 0 || --open_->held > 0) return;
  open_->last_activity = clock_.Now();
  if (open_->waiting_since) open_->waiting_since = clock_.Now();
  CloseIfDue();
}

void StepBoundaries::Tick() { CloseIfDue(); }

bool StepBoundaries::Resting() const {
  const auto gone = [](const auto& entry) { return entry.second.processes == Processes::kGone; };
  return open_->waiting_since && open_->in_flight == 0 &&
         std::ranges::all_of(open_->commands, gone);
}

// Meaningful while nothing is in flight.
Instant StepBoundaries::QuietAt() const {
  if (open_->ambient()) return open_->last_activity + times_.ambient_idle;
  return std::max(open_->last_activity, *open_->waiting_since) + times_.idle;
}

std::optional<Instant> StepBoundaries::LatestEnd() const {
  if (open_->ambient()) return open_->opened + times_.ambient_longest;
  if (!open_->waiting_since) return std::nullopt;
  return *open_->waiting_since + times_.longest_wait;
}

std::optional<Instant> StepBoundaries::Deadline() const {
  if (!open_ || open_->held > 0) return std::nullopt;
  const auto latest = LatestEnd();
  if (!latest || open_->in_flight > 0) return latest;
  return std::min(*latest, QuietAt());
}

void StepBoundaries::CloseIfDue() {
  if (!open_ || open_->held > 0) return;
  if (Resting()) return Close(CloseCause::kQuiet);
  const auto due = Deadline();
  if (!due || clock_.Now() < *due) return;
  const bool quiet = open_->in_flight == 0 && QuietAt() <= clock_.Now();
  Close(quiet ? CloseCause::kQuiet : CloseCause::kLongestWait);
}

std::optional<StepId> StepBoundaries::open_step() const {
  return open_ ? std::optional(open_->id) : std::nullopt;
}

std::vector<StepChange> StepBoundaries::TakeChanges() { return std::exchange(changes_, {}); }

}  // namespace sandglass::control
