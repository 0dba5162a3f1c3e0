#include "undo/types.h"

#include <fmt/format.h>

#include <algorithm>

namespace sandglass::undo {

std::string_view KindName(StepKind kind) {
  switch (kind) {
    case StepKind::kCommand:
      return "command";
    case StepKind::kApi:
      return "api";
    case StepKind::kAmbient:
      return "ambient";
  }
  return "unknown";
}

std::string_view ChangeName(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kCreated:
      return "created";
    case ChangeKind::kModified:
      return "modified";
    case ChangeKind::kDeleted:
      return "deleted";
    case ChangeKind::kRenamed:
      return "renamed";
  }
  return "unknown";
}

std::string_view ConflictName(ConflictKind kind) {
  switch (kind) {
    case ConflictKind::kEdited:
      return "edited";
    case ConflictKind::kReplaced:
      return "replaced";
    case ConflictKind::kMissing:
      return "missing";
    case ConflictKind::kOccupied:
      return "occupied";
    case ConflictKind::kBarrier:
      return "barrier";
    case ConflictKind::kCorrupt:
      return "corrupt";
    case ConflictKind::kBusy:
      return "busy";
  }
  return "unknown";
}

std::string ConflictText(const Conflict& conflict) {
  std::string what = conflict.path.empty() ? "(the project folder)" : conflict.path;
  if (conflict.step) what = fmt::format("step {}", conflict.step->value);
  const std::string detail = conflict.detail.empty() ? "" : ": " + conflict.detail;
  return fmt::format("{:<9} {}{}", ConflictName(conflict.kind), what, detail);
}

Code RefusalCode(const std::vector<Conflict>& conflicts) {
  const auto has = [&](ConflictKind kind) {
    return std::any_of(conflicts.begin(), conflicts.end(),
                       [&](const Conflict& c) { return c.kind == kind; });
  };
  if (has(ConflictKind::kCorrupt)) return Code::kCorrupt;
  if (has(ConflictKind::kBusy)) return Code::kBusy;
  return Code::kConflict;
}

Error Refusal(std::string_view head, const std::vector<Conflict>& conflicts) {
  constexpr size_t kShown = 10;
  std::string text = fmt::format("{}:", head);
  for (size_t i = 0; i < conflicts.size() && i < kShown; ++i)
    text += fmt::format("\n  {}", ConflictText(conflicts[i]));
  if (conflicts.size() > kShown) text += fmt::format("\n  and {} more", conflicts.size() - kShown);
  return Error(RefusalCode(conflicts), std::move(text));
}

std::string_view SafeguardName(SafeguardKind kind) {
  switch (kind) {
    case SafeguardKind::kDeleteCount:
      return "delete_count";
    case SafeguardKind::kOverwriteLarge:
      return "overwrite_large";
    case SafeguardKind::kTruncateLarge:
      return "truncate_large";
    case SafeguardKind::kRenameOver:
      return "rename_over";
    case SafeguardKind::kUndoLimit:
      return "undo_limit";
  }
  return "unknown";
}

}  // namespace sandglass::undo
