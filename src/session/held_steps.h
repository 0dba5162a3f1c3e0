// Held steps: what the session does about questions of its bridge: hands them to whoever shares the loop, and carries the answers back.
// No answer in time is a denial. Before a denial takes effect all processes of commands are ended. Free functions on a session's parts;
// one thread.
#pragma once

#include <optional>

#include "session/parts.h"

namespace sandglass::session {

// Takes questions that came, and denies those whose time is over.
Status WorkOnQuestions(Session::Parts& parts);
std::optional<Instant> QuestionDeadline(const Session::Parts& parts);
// kNotFound: nobody waits for that answer (any more).
Status AnswerQuestion(Session::Parts& parts, const SafeguardKey& key, undo::Decision decision);

}  // namespace sandglass::session
