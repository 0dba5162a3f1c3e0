// Opening a log that somebody else may be about to leave.
#pragma once

#include <memory>

#include "base/result.h"
#include "undo/undo_log.h"

namespace sandglass::session {

// UndoLog::Open. Of a session that was killed, the bridge process lives a moment longer: a store that is locked, but where no session
// listens, is waited for a short while.
Result<std::unique_ptr<undo::UndoLog>> OpenLogSoon(const undo::UndoPaths& paths,
                                                   const undo::UndoOptions& options);

// UndoLog::Discard, as soon. What a session left beside the log when it was killed goes first, its world above all: without the log,
// nothing would tell a store that holds its socket and its note from any other folder.
Status DiscardLogSoon(const undo::UndoPaths& paths);

}  // namespace sandglass::session
