#include "session/step_keeper.h"

#include <algorithm>
#include <utility>

namespace sandglass::session {

StepId StepKeeper::NextId() const {
  StepId next{1};
  for (const ProjectLog& project : parts_.logs) next = std::max(next, project.log->next_step_id());
  return next;
}

Status StepKeeper::Open(StepId id, const std::string& label, undo::IfUnchanged if_unchanged) {
  id_ = id;
  for (ProjectLog& project : parts_.logs) {
    auto announced = project.log->AnnounceStep({.label = label, .id = id}, if_unchanged);
    if (!announced.ok()) return announced.error();
    project.has_step = true;
  }
  return Ok();
}

Result<std::vector<ProjectStep>> StepKeeper::Close() {
  if (parts_.processes.empty()) parts_.supervisor->ForgetWriters();
  std::vector<ProjectStep> steps;
  Status all;
  for (size_t i = 0; i < parts_.logs.size(); ++i) {
    if (!std::exchange(parts_.logs[i].has_step, false)) continue;
    auto step = CloseIn(i);
    if (step.ok())
      steps.push_back(std::move(*step));
    else if (all.ok())
      all = step.error();
  }
  if (!all.ok()) return all.error();
  return steps;
}

Result<ProjectStep> StepKeeper::CloseIn(size_t project) {
  undo::UndoLog& log = *parts_.logs[project].log;
  ProjectStep step{.project = parts_.logs[project].path, .changes = {}};
  TRY(log.CloseStep());
  auto changes = log.Changes(id_);
  if (changes.ok()) step.changes = std::move(*changes);
  // Without a change it may have left no trace.
  if (!changes.ok() && changes.error().code() != Code::kNotFound) return changes.error();
  return step;
}

bool StepKeeper::has_step() const {
  return std::ranges::any_of(parts_.logs, &ProjectLog::has_step);
}

bool StepKeeper::has_begun() const {
  return std::ranges::any_of(parts_.logs, [](const ProjectLog& project) {
    return project.has_step && project.log->open_step().has_value();
  });
}

}  // namespace sandglass::session
