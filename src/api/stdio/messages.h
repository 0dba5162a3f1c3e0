// The messages of the STDIO API: one JSON object per line.
//
//   {"type":"agent.execute","request_id":"1","payload":{"command":"npm install"}}
//   {"type":"event.terminal_output","payload":{"stream":"stdout","data":"added 150 packages..."}}
//   {"type":"response","request_id":"1","status":"ok","payload":{...}}
//   {"type":"response","request_id":"1","status":"error","error":{"code":"...","message":"...","data":{}}}
//
// Parsing is pure and takes any bytes. Value types; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "api/api_error.h"
#include "api/operation.h"
#include "base/json.h"

namespace sandglass::api::stdio {

struct Request {
  const Operation* operation;
  std::string request_id;
  Json payload;
};

// What is no request, with the id that it has all the same, if any, so that the client can tell what was refused.
struct Refused {
  std::optional<std::string> request_id;
  ApiError error;
};

// A line without its newline. The payload is not checked yet.
std::variant<Request, Refused> ParseRequest(std::string_view line);

// Each with its newline.
std::string EncodeResponse(const std::string& request_id, const Answer& answer);
std::string EncodeRefusal(const Refused& refused);
std::string EncodeEvent(std::string_view type, const Json& payload);

}  // namespace sandglass::api::stdio
