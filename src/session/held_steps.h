// Held steps: what the session does about questions of its bridge: hands them to whoever shares the loop, and carries the answers back.
// No answer in time is a denial, and so is the end of whoever waits for it. Before a denial takes effect all processes of commands are
// ended, with the world if there is no other way. Free functions on a session's parts; one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "session/held_requests.h"
#include "session/parts.h"

namespace sandglass::session {

// Takes questions that came, and denies those whose time is over.
Status WorkOnQuestions(Session::Parts& parts);
std::optional<Instant> QuestionDeadline(const Session::Parts& parts);
std::vector<HeldOperation> HeldOperations(const Session::Parts& parts);
// kNotFound: nobody waits for that answer (any more).
Status AnswerQuestion(Session::Parts& parts, const std::string& id, undo::Decision decision);

// Denies at once what somebody would have to answer who cannot any more. Before the session waits for the bridge, which waits for those
// who asked.
void DenyQuestionsOfStep(Session::Parts& parts, StepId step);
void DenyQuestionsOfCommand(Session::Parts& parts, StepId command);
void DenyAllQuestions(Session::Parts& parts);

}  // namespace sandglass::session
