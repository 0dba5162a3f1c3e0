#include "session/files/glob_pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <bitset>
#include <utility>

#include "base/json.h"

namespace sandglass::session::files {
namespace {

constexpr size_t kMaxPatternBytes = 2'048;
constexpr int kMaxNesting = 32;
constexpr int64_t kMaxMemory = 8 << 20;

// RE2 works on bytes here (Latin-1), so a character beyond ASCII is a sequence.
constexpr std::string_view kBeyondAscii = "|[\\xc0-\\xf7][\\x80-\\xbf]+";
constexpr std::string_view kOneCharacter = "(?:[^/\\x80-\\xff]|[\\xc0-\\xf7][\\x80-\\xbf]+)";

bool IsAscii(char c) { return (c & 0x80) == 0; }

Error Wrong(std::string_view pattern, std::string_view why) {
  return Error(Code::kInvalid, fmt::format("the pattern '{}' {}", pattern, why));
}

void AppendLiteral(std::string& out, char c) {
  const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '/' || c == '-';
  if (plain)
    out.push_back(c);
  else
    out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> Run() {
    while (at_ < pattern_.size()) TRY(TakeOne());
    if (nesting_ > 0) return Wrong(pattern_, "has a { without its }");
    return std::move(out_);
  }

 private:
  Status TakeOne() {
    const char c = pattern_[at_];
    switch (c) {
      case '*':
        TakeStars();
        return Ok();
      case '?':
        out_ += kOneCharacter;
        break;
      case '[':
        return TakeClass();
      case '{':
        return OpenBrace();
      case '}':
        return CloseBrace();
      case ',':
        nesting_ > 0 ? out_.push_back('|') : AppendLiteral(out_, c);
        break;
      case '\\':
        if (++at_ == pattern_.size()) return Wrong(pattern_, "ends with a backslash");
        [[fallthrough]];
      default:
        AppendLiteral(out_, pattern_[at_]);
    }
    ++at_;
    return Ok();
  }

  bool BeginsComponent() const {
    return at_ == 0 || pattern_[at_ - 1] == '/' ||
           (nesting_ > 0 && (pattern_[at_ - 1] == '{' || pattern_[at_ - 1] == ','));
  }
  bool EndsComponent(size_t at) const {
    return at == pattern_.size() || pattern_[at] == '/' ||
           (nesting_ > 0 && (pattern_[at] == '}' || pattern_[at] == ','));
  }

  // Two stars that are not a component of their own are as one.
  void TakeStars() {
    const size_t end = std::min(pattern_.find_first_not_of('*', at_), pattern_.size());
    const bool component = end - at_ == 2 && BeginsComponent() && EndsComponent(end);
    at_ = end;
    if (!component) {
      out_ += "[^/]*";
    } else if (end < pattern_.size() && pattern_[end] == '/') {
      out_ += "(?:.*/)?";
      ++at_;
    } else {
      out_ += ".*";
    }
  }

  Status OpenBrace() {
    if (++nesting_ > kMaxNesting) return Wrong(pattern_, "nests braces too deep");
    out_ += "(?:";
    ++at_;
    return Ok();
  }

  Status CloseBrace() {
    if (nesting_ == 0) {
      AppendLiteral(out_, '}');
    } else {
      --nesting_;
      out_.push_back(')');
    }
    ++at_;
    return Ok();
  }

  // ASCII by its codes, other characters as alternatives beside them.
  struct Class {
    bool negated = false;
    std::bitset<128> ascii;
    std::string others;
  };

  Status TakeClass() {
    Class found;
    ++at_;
    if (at_ < pattern_.size() && (pattern_[at_] == '!' || pattern_[at_] == '^')) {
      found.negated = true;
      ++at_;
    }
    for (bool first = true;; first = false) {
      if (at_ >= pattern_.size()) return Wrong(pattern_, "has a [ without its ]");
      if (pattern_[at_] == ']' && !first) break;
      TRY(TakeMember(found));
    }
    ++at_;
    return Emit(found);
  }

  // A character, with a backslash before it or not.
  char TakeCharacter() {
    if (pattern_[at_] == '\\' && at_ + 1 < pattern_.size()) ++at_;
    return pattern_[at_++];
  }

  Status TakeMember(Class& found) {
    if (!IsAscii(pattern_[at_])) return TakeSequence(found);
    const char from = TakeCharacter();
    if (from == '/' || !IsAscii(from)) return Wrong(pattern_, "has a class that is none");
    const bool range =
        at_ + 1 < pattern_.size() && pattern_[at_] == '-' && pattern_[at_ + 1] != ']';
    if (range) ++at_;
    const char to = range ? TakeCharacter() : from;
    if (!IsAscii(to) || to < from) return Wrong(pattern_, "has a range that is none in ASCII");
    for (auto c = static_cast<uint8_t>(from); c <= static_cast<uint8_t>(to); ++c)
      found.ascii.set(c);
    return Ok();
  }

  Status TakeSequence(Class& found) {
    size_t end = at_ + 1;
    while (end < pattern_.size() && (pattern_[end] & 0xC0) == 0x80) ++end;
    if (!IsValidUtf8(pattern_.substr(at_, end - at_))) return Wrong(pattern_, "is not UTF-8");
    found.others += '|';
    for (; at_ < end; ++at_) AppendLiteral(found.others, pattern_[at_]);
    return Ok();
  }

  Status Emit(Class& found) {
    if (found.negated && !found.others.empty())
      return Wrong(pattern_, "negates characters beyond ASCII");
    if (found.negated) {
      found.ascii.flip();
      found.others = kBeyondAscii;
    }
    found.ascii.reset('/');
    out_ += "(?:[";
    for (size_t c = 0; c < found.ascii.size(); ++c) {
      if (found.ascii[c]) out_ += fmt::format("\\x{:02x}", c);
    }
    // Never empty: a byte that no path has.
    out_ += "\\x00]" + found.others + ")";
    return Ok();
  }

  const std::string_view pattern_;
  size_t at_ = 0;
  int nesting_ = 0;
  std::string out_;
};

// The part before the first component that has something special in it.
std::string LiteralFolder(std::string_view pattern) {
  const size_t special = std::min(pattern.find_first_of("*?[{\\"), pattern.size());
  const size_t slash = pattern.substr(0, special).rfind('/');
  return slash == std::string_view::npos ? "" : std::string(pattern.substr(0, slash));
}

bool NamesHidden(std::string_view pattern) {
  bool begins = true;  // of a component, or of an alternative that may be one
  for (const char c : pattern) {
    if (begins && c == '.') return true;
    begins = c == '/' || c == '{' || c == ',';
  }
  return false;
}

}  // namespace

GlobPattern::GlobPattern(std::unique_ptr<re2::RE2> expression, std::string literal_folder,
                         bool names_hidden)
    : expression_(std::move(expression)),
      literal_folder_(std::move(literal_folder)),
      names_hidden_(names_hidden) {}
GlobPattern::GlobPattern(GlobPattern&&) noexcept = default;
GlobPattern& GlobPattern::operator=(GlobPattern&&) noexcept = default;
GlobPattern::~GlobPattern() = default;

Result<std::string> GlobToExpression(std::string_view pattern) {
  if (pattern.empty()) return Error(Code::kInvalid, "the pattern is empty");
  if (pattern.size() > kMaxPatternBytes)
    return Error(Code::kInvalid, fmt::format("a pattern has at most {} bytes", kMaxPatternBytes));
  if (pattern.find('\0') != std::string_view::npos)
    return Error(Code::kInvalid, "a pattern has no NUL");
  return Translator(pattern).Run();
}

Result<GlobPattern> GlobPattern::Compile(std::string_view pattern, GlobAnchor anchor) {
  while (pattern.starts_with("./")) pattern.remove_prefix(2);
  const bool any_depth =
      anchor == GlobAnchor::kNameOrPath && pattern.find('/') == std::string_view::npos;
  if (pattern.starts_with('/'))
    return Wrong(pattern, "is absolute; patterns are relative to the folder that is searched");
  TRY_ASSIGN(const std::string expression, GlobToExpression(pattern));
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  options.set_dot_nl(true);
  options.set_log_errors(false);
  options.set_max_mem(kMaxMemory);
  auto compiled =
      std::make_unique<re2::RE2>(any_depth ? "(?:.*/)?" + expression : expression, options);
  if (!compiled->ok()) return Wrong(pattern, "is too large");
  return GlobPattern(std::move(compiled), any_depth ? "" : LiteralFolder(pattern),
                     NamesHidden(pattern));
}

bool GlobPattern::Matches(std::string_view path) const {
  return re2::RE2::FullMatch({path.data(), path.size()}, *expression_);
}

}  // namespace sandglass::session::files
