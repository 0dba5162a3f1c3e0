// What a staged change would do to a file, as text for people and `patch`. Free function; one thread.
#pragma once

#include <string>

#include "base/result.h"
#include "session/stage_scan.h"

namespace sandglass::session {

// "": there is nothing to tell but what the change says itself, as of folders and of files that are too large to compare.
Result<std::string> DiffOf(const Stage& stage, const StagedChange& change);

}  // namespace sandglass::session
