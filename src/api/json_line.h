// JsonLine: one line of a client's as JSON, within the limits that all interfaces have. Pure; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "api/api_error.h"
#include "base/json.h"

namespace sandglass::api {

struct JsonLine {
  Json
      value;  // null if it is no JSON; of one with a key twice, what was understood, so that its id can be told
  std::optional<ApiError> error;
};

// Without its newline. kTooLong, kParseError.
JsonLine ParseJsonLine(std::string_view line);

}  // namespace sandglass::api
