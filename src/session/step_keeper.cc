#include "session/step_keeper.h"

#include <utility>

namespace sandglass::session {

Result<StepId> StepKeeper::NextId() const {
  TRY_ASSIGN(const Position position, parts_.bridge->AskPosition());
  return position.next;
}

Status StepKeeper::Open(StepId id, const std::string& label, undo::IfUnchanged if_unchanged) {
  id_ = id;
  label_ = label;
  has_step_ = true;  // an announcement that fails may have reached some of the projects
  TRY(parts_.bridge->Announce(id, label, if_unchanged));
  parts_.log.WithStep(id).Info("step opened", {{"label", label}});
  return Ok();
}

Result<std::vector<std::string>> StepKeeper::Close() {
  if (!std::exchange(has_step_, false)) return std::vector<std::string>();
  auto warnings = parts_.bridge->CloseStep();
  const Logger log = parts_.log.WithStep(id_);
  if (warnings.ok())
    log.Info("step closed");
  else
    log.Error("step not closed", {{"error", warnings.error().message()}});
  return warnings;
}

Result<std::vector<ProjectStep>> StepKeeper::Changes() const {
  std::vector<ProjectStep> steps;
  for (const undo::UndoPaths& paths : parts_.writable) {
    TRY_ASSIGN(const undo::StoreReader reader, undo::StoreReader::Open(paths));
    auto changes = reader.Changes(id_);
    // Without a change it may have left no trace.
    if (!changes.ok() && changes.error().code() != Code::kNotFound) return changes.error();
    steps.push_back(
        {paths.project, changes.ok() ? std::move(*changes) : std::vector<undo::Change>()});
  }
  return steps;
}

// A bridge that does not answer ends the session soon.
bool StepKeeper::has_begun() const {
  const auto position = parts_.bridge->AskPosition();
  return position.ok() && position->begun;
}

}  // namespace sandglass::session
