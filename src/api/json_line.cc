#include "api/json_line.h"

#include <fmt/format.h>

#include <utility>

#include "api/limits.h"

namespace sandglass::api {
namespace {

// Of JSON that is known to be valid: how many members its objects are given. The parser keeps one of each name.
size_t GivenMembers(std::string_view text) {
  size_t colons = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (inside && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      inside = !inside;
    else if (!inside && text[i] == ':')
      ++colons;
  }
  return colons;
}

// Recursive, but never deeper than the parser allowed.
size_t KeptMembers(const Json& value) {
  size_t count = 0;
  if (const auto* items = value.AsArray()) {
    for (const Json& item : *items) count += KeptMembers(item);
  } else if (const auto* members = value.AsObject()) {
    for (const JsonMember& member : *members) count += 1 + KeptMembers(member.value);
  }
  return count;
}

ApiError ParseError(const Error& error) {
  if (error.code() == Code::kLimit)
    return {ApiCode::kTooLong, fmt::format("a line has at most {} bytes", kMaxLineBytes),
            Json::Object({{"max_bytes", kMaxLineBytes}})};
  return {ApiCode::kParseError,
          fmt::format("each line is one JSON object in UTF-8: {}", error.message())};
}

}  // namespace

JsonLine ParseJsonLine(std::string_view line) {
  auto parsed = ParseJson(line, kMaxLineBytes);
  if (!parsed.ok()) return {.value = {}, .error = ParseError(parsed.error())};
  JsonLine out{.value = std::move(*parsed), .error = {}};
  if (GivenMembers(line) != KeptMembers(out.value))
    out.error.emplace(ApiCode::kParseError, "a key is given twice in one object");
  return out;
}

}  // namespace sandglass::api
