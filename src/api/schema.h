// Schema: what a JSON value of a request, a result or an event must look like.
//
// One table serves four readers: requests are checked against it before a handler sees them, results and events against it in tests,
// `sandglass api describe` and schemas/*.json print it as JSON Schema (draft 2020-12), and the documentation lists its fields. So it
// holds just what these need, and every schema is constant data: no allocation, no order of initialisation. Checking is pure, and as
// deep as the schema is, however deep the value. Any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"

namespace sandglass::api {

struct Field;

enum class SchemaKind : uint8_t {
  kAny,
  kNull,
  kBoolean,
  kInteger,
  kString,  // UTF-8, without a NUL
  kText,    // UTF-8 of any kind
  kBytes,   // a name that need not be UTF-8: a string, or {"base64": "..."}; without a NUL
  kBlob,    // any bytes, likewise
  kArray,
  kObject,
  kAnyOf,
};

// Members that a schema does not name: an error in what clients send, for a misspelt option must not be ignored; allowed in what they
// get, where later versions may add some.
enum class OtherMembers : uint8_t { kRefused, kAllowed };

struct Schema {
  SchemaKind kind = SchemaKind::kAny;
  std::string_view help = {};
  // Of an integer its bounds; of a string the bounds of its bytes; of an array those of its items.
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
  std::span<const std::string_view> choices = {};  // of a string; none: all
  std::string_view without = {};                   // of a string, characters that it may not hold
  const Schema* items = nullptr;                   // of an array
  std::span<const Field> fields = {};              // of an object
  OtherMembers others = OtherMembers::kRefused;
  std::span<const Schema* const> any_of = {};
};

enum class Need : uint8_t { kRequired, kOptional };

struct Field {
  std::string_view name;
  const Schema* schema;
  Need need;
  std::string_view help;
};

// What is wrong, and where: "working_directories[1].access".
struct Mismatch {
  std::string path;  // "": the value itself
  std::string message;
};
// The first one, in the order of the schema; nullopt: it fits. `where` is what the path begins with.
std::optional<Mismatch> FindMismatch(const Schema& schema, const Json& value,
                                     std::string_view where = "");

// As JSON Schema.
Json ToJsonSchema(const Schema& schema);

}  // namespace sandglass::api
