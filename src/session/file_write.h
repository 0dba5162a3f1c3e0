// Putting content in the place of one file, through the interceptor, as a step of its own that undo takes back like any other.
//
// The file is made beside its place and moved there by one rename: whoever reads sees the old content or the new one, never a part. It
// keeps mode, owner and attributes of what was there; other hard links of that keep the old content. For the owner of the log; blocks.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "session/bridge_messages.h"
#include "undo/undo_log.h"

namespace sandglass::session {

// kOutsideRoot: the path leads out, or a symlink is in the way. kInvalid: no file can have this path. kUnsupported: what is there is no
// regular file. After an error everything is as it was, and there is no step.
Status WriteFileAsStep(undo::UndoLog& log, const WriteRequest& request, const Fd& content);

}  // namespace sandglass::session
