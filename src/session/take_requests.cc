#include "session/take_requests.h"

#include <utility>
#include <variant>

#include "session/held_steps.h"

namespace sandglass::session {
namespace {

// Whoever reaches the socket is outside of every world: stores are hidden there.
HeldAnswer AnswerHeld(Session::Parts& parts, const HeldRequest& request) {
  HeldAnswer answer;
  if (!request.id.empty()) {
    const bool allow = request.decision == undo::Decision::kAllow;
    parts.log.Info("answered from outside", {{"safeguard", request.id}, {"allow", allow}});
    const Status taken = AnswerQuestion(parts, request.id, request.decision);
    if (!taken.ok()) answer.error = taken.error();
  }
  answer.held = HeldOperations(parts);
  return answer;
}

}  // namespace

void TakeRequests(Session::Parts& parts, Rewinds& rewinds) {
  for (auto& [id, request] : parts.server->Work()) {
    if (const auto* held = std::get_if<HeldRequest>(&request)) {
      parts.server->Answer(id, Encode(AnswerHeld(parts, *held)));
      continue;
    }
    rewinds.Ask(
        std::move(std::get<RewindRequest>(request)),
        [&parts, id](const RewindAnswer& answer) { parts.server->Answer(id, Encode(answer)); },
        [&parts, id](const undo::RewindProgress& at) { parts.server->Tell(id, at); });
  }
  rewinds.Work();
}

}  // namespace sandglass::session
