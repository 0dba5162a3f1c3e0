// Schemas and complaints that the methods of the protocol share. Constant data and pure functions.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "api/api_error.h"
#include "api/schema.h"

namespace sandglass::api::mcp {

inline constexpr Schema kObjectOfAny{.kind = SchemaKind::kObject, .others = OtherMembers::kAllowed};
inline constexpr Schema kName{.kind = SchemaKind::kString, .min = 1, .max = 128};

inline ApiError WrongParams(const Mismatch& wrong, std::string_view of) {
  const std::string where = wrong.path.empty() ? "params" : wrong.path;
  return {ApiCode::kInvalidArgument, fmt::format("{}: \"{}\" {}", of, where, wrong.message),
          Json::Object({{"field", where}})};
}

// "": it is no text, or not there.
inline std::string TextOf(const Json& object, std::string_view key) {
  const Json* member = object.Find(key);
  return member != nullptr && member->AsString() != nullptr ? *member->AsString() : "";
}

}  // namespace sandglass::api::mcp
