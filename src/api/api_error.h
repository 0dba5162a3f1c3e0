// ApiError: why an operation was refused or failed, as every interface tells it: a stable code, a message that says what to do, and
// data for programs. The codes are the contract; docs/api.md lists them from the same table. Numbers for JSON-RPC are derived here and
// nowhere else. Value type; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace sandglass::api {

enum class ApiCode : uint8_t {
  // What was said makes no sense.
  kParseError,
  kTooLong,
  kInvalidRequest,
  kInvalidArgument,
  kUnknownOperation,
  kUnsupportedProtocol,
  kUnsupported,
  // It makes no sense now.
  kNotStarted,
  kAlreadyStarted,
  kCommandRunning,
  kNoCommand,
  kUndoUnavailable,
  kShuttingDown,
  // It could not be done.
  kNotFound,
  kExists,
  kDenied,
  kConflict,
  kCorrupt,
  kBusy,
  kLocked,
  kNoSpace,
  kLimit,
  kFailed,
  kVersion,
  kUnprotected,
  kNotRestorable,
  kOutsideRoot,
  kCancelled,
  kForeign,
  kSessionLost,
};

std::string_view NameOf(ApiCode code);
// When it is said, in one line for the documentation.
std::string_view MeaningOf(ApiCode code);
// In the order of the documentation.
std::span<const ApiCode> AllApiCodes();
// The error code of JSON-RPC 2.0.
int JsonRpcNumber(ApiCode code);

struct ApiError {
  ApiCode code;
  std::string message;
  Json data = Json::Object();

  ApiError(ApiCode what, std::string text, Json details = Json::Object())
      : code(what), message(std::move(text)), data(std::move(details)) {}
};

// Of what failed below us. The one place where that is translated.
ApiError FromError(const Error& error);
// {"code", "message", "data"}.
Json ToJson(const ApiError& error);

}  // namespace sandglass::api
