#include "api/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace sandglass::api {
namespace {

constexpr int64_t kNoMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kNoMax = std::numeric_limits<int64_t>::max();
// What a message repeats of a peer's text.
constexpr size_t kMaxRepeated = 40;

using Found = std::optional<Mismatch>;

Found Wrong(std::string_view where, std::string message) {
  return Mismatch{std::string(where), std::move(message)};
}

std::string Below(std::string_view where, std::string_view name) {
  return where.empty() ? std::string(name) : fmt::format("{}.{}", where, name);
}

std::string Shortened(std::string_view text) {
  if (text.size() <= kMaxRepeated) return std::string(text);
  size_t end = kMaxRepeated;
  while (end > 0 && !IsValidUtf8(text.substr(0, end))) --end;
  return std::string(text.substr(0, end)) + "...";
}

// "between 1 and 8", "at least 1", "at most 8".
std::string BoundsText(const Schema& schema) {
  if (schema.min == kNoMin) return fmt::format("at most {}", schema.max);
  if (schema.max == kNoMax) return fmt::format("at least {}", schema.min);
  return fmt::format("between {} and {}", schema.min, schema.max);
}

bool IsWithin(const Schema& schema, int64_t number) {
  return number >= schema.min && number <= schema.max;
}

Found CheckInteger(const Schema& schema, const Json& value, std::string_view where) {
  const auto number = value.AsInt();
  if (!number) return Wrong(where, "should be a whole number");
  if (!IsWithin(schema, *number)) return Wrong(where, "should be " + BoundsText(schema));
  return std::nullopt;
}

Found CheckLength(const Schema& schema, size_t size, std::string_view where,
                  std::string_view unit) {
  if (IsWithin(schema, static_cast<int64_t>(size))) return std::nullopt;
  if (size == 0) return Wrong(where, "should not be empty");
  return Wrong(where, fmt::format("should have {} {}, and has {}", BoundsText(schema), unit, size));
}

Found CheckString(const Schema& schema, const Json& value, std::string_view where) {
  const std::string* text = value.AsString();
  if (text == nullptr) return Wrong(where, "should be a string");
  if (schema.kind != SchemaKind::kText && text->find('\0') != text->npos)
    return Wrong(where, "holds a NUL character");
  if (!schema.choices.empty() && std::ranges::find(schema.choices, *text) == schema.choices.end())
    return Wrong(where, fmt::format("should be one of \"{}\", and is \"{}\"",
                                    fmt::join(schema.choices, "\", \""), Shortened(*text)));
  if (text->find_first_of(schema.without) != text->npos)
    return Wrong(where, fmt::format("should hold none of {}", schema.without));
  return CheckLength(schema, text->size(), where, "bytes");
}

Found CheckBytes(const Schema& schema, const Json& value, std::string_view where) {
  const auto bytes = BytesFromJson(value);
  if (!bytes.ok()) return Wrong(where, "should be a string, or {\"base64\": \"...\"}");
  if (schema.kind != SchemaKind::kBlob && bytes->find('\0') != bytes->npos)
    return Wrong(where, "holds a NUL character");
  return CheckLength(schema, bytes->size(), where, "bytes");
}

Found CheckArray(const Schema& schema, const Json& value, std::string_view where) {
  const Json::Items* items = value.AsArray();
  if (items == nullptr) return Wrong(where, "should be an array");
  if (Found wrong = CheckLength(schema, items->size(), where, "items")) return wrong;
  if (schema.items == nullptr) return std::nullopt;
  for (size_t i = 0; i < items->size(); ++i) {
    if (Found wrong = FindMismatch(*schema.items, (*items)[i], fmt::format("{}[{}]", where, i)))
      return wrong;
  }
  return std::nullopt;
}

Found CheckOthers(const Schema& schema, const Json::Members& members, std::string_view where) {
  if (schema.others == OtherMembers::kAllowed) return std::nullopt;
  for (const JsonMember& member : members) {
    if (std::ranges::find(schema.fields, member.key, &Field::name) != schema.fields.end()) continue;
    std::vector<std::string_view> known;
    for (const Field& field : schema.fields) known.push_back(field.name);
    const std::string have = known.empty() ? "nothing is expected here"
                                           : fmt::format("known: {}", fmt::join(known, ", "));
    return Wrong(Below(where, Shortened(member.key)), "is not known; " + have);
  }
  return std::nullopt;
}

Found CheckObject(const Schema& schema, const Json& value, std::string_view where) {
  const Json::Members* members = value.AsObject();
  if (members == nullptr) return Wrong(where, "should be an object");
  for (const Field& field : schema.fields) {
    const Json* member = value.Find(field.name);
    if (member == nullptr && field.need == Need::kRequired)
      return Wrong(Below(where, field.name), "is missing");
    if (member == nullptr) continue;
    if (Found wrong = FindMismatch(*field.schema, *member, Below(where, field.name))) return wrong;
  }
  return CheckOthers(schema, *members, where);
}

// Of several misfits the last one is told: tables put the usual form last.
Found CheckAnyOf(const Schema& schema, const Json& value, std::string_view where) {
  Found last;
  for (const Schema* one : schema.any_of) {
    last = FindMismatch(*one, value, where);
    if (!last) return std::nullopt;
  }
  return last;
}

// --- JSON Schema

Json AnyOf(std::initializer_list<Json> schemas) {
  return Json::Object({{"anyOf", Json::Array(schemas)}});
}

Json Typed(std::string_view type) { return Json::Object({{"type", type}}); }

void SetBounds(Json& json, const Schema& schema, std::string_view least, std::string_view most) {
  if (schema.min != kNoMin) json.Set(least, schema.min);
  if (schema.max != kNoMax) json.Set(most, schema.max);
}

Json StringToJson(const Schema& schema) {
  Json json = Typed("string");
  if (!schema.choices.empty()) {
    Json choices = Json::Array();
    for (std::string_view choice : schema.choices) choices.Append(choice);
    json.Set("enum", std::move(choices));
  }
  if (!schema.without.empty()) json.Set("pattern", fmt::format("^[^{}]*$", schema.without));
  SetBounds(json, schema, "minLength", "maxLength");
  return json;
}

Json BytesToJsonSchema() {
  Json base64 = Json::Object({{"type", "object"},
                              {"properties", Json::Object({{"base64", Typed("string")}})},
                              {"required", Json::Array({"base64"})},
                              {"additionalProperties", false}});
  return AnyOf({Typed("string"), std::move(base64)});
}

Json ArrayToJson(const Schema& schema) {
  Json json = Typed("array");
  if (schema.items != nullptr) json.Set("items", ToJsonSchema(*schema.items));
  SetBounds(json, schema, "minItems", "maxItems");
  return json;
}

Json ObjectToJson(const Schema& schema) {
  Json properties = Json::Object(), required = Json::Array();
  for (const Field& field : schema.fields) {
    Json property = ToJsonSchema(*field.schema);
    if (!field.help.empty()) property.Set("description", field.help);
    properties.Set(field.name, std::move(property));
    if (field.need == Need::kRequired) required.Append(field.name);
  }
  Json json = Typed("object");
  json.Set("properties", std::move(properties)).Set("required", std::move(required));
  return json.Set("additionalProperties", schema.others == OtherMembers::kAllowed);
}

Json AnyOfToJson(const Schema& schema) {
  Json list = Json::Array();
  for (const Schema* one : schema.any_of) list.Append(ToJsonSchema(*one));
  return Json::Object({{"anyOf", std::move(list)}});
}

Json IntegerToJson(const Schema& schema) {
  Json json = Typed("integer");
  SetBounds(json, schema, "minimum", "maximum");
  return json;
}

Json BareJsonSchema(const Schema& schema) {
  switch (schema.kind) {
    case SchemaKind::kAny:
      return Json::Object();
    case SchemaKind::kNull:
      return Typed("null");
    case SchemaKind::kBoolean:
      return Typed("boolean");
    case SchemaKind::kInteger:
      return IntegerToJson(schema);
    case SchemaKind::kString:
    case SchemaKind::kText:
      return StringToJson(schema);
    case SchemaKind::kBytes:
    case SchemaKind::kBlob:
      return BytesToJsonSchema();
    case SchemaKind::kArray:
      return ArrayToJson(schema);
    case SchemaKind::kObject:
      return ObjectToJson(schema);
    case SchemaKind::kAnyOf:
      return AnyOfToJson(schema);
  }
  return Json::Object();
}

}  // namespace

std::optional<Mismatch> FindMismatch(const Schema& schema, const Json& value,
                                     std::string_view where) {
  switch (schema.kind) {
    case SchemaKind::kAny:
      return std::nullopt;
    case SchemaKind::kNull:
      return value.is_null() ? std::nullopt : Wrong(where, "should be null");
    case SchemaKind::kBoolean:
      return value.AsBool() ? std::nullopt : Wrong(where, "should be true or false");
    case SchemaKind::kInteger:
      return CheckInteger(schema, value, where);
    case SchemaKind::kString:
    case SchemaKind::kText:
      return CheckString(schema, value, where);
    case SchemaKind::kBytes:
    case SchemaKind::kBlob:
      return CheckBytes(schema, value, where);
    case SchemaKind::kArray:
      return CheckArray(schema, value, where);
    case SchemaKind::kObject:
      return CheckObject(schema, value, where);
    case SchemaKind::kAnyOf:
      return CheckAnyOf(schema, value, where);
  }
  return std::nullopt;
}

Json ToJsonSchema(const Schema& schema) {
  Json json = BareJsonSchema(schema);
  if (!schema.help.empty()) json.Set("description", schema.help);
  return json;
}

}  // namespace sandglass::api
