// What the projects of one session must be to each other.
#pragma once

#include "base/result.h"
#include "session/session.h"

namespace sandglass::session {

// kInvalid: too few or too many, two of them overlap, or the store of one lies in another, where commands could reach it.
Status CheckProjects(const SessionOptions& options);

}  // namespace sandglass::session
