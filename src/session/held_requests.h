// HeldRequest: what `approve` asks of a running session: which operations of commands are held by a safeguard, or to let one of them
// happen or not. As messages on the session's socket: one line of JSON each; docs/session.md describes them.
//
// Decoding is pure: what a decoder returns is within all limits below. Value types; any thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "session/rewind_request.h"
#include "undo/types.h"

namespace sandglass::session {

inline constexpr size_t kMaxHeldIdBytes = 64;

// An operation that waits for somebody to allow it. Its name is the same for everybody who may answer.
struct HeldOperation {
  std::string id;  // "sg_007"
  undo::SafeguardQuestion question;
  std::chrono::milliseconds left{};  // then it is denied
};

struct HeldRequest {
  std::string id = {};                              // "": all are to be listed
  undo::Decision decision = undo::Decision::kDeny;  // of an id
  friend bool operator==(const HeldRequest&, const HeldRequest&) = default;
};

// What is held now; of an answer that was taken, without that one.
struct HeldAnswer {
  std::vector<HeldOperation> held;
  std::optional<Error> error;  // kNotFound: nobody waits for that answer (any more)
};

// Its question, "id" and "left_ms".
Json ToJson(const HeldOperation& held);
std::string Encode(const HeldRequest& request);
std::string Encode(const HeldAnswer& answer);
// kInvalid, kLimit: it is none.
Result<HeldAnswer> DecodeHeldAnswer(std::string_view line);

// Whatever may be asked on the socket.
using SessionRequest = std::variant<RewindRequest, HeldRequest>;
// kLimit: the line or a value in it is too long or too large. kInvalid: no request.
Result<SessionRequest> DecodeSessionRequest(std::string_view line);

}  // namespace sandglass::session
