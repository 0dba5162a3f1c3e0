// The messages of the Model Context Protocol on its lines: JSON-RPC 2.0, one message per line, or an array of them where the version
// of the protocol has that.
//
// Parsing is pure and takes any bytes. Value types; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/api_error.h"
#include "base/json.h"

namespace sandglass::api::mcp {

struct Message {
  Json id;  // null: a notification, which has no answer
  std::string method;
  Json params = Json::Object();
};

// An error that the protocol itself defines, with its number.
struct ProtocolError {
  int number;
  std::string message;
  Json data = Json::Object();
};
inline constexpr int kMethodNotFound = -32601;
inline constexpr int kInvalidParams = -32602;
inline constexpr int kHeaderMismatch = -32020;
inline constexpr int kUnsupportedVersion = -32022;

// What is no message, with the id that it has all the same, or null, so that the client can tell what was refused.
struct Refused {
  Json id;
  ApiError error;
};

// An answer to what we asked, or to nothing.
struct ClientAnswer {
  Json id;
  std::optional<Json> result;  // none: the client says that it failed
};

using Item = std::variant<Message, Refused, ClientAnswer>;

enum class LineShape : uint8_t { kOne, kBatch };
struct Line {
  LineShape shape = LineShape::kOne;
  std::vector<Item> items;  // one, or those of the batch
};

// Without its newline.
Line ParseLine(std::string_view line);

Json ResultMessage(const Json& id, Json result);
// The number is the taxonomy's; its name is in the data.
Json ErrorMessage(const Refused& refused);
Json ErrorMessage(const Json& id, const ProtocolError& error);
Json RequestMessage(const Json& id, std::string_view method, Json params);
Json NotificationMessage(std::string_view method, Json params);

}  // namespace sandglass::api::mcp
