// TOML as a flat list of settings. The parser is toml++, kept inside toml.cc because it is slow to compile; our files have sections with
// keys and nothing deeper, so that is all that comes out. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace sandglass::session::config {

struct OtherValue {
  std::string_view what;  // "a date", "a list of other things than texts"
  friend bool operator==(const OtherValue&, const OtherValue&) = default;
};
using TomlValue =
    std::variant<bool, int64_t, double, std::string, std::vector<std::string>, OtherValue>;

struct TomlSetting {
  std::string section;  // "": the key stands in none
  std::string key;      // with dots, where it is deeper
  TomlValue value;
  uint32_t line = 0;
};

inline constexpr size_t kMaxTomlBytes = 256 << 10;

// In the order of their lines.
// kInvalid: not TOML; the message has the line. kLimit: longer than kMaxTomlBytes.
Result<std::vector<TomlSetting>> ParseToml(std::string_view text);

// As it could stand in a file.
std::string TomlText(const TomlValue& value);

}  // namespace sandglass::session::config
