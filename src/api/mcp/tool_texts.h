// Results of operations, and why they failed, as a model reads them. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "api/api_error.h"
#include "base/json.h"

namespace sandglass::api::mcp {

std::string CommandText(const Json& result);
std::string ReadText(const Json& result);
std::string WrittenText(const Json& result);
std::string EditedText(const Json& result);
std::string ListingText(const Json& result);
std::string GlobText(const Json& result);
std::string GrepText(const Json& result);
std::string UndoText(const Json& result);
std::string RedoText(const Json& result);
std::string HistoryText(const Json& result);
std::string DiffText(const Json& result);
std::string StatusText(const Json& result);

// With what to do about it; `operation` is the one that failed.
std::string FailureText(std::string_view operation, const ApiError& error);

}  // namespace sandglass::api::mcp
