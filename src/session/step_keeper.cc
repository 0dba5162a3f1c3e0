#include "session/step_keeper.h"

#include <utility>

#include "session/standstill.h"

namespace sandglass::session {

Result<StepId> StepKeeper::NextId() const { return parts_.NextStep(); }

Status StepKeeper::Open(StepId id, const std::string& label, undo::IfUnchanged if_unchanged) {
  id_ = id;
  label_ = label;
  has_step_ = true;  // an announcement that fails may have reached some of the projects
  const Standstill still(parts_);
  TRY(parts_.bridge->Announce(id, label, if_unchanged));
  if (!parts_.processes.empty()) TRY(parts_.bridge->AwaitSent());
  parts_.log.WithStep(id).Info("step opened", {{"label", label}});
  return Ok();
}

Result<std::vector<std::string>> StepKeeper::Close(EmptyEntry empty_entry) {
  changed_ = true;
  protection_ = undo::Protection::kFull;
  if (!std::exchange(has_step_, false)) return std::vector<std::string>();
  const Standstill still(parts_);
  auto closed = parts_.bridge->CloseStep(empty_entry);
  const Logger log = parts_.log.WithStep(id_);
  if (!closed.ok()) {
    has_step_ = closed.error().code() == Code::kBusy;
    log.Error("step not closed", {{"error", closed.error().message()}});
    return closed.error();
  }
  log.Info("step closed");
  changed_ = closed->changed;
  protection_ = closed->unprotected ? undo::Protection::kUnprotected : undo::Protection::kFull;
  return std::move(closed->notices);
}

Result<std::vector<ProjectStep>> StepKeeper::Changes() const {
  std::vector<ProjectStep> steps;
  for (const undo::UndoPaths& paths : parts_.writable) {
    if (!changed_) {
      steps.push_back({paths.project, {}});
      continue;
    }
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
