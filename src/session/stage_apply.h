// Applying a stage: what a command did there is done to the real project, through the interceptor, so that it is one step which undo
// takes back like any other. A process that dies meanwhile leaves an interrupted step, which the next open of the log takes back.
// Free functions; one thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "session/stage_scan.h"
#include "undo/undo_log.h"

namespace sandglass::session {

struct StageRefusal {
  std::string path;
  std::string why;
};

struct AppliedStage {
  StepId step{0};
  std::vector<undo::Change> changes;    // as the step's record has them
  std::vector<StageRefusal> conflicts;  // what was left as somebody else made it
};

// `paths`: those of the changes that are wanted; folders around them that are new come along. On failure everything is taken back.
Result<AppliedStage> ApplyStage(const Stage& stage, const std::set<std::string>& paths,
                                undo::UndoLog& log, const undo::StepSpec& step);

}  // namespace sandglass::session
