#include "undo/types.h"

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
