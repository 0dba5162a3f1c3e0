#include "control/fields.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace sandglass::control {

Error Fields::Wrong(Code code, std::string_view key, std::string_view what) const {
  return Error(code, fmt::format("{}: \"{}\" {}", where_, key, what));
}

const Json* Fields::Find(std::string_view key) const {
  const Json* member = object_.Find(key);
  return member != nullptr && !member->is_null() ? member : nullptr;
}

Result<const Json*> Fields::Need(std::string_view key) const {
  const Json* member = Find(key);
  if (member == nullptr) return Wrong(Code::kInvalid, key, "is missing");
  return member;
}

Result<int64_t> Fields::Number(std::string_view key, int64_t least, int64_t most) const {
  TRY_ASSIGN(const Json* member, Need(key));
  if (!member->AsDouble()) return Wrong(Code::kInvalid, key, "is not a number");
  const auto number = member->AsInt();
  if (!number && !member->AsUint()) return Wrong(Code::kInvalid, key, "is not a whole number");
  if (!number || *number < least || *number > most) {
    return Wrong(Code::kLimit, key, fmt::format("is not between {} and {}", least, most));
  }
  return *number;
}

Result<StepId> Fields::Id(std::string_view key) const {
  TRY_ASSIGN(const int64_t number, Number(key, 1, std::numeric_limits<int64_t>::max()));
  return StepId{number};
}

Result<std::chrono::milliseconds> Fields::Milliseconds(std::string_view key,
                                                       std::chrono::milliseconds most) const {
  TRY_ASSIGN(const int64_t number, Number(key, 0, most.count()));
  return std::chrono::milliseconds(number);
}

Result<std::string> Fields::Bytes(std::string_view key, const Json& value, size_t max_bytes) const {
  auto bytes = BytesFromJson(value);
  if (!bytes.ok()) {
    return Wrong(Code::kInvalid, key,
                 "is neither a string nor {\"base64\": ...} with valid base64");
  }
  if (bytes->size() > max_bytes) {
    return Wrong(Code::kLimit, key, fmt::format("is longer than {} bytes", max_bytes));
  }
  return bytes;
}

Result<std::string> Fields::Terminated(std::string_view key, const Json& value,
                                       size_t max_bytes) const {
  TRY_ASSIGN(std::string bytes, Bytes(key, value, max_bytes));
  if (bytes.find('\0') != std::string::npos) return Wrong(Code::kInvalid, key, "contains a NUL");
  return bytes;
}

Result<std::string> Fields::Data(std::string_view key, size_t max_bytes) const {
  TRY_ASSIGN(const Json* member, Need(key));
  return Bytes(key, *member, max_bytes);
}

Result<std::string> Fields::CString(std::string_view key, size_t max_bytes) const {
  TRY_ASSIGN(const Json* member, Need(key));
  return Terminated(key, *member, max_bytes);
}

Result<std::vector<std::string>> Fields::Arguments(std::string_view key) const {
  TRY_ASSIGN(const Json* member, Need(key));
  const Json::Items* items = member->AsArray();
  if (items == nullptr) return Wrong(Code::kInvalid, key, "is not an array");
  if (items->empty() || items->size() > kMaxArguments) {
    return Wrong(Code::kLimit, key, fmt::format("has not 1 to {} items", kMaxArguments));
  }
  std::vector<std::string> arguments;
  for (const Json& item : *items) {
    TRY_ASSIGN(std::string argument, Terminated(key, item, kMaxArgumentBytes));
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

Result<std::vector<EnvEntry>> Fields::Environment(std::string_view key) const {
  TRY_ASSIGN(const Json* member, Need(key));
  const Json::Members* members = member->AsObject();
  if (members == nullptr) return Wrong(Code::kInvalid, key, "is not an object");
  if (members->size() > kMaxEnvEntries) {
    return Wrong(Code::kLimit, key, fmt::format("has more than {} entries", kMaxEnvEntries));
  }
  std::vector<EnvEntry> entries;
  for (const auto& [name, value] : *members) {
    if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos) {
      return Wrong(Code::kInvalid, key, "has a name that is empty or contains '=' or NUL");
    }
    TRY_ASSIGN(std::string bytes, Terminated(key, value, kMaxArgumentBytes));
    if (name.size() + 1 + bytes.size() > kMaxArgumentBytes) {
      return Wrong(Code::kLimit, key,
                   fmt::format("has an entry longer than {} bytes", kMaxArgumentBytes));
    }
    entries.push_back({name, std::move(bytes)});
  }
  return entries;
}

Result<TerminalSize> Fields::Size() const {
  constexpr int64_t kMost = std::numeric_limits<uint16_t>::max();
  TRY_ASSIGN(const int64_t rows, Number("rows", 1, kMost));
  TRY_ASSIGN(const int64_t columns, Number("columns", 1, kMost));
  return TerminalSize{static_cast<uint16_t>(rows), static_cast<uint16_t>(columns)};
}

Result<Fields> Fields::Object(std::string_view key) const {
  TRY_ASSIGN(const Json* member, Need(key));
  if (member->AsObject() == nullptr) return Wrong(Code::kInvalid, key, "is not an object");
  return Fields(fmt::format("{}.{}", where_, key), *member);
}

Result<bool> Fields::Flag(std::string_view key) const {
  const Json* member = Find(key);
  if (member == nullptr) return false;
  const auto flag = member->AsBool();
  if (!flag) return Wrong(Code::kInvalid, key, "is neither true nor false");
  return *flag;
}

}  // namespace sandglass::control
