// What other programs of the user ask of a running session on its socket, and where that goes. Free function on a session's parts; one
// thread.
#pragma once

#include "session/parts.h"
#include "session/rewinds.h"

namespace sandglass::session {

// Rewinds are handed on, and may be answered later; questions about what is held are answered here.
void TakeRequests(Session::Parts& parts, Rewinds& rewinds);

}  // namespace sandglass::session
