// TOML as a flat list of settings: what our files need of it, and an error for everything else.
//
// Understood: sections, keys (bare, quoted, with dots), true and false, decimal numbers, texts in either kind of quotes, lists of texts
// over any number of lines, comments. Refused, with the line: texts of several lines, tables within a line, lists of sections and of
// lists, other number systems. A parser of our own, because the one in Debian 12 (toml++ 3.3) runs into its own assertions on
// input as short as "[ ", and a project's file is what a command wrote. No recursion. Pure; any thread.
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
