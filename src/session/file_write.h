// Putting content in the place of one file, as a step of its own that undo takes back like any other. How the file is written says
// files/replace_file.h; the step is closed if that worked, and else everything is taken back. For the owner of the log; blocks.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "session/bridge_messages.h"
#include "undo/undo_log.h"

namespace sandglass::session {

// Errors as files::WriteWholeFile. After one everything is as it was, and there is no step.
Status WriteFileAsStep(undo::UndoLog& log, const WriteRequest& request, const Fd& content);

}  // namespace sandglass::session
