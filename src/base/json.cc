#include "base/json.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>

#include <boost/json/parse.hpp>
#include <boost/json/parse_options.hpp>
#include <boost/json/value.hpp>

namespace sandglass {
namespace {

// Recursive, but never deeper than the parser allowed.
Json FromBoost(const boost::json::value& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return nullptr;
    case boost::json::kind::bool_:
      return value.get_bool();
    case boost::json::kind::int64:
      return value.get_int64();
    case boost::json::kind::uint64:
      return value.get_uint64();
    case boost::json::kind::double_:
      return value.get_double();
    case boost::json::kind::string:
      return std::string(value.get_string().c_str(), value.get_string().size());
    case boost::json::kind::array: {
      Json::Items items;
      for (const auto& item : value.get_array()) items.push_back(FromBoost(item));
      return Json::FromItems(std::move(items));
    }
    case boost::json::kind::object: {
      Json::Members members;
      for (const auto& member : value.get_object()) {
        members.push_back({std::string(member.key()), FromBoost(member.value())});
      }
      return Json::FromMembers(std::move(members));
    }
  }
  return nullptr;
}

Error WrongMember(std::string_view key, std::string_view wanted) {
  return Error(Code::kInvalid, fmt::format("member \"{}\" is missing or not {}", key, wanted));
}

void AppendDouble(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const std::string digits = fmt::format("{}", value);
  out += digits;
  // Without a point it would come back as an integer.
  if (digits.find_first_of(".e") == std::string::npos) out += ".0";
}

void AppendJson(std::string& out, const Json& value);

void AppendItems(std::string& out, const Json::Items& items) {
  out += '[';
  for (const Json& item : items) {
    if (&item != items.data()) out += ',';
    AppendJson(out, item);
  }
  out += ']';
}

void AppendMembers(std::string& out, const Json::Members& members) {
  out += '{';
  for (const JsonMember& member : members) {
    if (&member != members.data()) out += ',';
    AppendJsonString(out, member.key);
    out += ':';
    AppendJson(out, member.value);
  }
  out += '}';
}

void AppendJson(std::string& out, const Json& value) {
  if (const auto* text = value.AsString()) return AppendJsonString(out, *text);
  if (const auto* items = value.AsArray()) return AppendItems(out, *items);
  if (const auto* members = value.AsObject()) return AppendMembers(out, *members);
  if (const auto flag = value.AsBool()) {
    out += *flag ? "true" : "false";
  } else if (const auto number = value.AsInt()) {
    fmt::format_to(std::back_inserter(out), "{}", *number);
  } else if (const auto large = value.AsUint()) {
    fmt::format_to(std::back_inserter(out), "{}", *large);
  } else if (const auto real = value.AsDouble()) {
    AppendDouble(out, *real);
  } else {
    out += "null";
  }
}

// The bytes of one UTF-8 character by its lead byte, with the bounds of the second byte that rule
// out overlong forms, surrogates and anything above U+10FFFF (RFC 3629). 0: not a lead byte.
struct Utf8Lead {
  size_t size;
  uint8_t second_min;
  uint8_t second_max;
};

Utf8Lead ClassifyLead(uint8_t lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// The size of the valid character at the start of `bytes`, which is not empty; 0 when there is
// none.
size_t Utf8CharSize(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const Utf8Lead lead = ClassifyLead(at(0));
  if (lead.size <= 1) return lead.size;
  if (bytes.size() < lead.size || at(1) < lead.second_min || at(1) > lead.second_max) return 0;
  for (size_t i = 2; i < lead.size; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
  }
  return lead.size;
}

// Eight bytes at a time: how many at the beginning have none that `special` marks with its highest bit. Marks behind the first one
// of a word may be wrong.
template <class Special>
size_t PrefixWithout(std::string_view text, Special special) {
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= text.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof(word));
    static_assert(std::endian::native == std::endian::little);
    if (const uint64_t marks = special(word) & 0x8080808080808080)
      return at + static_cast<size_t>(std::countr_zero(marks)) / 8;
  }
  return at;
}

constexpr uint64_t Eight(uint8_t byte) { return 0x0101010101010101 * byte; }
constexpr uint64_t ZeroBytes(uint64_t word) { return (word - Eight(1)) & ~word; }

size_t AsciiPrefix(std::string_view text) {
  return PrefixWithout(text, [](uint64_t word) { return word; });
}

// Of what stands for itself in a JSON string; some more may follow.
size_t PlainPrefix(std::string_view text) {
  return PrefixWithout(text, [](uint64_t word) {
    const uint64_t control = (word - Eight(0x20)) & ~word;
    return word | control | ZeroBytes(word ^ Eight('"')) | ZeroBytes(word ^ Eight('\\'));
  });
}

void AppendEscaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (static_cast<uint8_t>(c) < 0x20) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<uint8_t>(c));
  } else {
    out += c;
  }
}

constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNoDigit = 0xFF;

constexpr std::array<uint8_t, 256> MakeBase64Values() {
  std::array<uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (size_t i = 0; i < kBase64Digits.size(); ++i) {
    values[static_cast<uint8_t>(kBase64Digits[i])] = static_cast<uint8_t>(i);
  }
  return values;
}
constexpr std::array<uint8_t, 256> kBase64Values = MakeBase64Values();

Error NotBase64() { return Error(Code::kInvalid, "not valid base64"); }

}  // namespace

Json Json::Object(std::initializer_list<JsonMember> members) {
  return FromMembers(Members(members));
}

Json Json::Array(std::initializer_list<Json> items) { return FromItems(Items(items)); }

Json Json::FromItems(Items items) {
  Json array;
  array.value_ = std::move(items);
  return array;
}

Json Json::FromMembers(Members members) {
  Json object;
  object.value_ = std::move(members);
  return object;
}

std::optional<bool> Json::AsBool() const {
  const bool* flag = std::get_if<bool>(&value_);
  return flag != nullptr ? std::optional(*flag) : std::nullopt;
}

std::optional<int64_t> Json::AsInt() const {
  if (const auto* number = std::get_if<int64_t>(&value_)) return *number;
  const auto* large = std::get_if<uint64_t>(&value_);
  if (large == nullptr || *large > std::numeric_limits<int64_t>::max()) return std::nullopt;
  return static_cast<int64_t>(*large);
}

std::optional<uint64_t> Json::AsUint() const {
  if (const auto* large = std::get_if<uint64_t>(&value_)) return *large;
  const auto* number = std::get_if<int64_t>(&value_);
  if (number == nullptr || *number < 0) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

std::optional<double> Json::AsDouble() const {
  if (const auto* real = std::get_if<double>(&value_)) return *real;
  if (const auto number = AsInt()) return static_cast<double>(*number);
  if (const auto large = AsUint()) return static_cast<double>(*large);
  return std::nullopt;
}

const Json* Json::Find(std::string_view key) const {
  const Members* members = AsObject();
  if (members == nullptr) return nullptr;
  for (const JsonMember& member : *members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Result<std::string> Json::GetString(std::string_view key) const {
  const Json* member = Find(key);
  if (member == nullptr || member->AsString() == nullptr) return WrongMember(key, "a string");
  return *member->AsString();
}

Result<int64_t> Json::GetInt(std::string_view key) const {
  const Json* member = Find(key);
  const auto number = member != nullptr ? member->AsInt() : std::nullopt;
  if (!number) return WrongMember(key, "an integer");
  return *number;
}

Result<uint64_t> Json::GetUint(std::string_view key) const {
  const Json* member = Find(key);
  const auto number = member != nullptr ? member->AsUint() : std::nullopt;
  if (!number) return WrongMember(key, "a whole number");
  return *number;
}

Result<bool> Json::GetBool(std::string_view key) const {
  const Json* member = Find(key);
  const auto flag = member != nullptr ? member->AsBool() : std::nullopt;
  if (!flag) return WrongMember(key, "true or false");
  return *flag;
}

Json& Json::Set(std::string_view key, Json value) {
  if (is_null()) value_ = Members();
  auto* members = std::get_if<Members>(&value_);
  CHECK(members != nullptr);
  for (JsonMember& member : *members) {
    if (member.key != key) continue;
    member.value = std::move(value);
    return *this;
  }
  members->push_back({std::string(key), std::move(value)});
  return *this;
}

Json& Json::Append(Json item) {
  if (is_null()) value_ = Items();
  auto* items = std::get_if<Items>(&value_);
  CHECK(items != nullptr);
  items->push_back(std::move(item));
  return *this;
}

bool operator==(const Json& a, const Json& b) {
  // One integer has two spellings in value_, so integers are compared as numbers first.
  if (const auto number = a.AsInt()) return number == b.AsInt();
  return a.value_ == b.value_;
}

Result<Json> ParseJson(std::string_view text, size_t max_bytes) {
  if (text.size() > max_bytes) {
    return Error(Code::kLimit, fmt::format("JSON text is longer than {} bytes", max_bytes));
  }
  boost::json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  try {
    boost::json::error_code failure;
    const auto value = boost::json::parse({text.data(), text.size()}, failure, {}, options);
    if (failure) return Error(Code::kInvalid, fmt::format("not valid JSON: {}", failure.message()));
    return FromBoost(value);
  } catch (const std::exception& thrown) {
    return Error(Code::kInvalid, fmt::format("not usable JSON: {}", thrown.what()));
  }
}

std::string WriteJson(const Json& value) {
  std::string out;
  AppendJson(out, value);
  return out;
}

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const size_t plain = PlainPrefix(text);
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t size = Utf8CharSize(text);
    if (size == 0) {
      out += "\xEF\xBF\xBD";
    } else if (size == 1) {
      AppendEscaped(out, text.front());
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  out += '"';
}

Json BytesToJson(std::string_view bytes) {
  if (IsValidUtf8(bytes)) return bytes;
  return Json::Object({{"base64", Base64Encode(bytes)}});
}

Result<std::string> BytesFromJson(const Json& value) {
  if (const std::string* text = value.AsString()) return *text;
  const auto* members = value.AsObject();
  if (members == nullptr || members->size() != 1) {
    return Error(Code::kInvalid, "neither a string nor an object with \"base64\" alone");
  }
  TRY_ASSIGN(const std::string encoded, value.GetString("base64"));
  return Base64Decode(encoded);
}

bool IsValidUtf8(std::string_view bytes) {
  while (true) {
    bytes.remove_prefix(AsciiPrefix(bytes));
    if (bytes.empty()) return true;
    const size_t size = Utf8CharSize(bytes);
    if (size == 0) return false;
    bytes.remove_prefix(size);
  }
}

std::string Base64Encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto at = [&](size_t j) -> uint32_t {
      return j < bytes.size() ? static_cast<uint8_t>(bytes[j]) : 0;
    };
    const uint32_t group = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    text += kBase64Digits[group >> 18 & 63];
    text += kBase64Digits[group >> 12 & 63];
    text += i + 1 < bytes.size() ? kBase64Digits[group >> 6 & 63] : '=';
    text += i + 2 < bytes.size() ? kBase64Digits[group & 63] : '=';
  }
  return text;
}

Result<std::string> Base64Decode(std::string_view text) {
  if (text.size() % 4 != 0) return NotBase64();
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  const size_t size = text.size() / 4 * 3 - padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t group = 0;
    for (size_t j = i; j < i + 4; ++j) {
      const bool pad = j >= text.size() - padding;
      const uint8_t digit = pad ? 0 : kBase64Values[static_cast<uint8_t>(text[j])];
      if (digit == kNoDigit) return NotBase64();
      group = group << 6 | digit;
    }
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(group >> shift & 0xFF);
  }
  // What the padding cuts off must have been zero, else two texts would stand for the same bytes.
  for (size_t i = size; i < bytes.size(); ++i) {
    if (bytes[i] != '\0') return NotBase64();
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace sandglass
