#include "tests/crash/stage.h"

#include <fmt/format.h>

#include <utility>

namespace sandglass::crash {

using undo::UndoLog;

undo::UndoOptions CalmOptions() {
  undo::UndoOptions options;
  options.heartbeat = std::chrono::milliseconds(0);
  options.compression = undo::Compression::kOff;
  return options;
}

Result<History> HistoryOf(const UndoLog& log) {
  TRY_ASSIGN(const std::vector<undo::HistoryEntry> entries, log.History());
  History history;
  for (const undo::HistoryEntry& entry : entries) {
    if (entry.step) history.push_back(entry.step->id.value);
  }
  return history;
}

Stage::Stage(undo::UndoPaths paths, undo::UndoOptions options, OnRefusal on_refusal)
    : paths_(std::move(paths)), options_(options), on_refusal_(on_refusal) {
  options_.observer = this;
}

Status Stage::Open() {
  Result<std::unique_ptr<UndoLog>> opened = UndoLog::Open(paths_, options_);
  if (!opened.ok()) return Refuse(opened.error());
  log_ = std::move(opened).value();
  const std::vector<undo::Conflict>& conflicts = log_->recovery().rewind.conflicts;
  if (!conflicts.empty()) {
    return Refuse({Code::kIo, fmt::format("recovery could not bring back {}: {}", conflicts[0].path,
                                          conflicts[0].detail)});
  }
  ops_ = std::make_unique<ProjectOps>(*log_, paths_.project);
  means_ = FindMeans(paths_.project);
  return SayState();
}

Status Stage::SayState() {
  TRY_ASSIGN(const History history, HistoryOf(*log_));
  port_.Say("state " + HistoryText(history));
  return Ok();
}

Error Stage::Refuse(const Error& error) {
  port_.Say("refused " + error.ToString());
  if (log_ == nullptr || !log_->open_step()) return error;
  if (on_refusal_ == OnRefusal::kAbort) {
    if (log_->AbortStep().ok()) static_cast<void>(SayState());
    return error;
  }
  port_.Say(fmt::format("closing {}", log_->open_step()->value));
  if (log_->CloseStep().ok()) static_cast<void>(SayState());
  return error;
}

// The end of a call after which no step is open. To go on without protection would prove nothing, so that ends the scenario.
template <class T>
Status Stage::Settle(const Result<T>& result) {
  if (!result.ok()) return Refuse(result.error());
  TRY(SayState());
  if (unprotected_.empty()) return Ok();
  return Refuse({Code::kUnprotected, unprotected_});
}

Status Stage::OpenStep(int64_t id) {
  const Result<StepId> opened =
      log_->OpenStep({.label = fmt::format("step {}", id), .id = StepId{id}});
  if (!opened.ok()) return Refuse(opened.error());
  return Ok();
}

Status Stage::Do(const Work& work) {
  const Status done = work(*ops_, means_);
  if (!done.ok()) return Refuse(done.error());
  return Ok();
}

Status Stage::CloseStep(std::span<const undo::ObjectRef> live_writers) {
  if (const std::optional<StepId> id = log_->open_step()) {
    port_.Say(fmt::format("closing {}", id->value));
  }
  return Settle(log_->CloseStep(live_writers));
}

Status Stage::AbortStep() { return Settle(log_->AbortStep()); }

Status Stage::Step(int64_t id, const Work& work) {
  TRY(OpenStep(id));
  TRY(Do(work));
  return CloseStep();
}

// Each step is taken back as a whole, but the steps of one rollback one by one.
Status Stage::Rollback(uint32_t count) {
  TRY_ASSIGN(History history, HistoryOf(*log_));
  for (uint32_t i = 1; i < count && !history.empty(); ++i) {
    history.pop_back();
    port_.Say("between " + HistoryText(history));
  }
  return Settle(log_->Rollback(count));
}

Status Stage::Redo(std::span<const int64_t> steps) {
  TRY_ASSIGN(History history, HistoryOf(*log_));
  for (const int64_t id : steps.first(steps.size() - 1)) {
    history.push_back(id);
    port_.Say("between " + HistoryText(history));
  }
  return Settle(log_->Redo(static_cast<uint32_t>(steps.size())));
}

Status Stage::Restore(int64_t step, const std::vector<std::string>& paths) {
  return Settle(log_->Restore(StepId{step}, paths));
}

}  // namespace sandglass::crash
