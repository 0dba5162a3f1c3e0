#include "session/config/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/json.h"

// Our code throws nothing: without exceptions the library returns its errors.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#include <toml++/toml.h>

namespace sandglass::session::config {
namespace {

// Each part of a key is a table in a table, which the library takes apart by recursion: a key of many parts would cost the stack.
constexpr size_t kMostDotsInALine = 32;

// Outside of quotes.
size_t DotsIn(std::string_view line) {
  size_t dots = 0;
  char quote = '\0';
  for (const char c : line) {
    if (quote == '\0' && c == '#') break;
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '.') {
      ++dots;
    }
  }
  return dots;
}

Status CheckText(std::string_view text) {
  if (text.size() > kMaxTomlBytes)
    return Error(Code::kLimit, fmt::format("the file has more than {} bytes", kMaxTomlBytes));
  // TOML has no control characters, and the library (3.3) asserts instead of complaining where a key begins with a NUL.
  const auto is_control = [](char c) {
    return (static_cast<uint8_t>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
  };
  if (std::ranges::any_of(text, is_control))
    return Error(Code::kInvalid, "the file has control characters");
  if (!IsValidUtf8(text)) return Error(Code::kInvalid, "the file is not UTF-8");
  // They would have to be followed over lines to tell what is quoted, and no setting needs them.
  for (const std::string_view quotes : {"\"\"\"", "'''"}) {
    if (text.find(quotes) != std::string_view::npos)
      return Error(Code::kInvalid, "texts of several lines are not supported");
  }
  size_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (DotsIn(text.substr(begin, end - begin)) > kMostDotsInALine)
      return Error(Code::kInvalid, fmt::format("line {}: a key has too many parts", number));
    begin = end + 1;
  }
  return Ok();
}

TomlValue ListOf(const toml::array& array) {
  std::vector<std::string> texts;
  for (const toml::node& node : array) {
    const auto* text = node.as_string();
    if (text == nullptr) return OtherValue{"a list of other things than texts"};
    texts.push_back(text->get());
  }
  return texts;
}

TomlValue ValueOf(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_array()) return ListOf(*value);
  return OtherValue{"a date or a time"};
}

void AddTable(const toml::table& table, const std::string& section, const std::string& prefix,
              std::vector<TomlSetting>& out) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    if (const toml::table* inner = node.as_table()) {
      AddTable(*inner, section, key + ".", out);
      continue;
    }
    out.push_back({section, key, ValueOf(node), node.source().begin.line});
  }
}

}  // namespace

Result<std::vector<TomlSetting>> ParseToml(std::string_view text) {
  TRY(CheckText(text));
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return Error(Code::kInvalid, fmt::format("line {}: {}", parsed.error().source().begin.line,
                                             parsed.error().description()));
  }
  std::vector<TomlSetting> settings;
  for (const auto& [name, node] : parsed.table()) {
    const std::string text_of_name(name.str());
    if (const toml::table* section = node.as_table())
      AddTable(*section, text_of_name, "", settings);
    else
      settings.push_back({"", text_of_name, ValueOf(node), node.source().begin.line});
  }
  std::ranges::sort(settings, {}, [](const TomlSetting& setting) {
    return std::tie(setting.line, setting.section, setting.key);
  });
  return settings;
}

std::string TomlText(const TomlValue& value) {
  struct Writer {
    std::string operator()(bool on) const { return on ? "true" : "false"; }
    std::string operator()(int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    // What JSON escapes, TOML reads the same way.
    std::string operator()(const std::string& text) const {
      std::string out;
      AppendJsonString(out, text);
      return out;
    }
    std::string operator()(const std::vector<std::string>& texts) const {
      std::string out = "[";
      for (const std::string& text : texts) out += (out.size() > 1 ? ", " : "") + (*this)(text);
      return out + "]";
    }
    std::string operator()(const OtherValue& other) const { return std::string(other.what); }
  };
  return std::visit(Writer(), value);
}

}  // namespace sandglass::session::config
