#include "session/config/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "base/json.h"

namespace sandglass::session::config {
namespace {

constexpr size_t kMostKeyParts = 16;
constexpr std::string_view kBlank = " \t";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsBareKey(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_' || c == '-';
}

std::string Join(const std::vector<std::string>& parts, size_t first) {
  std::string joined;
  for (size_t i = first; i < parts.size(); ++i) joined += (i > first ? "." : "") + parts[i];
  return joined;
}

void AppendUtf8(std::string& out, uint32_t point) {
  if (point < 0x80) {
    out.push_back(static_cast<char>(point));
    return;
  }
  const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  constexpr uint8_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out.push_back(static_cast<char>(kLead[more] | (point >> (6 * more))));
  for (int i = more - 1; i >= 0; --i)
    out.push_back(static_cast<char>(0x80 | ((point >> (6 * i)) & 0x3F)));
}

// "1_000" is 1000. nullopt: an underscore that does not stand between digits.
std::optional<std::string> WithoutUnderscores(std::string_view token) {
  std::string out;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '_') {
      out.push_back(token[i]);
      continue;
    }
    const bool between =
        i > 0 && i + 1 < token.size() && IsDigit(token[i - 1]) && IsDigit(token[i + 1]);
    if (!between) return std::nullopt;
  }
  return out;
}

template <class Number>
std::optional<Number> Whole(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<TomlValue> NumberFrom(std::string_view token) {
  auto plain = WithoutUnderscores(token);
  if (!plain) return std::nullopt;
  std::string_view text = *plain;
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || !IsDigit(digits[0])) {
    if (digits != "inf" && digits != "nan") return std::nullopt;
    return TomlValue(*Whole<double>(text));
  }
  const bool padded = digits.size() > 1 && digits[0] == '0' && IsDigit(digits[1]);
  if (padded) return std::nullopt;
  if (const auto number = Whole<int64_t>(text)) return TomlValue(*number);
  if (const auto number = Whole<double>(text)) return TomlValue(*number);
  return std::nullopt;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<TomlSetting>> Run() {
    while (at_ < text_.size()) TRY(TakeLine());
    return std::move(settings_);
  }

 private:
  Error Wrong(std::string_view what) const {
    return Error(Code::kInvalid, fmt::format("line {}: {}", line_, what));
  }
  bool Sees(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool AtLineEnd() const { return at_ >= text_.size() || Sees("\n") || Sees("\r\n"); }
  void SkipBlank() {
    while (at_ < text_.size() && kBlank.find(text_[at_]) != std::string_view::npos) ++at_;
  }
  void SkipComment() {
    SkipBlank();
    if (Sees("#")) {
      while (!AtLineEnd()) ++at_;
    }
  }

  Status TakeLine() {
    SkipBlank();
    if (Sees("["))
      TRY(TakeSection());
    else if (!Sees("#") && !AtLineEnd())
      TRY(TakeSetting());
    SkipComment();
    return TakeLineEnd();
  }

  Status TakeLineEnd() {
    if (!AtLineEnd()) return Wrong("something stands behind the end");
    if (at_ >= text_.size()) return Ok();
    at_ += Sees("\n") ? 1 : 2;
    ++line_;
    return Ok();
  }

  Status TakeSection() {
    if (Sees("[[")) return Wrong("lists of sections are not supported");
    ++at_;
    TRY_ASSIGN(section_, TakeKey());
    if (!Sees("]")) return Wrong("a section without its ]");
    ++at_;
    if (!sections_.insert(section_).second) return Wrong("the section stands here a second time");
    return Ok();
  }

  Status TakeSetting() {
    const uint32_t line = line_;
    TRY_ASSIGN(const std::vector<std::string> key, TakeKey());
    if (!Sees("=")) return Wrong("a key without its value");
    ++at_;
    SkipBlank();
    TRY_ASSIGN(TomlValue value, TakeValue());
    std::vector<std::string> path = section_;
    path.insert(path.end(), key.begin(), key.end());
    if (!keys_.insert(path).second) return Wrong("the key stands here a second time");
    // Of a key before the first section, what stands before a dot is one.
    const bool in_section = path.size() > 1;
    settings_.push_back(
        {in_section ? path[0] : "", Join(path, in_section ? 1 : 0), std::move(value), line});
    return Ok();
  }

  // --- Keys

  Result<std::vector<std::string>> TakeKey() {
    std::vector<std::string> parts;
    while (true) {
      SkipBlank();
      TRY_ASSIGN(std::string part, TakeKeyPart());
      parts.push_back(std::move(part));
      SkipBlank();
      if (!Sees(".")) return parts;
      ++at_;
      if (parts.size() == kMostKeyParts) return Wrong("a key has too many parts");
    }
  }

  Result<std::string> TakeKeyPart() {
    if (Sees("\"")) return TakeBasic();
    if (Sees("'")) return TakeLiteral();
    const size_t begin = at_;
    while (at_ < text_.size() && IsBareKey(text_[at_])) ++at_;
    if (at_ == begin) return Wrong("a name is missing, or has to be quoted");
    return std::string(text_.substr(begin, at_ - begin));
  }

  // --- Values

  Result<TomlValue> TakeValue() {
    if (Sees("\"")) return AsValue(TakeBasic());
    if (Sees("'")) return AsValue(TakeLiteral());
    if (Sees("[")) return TakeList();
    if (Sees("{")) return Wrong("tables within a line are not supported; write a section");
    return TakeToken();
  }

  static Result<TomlValue> AsValue(Result<std::string> text) {
    if (!text.ok()) return std::move(text).error();
    return TomlValue(std::move(*text));
  }

  Result<TomlValue> TakeToken() {
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (IsBareKey(text_[at_]) ||
            std::string_view("+.:").find(text_[at_]) != std::string_view::npos))
      ++at_;
    const std::string_view token = text_.substr(begin, at_ - begin);
    if (token.empty()) return Wrong("a value is missing");
    if (token == "true" || token == "false") return TomlValue(token == "true");
    if (const auto number = NumberFrom(token)) return *number;
    const bool date = IsDigit(token[0]) && token.find_first_of("-:") != std::string_view::npos;
    if (date) return TomlValue(OtherValue{"a date or a time"});
    return Wrong(fmt::format("'{}' is no value; texts stand in quotes", token));
  }

  // Over lines, with comments, and with a comma behind the last one.
  Result<TomlValue> TakeList() {
    ++at_;
    std::vector<std::string> texts;
    bool all_texts = true;
    while (true) {
      TRY(SkipBetweenItems());
      if (Sees("]")) break;
      if (Sees("[")) return Wrong("lists of lists are not supported");
      TRY_ASSIGN(TomlValue item, TakeValue());
      if (auto* text = std::get_if<std::string>(&item))
        texts.push_back(std::move(*text));
      else
        all_texts = false;
      TRY(SkipBetweenItems());
      if (!Sees(",") && !Sees("]")) return Wrong("a list without its ]");
      if (Sees(",")) ++at_;
    }
    ++at_;
    if (!all_texts) return TomlValue(OtherValue{"a list of other things than texts"});
    return TomlValue(std::move(texts));
  }

  Status SkipBetweenItems() {
    for (SkipComment(); AtLineEnd(); SkipComment()) {
      if (at_ >= text_.size()) return Wrong("a list without its ]");
      TRY(TakeLineEnd());
    }
    return Ok();
  }

  Result<std::string> TakeLiteral() {
    const size_t end = text_.find_first_of("'\n", at_ + 1);
    if (end == std::string_view::npos || text_[end] == '\n') return Wrong("a text without its end");
    std::string text(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return text;
  }

  Result<std::string> TakeBasic() {
    std::string text;
    for (++at_; !AtLineEnd();) {
      const char c = text_[at_++];
      if (c == '"') return text;
      if (c != '\\')
        text.push_back(c);
      else
        TRY(TakeEscape(text));
    }
    return Wrong("a text without its end");
  }

  Status TakeEscape(std::string& text) {
    constexpr std::string_view kNames = "btnfr\"\\", kMeanings = "\b\t\n\f\r\"\\";
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    if (const size_t found = kNames.find(c); found != std::string_view::npos) {
      text.push_back(kMeanings[found]);
      return Ok();
    }
    if (c == 'u') return TakeCodePoint(text, 4);
    if (c == 'U') return TakeCodePoint(text, 8);
    return Wrong("an unknown escape in a text");
  }

  Status TakeCodePoint(std::string& text, size_t digits) {
    const std::string_view hex = text_.substr(at_, digits);
    uint32_t point = 0;
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), point, 16);
    const bool whole = error == std::errc() && end == hex.data() + digits;
    if (!whole || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
      return Wrong("an escape that is no character");
    AppendUtf8(text, point);
    at_ += digits;
    return Ok();
  }

  const std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  std::vector<std::string> section_;
  std::set<std::vector<std::string>> sections_, keys_;
  std::vector<TomlSetting> settings_;
};

Status CheckText(std::string_view text) {
  if (text.size() > kMaxTomlBytes)
    return Error(Code::kLimit, fmt::format("the file has more than {} bytes", kMaxTomlBytes));
  const auto is_control = [](char c) {
    return (static_cast<uint8_t>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
  };
  if (std::ranges::any_of(text, is_control))
    return Error(Code::kInvalid, "the file has control characters");
  if (!IsValidUtf8(text)) return Error(Code::kInvalid, "the file is not UTF-8");
  return Ok();
}

}  // namespace

Result<std::vector<TomlSetting>> ParseToml(std::string_view text) {
  TRY(CheckText(text));
  return Parser(text).Run();
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
