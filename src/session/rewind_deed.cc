// Carrying a rewind request out; what it says is read and written in rewind_request.cc.
#include <utility>

#include "session/rewind_request.h"
#include "undo/undo_log.h"

namespace sandglass::session {
namespace {

Result<undo::RewindReport> Do(undo::UndoLog& log, const RewindRequest& request) {
  const bool planned = request.deed == Deed::kPlanned;
  switch (request.kind) {
    case RewindKind::kUndo:
      return planned ? log.PlanRollback(request.count) : log.Rollback(request.count, request.force);
    case RewindKind::kRedo:
      return planned ? log.PlanRedo(request.count) : log.Redo(request.count, request.force);
    case RewindKind::kRestore:
      break;
  }
  return planned ? log.PlanRestore(request.step, request.paths)
                 : log.Restore(request.step, request.paths, request.force);
}

}  // namespace

RewindAnswer Perform(undo::UndoLog& log, const RewindRequest& request) {
  auto report = Do(log, request);
  if (report.ok()) {
    RewindAnswer answer;
    answer.report = std::move(*report);
    return answer;
  }
  RewindAnswer answer = Refused(report.error());
  RewindRequest look = request;
  look.deed = Deed::kPlanned;
  if (auto plan = Do(log, look); plan.ok()) answer.conflicts = std::move(plan->conflicts);
  return answer;
}

}  // namespace sandglass::session
