// Operation: one thing that a client can ask for, declared once. Validation, `sandglass api describe`, schemas/*.json, docs/api.md and
// every interface read this one table, so none of them can say something that the others do not. Event: one thing that a client is
// told unasked. Constant data; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "api/api_error.h"
#include "api/schema.h"
#include "base/json.h"

namespace sandglass::api {

inline constexpr int64_t kProtocolVersion = 1;

class Host;

using Answer = std::variant<Json, ApiError>;

// One request on its way to its one answer.
struct Call {
  std::string request_id;
  Json payload;  // fits the operation's schema
  std::function<void(Answer)> reply;
};

// When it makes sense.
enum class When : uint8_t {
  kAlways,
  kStarted,  // there is a session, also one that waits for `undo.discard`
  kReady,    // its world runs
  kIdle,     // and no command does
};
std::string_view NameOf(When when);

struct Operation {
  std::string_view name;
  std::string_view summary;  // a sentence
  const Schema* request;
  const Schema* result;
  std::span<const ApiCode> errors;  // of its own; those that any operation may have are not listed
  When when = When::kAlways;
  void (*handle)(Host& host,
                 Call call) = nullptr;  // null: not there yet, and answered with kUnsupported
  std::string_view missing = {};        // what it waits for then
};

std::span<const Operation> AllOperations();
// Null: there is none of that name.
const Operation* FindOperation(std::string_view name);

struct Event {
  std::string_view name;
  std::string_view summary;
  const Schema* payload;
  std::string_view missing = {};  // not sent yet, and what it waits for
};

std::span<const Event> AllEvents();
const Event* FindEvent(std::string_view name);

}  // namespace sandglass::api
