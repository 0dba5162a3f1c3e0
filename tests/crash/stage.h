// Stage: what a scenario is played on: a project, its log, the operations, and the harness that watches.
//
// Every method that ends in a state in which no step is open says so to the harness. When an operation is refused (a full disk, say)
// the stage ends the step as it was told to and returns the error, which ends the scenario. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tests/crash/fixture.h"
#include "tests/crash/marker_port.h"
#include "tests/crash/trial.h"
#include "tests/support/project_ops.h"
#include "undo/undo_log.h"

namespace sandglass::crash {

using testing::ProjectOps;

// A step's worth of changes.
using Work = std::function<Status(ProjectOps& ops, const Means& means)>;

class Stage : private undo::UndoObserver {
 public:
  Stage(undo::UndoPaths paths, undo::UndoOptions options, OnRefusal on_refusal);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Opens the log, which recovers it, and reports the state.
  Status Open();
  undo::UndoLog& log() { return *log_; }
  ProjectOps& ops() { return *ops_; }
  const Means& means() const { return means_; }
  const undo::UndoPaths& paths() const { return paths_; }

  // Opens step `id`, does the work, closes the step.
  Status Step(int64_t id, const Work& work);
  // Its parts, for scenarios that do something else in between.
  Status OpenStep(int64_t id);
  Status Do(const Work& work);
  Status CloseStep(std::span<const undo::ObjectRef> live_writers = {});
  Status AbortStep();

  Status Rollback(uint32_t count);
  // At least one, in the order in which they come back.
  Status Redo(std::span<const int64_t> steps);
  Status Restore(int64_t step, const std::vector<std::string>& paths);

  // No step is open: the tree belongs to the history.
  Status SayState();
  void Say(std::string_view marker) { port_.Say(marker); }
  // Ends the open step, if any, and passes `error` on.
  Error Refuse(const Error& error);

 private:
  void OnUnprotected(StepId, std::string_view why) override { unprotected_ = why; }
  template <class T>
  Status Settle(const Result<T>& result);

  const undo::UndoPaths paths_;
  undo::UndoOptions options_;
  const OnRefusal on_refusal_;
  MarkerPort port_;
  Means means_;
  std::string unprotected_;  // why the log gave up protecting something
  std::unique_ptr<undo::UndoLog> log_;
  std::unique_ptr<ProjectOps> ops_;
};

// The ids of the steps in a log, oldest first.
Result<History> HistoryOf(const undo::UndoLog& log);

// Nothing that depends on time: no heartbeat, no background work.
undo::UndoOptions CalmOptions();

}  // namespace sandglass::crash
