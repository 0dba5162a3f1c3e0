// Json: a JSON value, its parser and its writer. Parsing is Boost.JSON's, kept inside json.cc
// because that library throws and is slow to compile; nothing here throws, and a wrong type is an
// answer (null, nullopt or an Error).
//
// File names are bytes and JSON is UTF-8: BytesToJson() turns a name into a string where it is
// valid UTF-8 and into {"base64": "..."} otherwise, which loses nothing; BytesFromJson() is its
// inverse. Value type.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace sandglass {

struct JsonMember;

class Json {
 public:
  using Items = std::vector<Json>;
  using Members = std::vector<JsonMember>;  // in the order of insertion, which the writer keeps

  Json();                // null
  Json(std::nullptr_t);  // NOLINT(google-explicit-constructor)
  // Constrained, because a pointer would silently become a bool.
  template <std::same_as<bool> T>
  Json(T value);  // NOLINT(google-explicit-constructor)
  template <std::signed_integral T>
  Json(T value);  // NOLINT(google-explicit-constructor)
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  Json(T value);                 // NOLINT(google-explicit-constructor)
  Json(double value);            // NOLINT(google-explicit-constructor)
  Json(std::string value);       // NOLINT(google-explicit-constructor)
  Json(std::string_view value);  // NOLINT(google-explicit-constructor)
  Json(const char* value);       // NOLINT(google-explicit-constructor)

  // Json::Object({{"id", 7}, {"name", "main.cc"}}), Json::Array({1, "two", nullptr}); both may
  // start empty.
  static Json Object(std::initializer_list<JsonMember> members = {});
  static Json Array(std::initializer_list<Json> items = {});
  static Json FromItems(Items items);
  static Json FromMembers(Members members);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  std::optional<bool> AsBool() const;
  // A number that is whole and fits; 3.0 is not whole, it was written as a fraction.
  std::optional<int64_t> AsInt() const;
  std::optional<uint64_t> AsUint() const;
  std::optional<double> AsDouble() const;  // any number
  // Null when the value is of another type.
  const std::string* AsString() const { return std::get_if<std::string>(&value_); }
  const Items* AsArray() const { return std::get_if<Items>(&value_); }
  const Members* AsObject() const { return std::get_if<Members>(&value_); }

  // The member of that name; null when there is none or this is not an object.
  const Json* Find(std::string_view key) const;
  // Members that must be there. kInvalid: missing or of another type; the message names the key.
  Result<std::string> GetString(std::string_view key) const;
  Result<int64_t> GetInt(std::string_view key) const;
  Result<uint64_t> GetUint(std::string_view key) const;
  Result<bool> GetBool(std::string_view key) const;

  // Adds or replaces a member. Only on an object or on null, which becomes an object.
  Json& Set(std::string_view key, Json value);
  // Adds an item. Only on an array or on null, which becomes an array.
  Json& Append(Json item);

  // Structural; an integer equals itself however it was given (1 and 1U), objects compare in member
  // order.
  friend bool operator==(const Json& a, const Json& b);

 private:
  using Value =
      std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Items, Members>;
  Value value_;
};

struct JsonMember {
  std::string key;
  Json value;

  friend bool operator==(const JsonMember&, const JsonMember&) = default;
};

// Out of the class, because they need JsonMember to be complete.
inline Json::Json() = default;
inline Json::Json(std::nullptr_t) {}
template <std::same_as<bool> T>
Json::Json(T value) : value_(value) {}
template <std::signed_integral T>
Json::Json(T value) : value_(static_cast<int64_t>(value)) {}
template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>)
Json::Json(T value) : value_(static_cast<uint64_t>(value)) {}
inline Json::Json(double value) : value_(value) {}
inline Json::Json(std::string value) : value_(std::move(value)) {}
inline Json::Json(std::string_view value) : value_(std::string(value)) {}
inline Json::Json(const char* value) : value_(std::string(value)) {}

inline constexpr size_t kMaxJsonDepth = 32;

// One JSON text (RFC 8259, UTF-8). A key given twice counts with its last value.
// kLimit: longer than `max_bytes`. kInvalid: not JSON, or nested deeper than kMaxJsonDepth.
Result<Json> ParseJson(std::string_view text, size_t max_bytes = size_t{1} << 20);

// On one line, without spaces. Always valid JSON: invalid UTF-8 in a string becomes U+FFFD (use
// BytesToJson for names), a number that is not finite becomes null.
std::string WriteJson(const Json& value);
// The string as a JSON string with its quotes, under the same rule, appended to `out`.
void AppendJsonString(std::string& out, std::string_view text);

Json BytesToJson(std::string_view bytes);
// kInvalid: neither a string nor {"base64": valid}.
Result<std::string> BytesFromJson(const Json& value);

bool IsValidUtf8(std::string_view bytes);

// RFC 4648 with padding, standard alphabet. Decoding is strict: kInvalid for anything an encoder
// would not write.
std::string Base64Encode(std::string_view bytes);
Result<std::string> Base64Decode(std::string_view text);

}  // namespace sandglass
