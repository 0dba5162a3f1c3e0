// What the protocol asks of the headers of HTTP requests. A web page in the user's browser can reach the server as well as any client,
// also under a name of its own that it lets point to this machine: so names and origins are checked before anything else. Pure
// functions on bytes from anywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/message.h"

namespace sandglass::api::mcp {

// "localhost", "127.0.0.1" or "[::1]", with or without a port.
bool IsLoopbackHost(std::string_view host);
// The same behind "http://" or "https://".
bool IsLoopbackOrigin(std::string_view origin);
// Takes as long whatever is wrong with the offered one.
bool IsSameSecret(std::string_view offered, std::string_view secret);
// "Bearer <token>".
bool HasToken(const http::Request& request, std::string_view token);
// Whether a list of media types, such as that of Accept, has this one; parameters do not matter.
bool HasMediaType(std::string_view list, std::string_view type);

// Which event of which stream of a session: "<stream>-<event>".
struct EventId {
  uint64_t stream, event;
};
std::string ToText(EventId id);
std::optional<EventId> ParseEventId(std::string_view text);

}  // namespace sandglass::api::mcp
