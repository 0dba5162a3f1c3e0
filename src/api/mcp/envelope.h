// Envelope: what every request says about its client where there is no `initialize` (protocol 2026-07-28): members of its `_meta`.
// Decoding is pure and takes any JSON.
#pragma once

#include <optional>
#include <string_view>
#include <variant>

#include "api/http/message.h"
#include "api/mcp/messages.h"
#include "base/json.h"

namespace sandglass::api::mcp {

inline constexpr std::string_view kVersionKey = "io.modelcontextprotocol/protocolVersion";
inline constexpr std::string_view kClientKey = "io.modelcontextprotocol/clientInfo";
inline constexpr std::string_view kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
inline constexpr std::string_view kServerKey = "io.modelcontextprotocol/serverInfo";

struct Envelope {
  Json capabilities;
};

// A request that names its version is one of this kind, even if the rest is wrong.
bool HasEnvelope(const Json& params);
// -32602: it is not complete. -32022: the version is not spoken.
std::variant<Envelope, ProtocolError> ParseEnvelope(const Json& params);

// The headers by which HTTP repeats what such a request says. -32020: they are missing, or say something else.
std::optional<ProtocolError> FindHeaderMismatch(const http::Request& request,
                                                const Message& message);

}  // namespace sandglass::api::mcp
