#include "undo/gitignore.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

namespace sandglass::undo {
namespace {

// ---- Patterns ----

struct NamedClass {
  std::string_view name;
  bool (*contains)(uint8_t byte);
};

constexpr bool IsBetween(uint8_t byte, char low, char high) { return byte >= low && byte <= high; }
constexpr bool IsDigit(uint8_t byte) { return IsBetween(byte, '0', '9'); }
constexpr bool IsUpper(uint8_t byte) { return IsBetween(byte, 'A', 'Z'); }
constexpr bool IsLower(uint8_t byte) { return IsBetween(byte, 'a', 'z'); }
constexpr bool IsAlpha(uint8_t byte) { return IsUpper(byte) || IsLower(byte); }
constexpr bool IsAlnum(uint8_t byte) { return IsAlpha(byte) || IsDigit(byte); }
constexpr bool IsGraph(uint8_t byte) { return IsBetween(byte, '!', '~'); }
constexpr bool IsBlank(uint8_t byte) { return byte == ' ' || byte == '\t'; }

// ASCII only, whatever the locale. git's notion of space has no vertical tab and no form feed.
constexpr NamedClass kNamedClasses[] = {
    {"alnum", IsAlnum},
    {"alpha", IsAlpha},
    {"blank", IsBlank},
    {"cntrl", [](uint8_t byte) { return byte < 0x20 || byte == 0x7f; }},
    {"digit", IsDigit},
    {"graph", IsGraph},
    {"lower", IsLower},
    {"print", [](uint8_t byte) { return byte == ' ' || IsGraph(byte); }},
    {"punct", [](uint8_t byte) { return IsGraph(byte) && !IsAlnum(byte); }},
    {"space", [](uint8_t byte) { return IsBlank(byte) || byte == '\n' || byte == '\r'; }},
    {"upper", IsUpper},
    {"xdigit", [](uint8_t byte) { return IsDigit(byte) || IsBetween(byte | 0x20, 'a', 'f'); }},
};

// Reads one [...] and leaves the cursor behind its closing bracket.
class SetParser {
 public:
  SetParser(std::string_view pattern, size_t& pos) : pattern_(pattern), pos_(pos) {}

  // Nothing: no end, or an unknown [:class:]; such a pattern matches nothing.
  std::optional<ByteSet> Parse() {
    ++pos_;
    const bool negated = At(pos_) == '!' || At(pos_) == '^';
    if (negated) ++pos_;
    // The first member is taken as it is, so that a set can hold the closing bracket.
    do {
      if (!ParseMember()) return std::nullopt;
    } while (At(pos_) != ']');
    ++pos_;
    if (negated) set_.flip();
    set_.reset('/');
    return set_;
  }

 private:
  // NUL stands for the end: a pattern cannot hold one.
  char At(size_t pos) const { return pos < pattern_.size() ? pattern_[pos] : '\0'; }

  bool ParseMember() {
    if (At(pos_) == '-' && range_start_ && At(pos_ + 1) != '\0' && At(pos_ + 1) != ']') {
      ++pos_;
      return ParseRangeEnd();
    }
    if (At(pos_) == '[' && At(pos_ + 1) == ':') return ParseNamedClass();
    std::optional<uint8_t> byte = TakeByte();
    if (!byte) return false;
    set_.set(*byte);
    range_start_ = byte;
    return true;
  }

  bool ParseRangeEnd() {
    std::optional<uint8_t> last = TakeByte();
    if (!last) return false;
    for (unsigned byte = *range_start_; byte <= *last; ++byte) set_.set(byte);
    range_start_.reset();
    return true;
  }

  bool ParseNamedClass() {
    const size_t name_start = pos_ + 2;
    const size_t end = pattern_.find(']', name_start);
    if (end == std::string_view::npos) return false;
    if (end == name_start || pattern_[end - 1] != ':') {
      set_.set('[');
      range_start_ = '[';
      ++pos_;
      return true;
    }
    const std::string_view name = pattern_.substr(name_start, end - 1 - name_start);
    const auto* found = std::ranges::find(kNamedClasses, name, &NamedClass::name);
    if (found == std::end(kNamedClasses)) return false;
    for (unsigned byte = 0; byte < set_.size(); ++byte) {
      if (found->contains(static_cast<uint8_t>(byte))) set_.set(byte);
    }
    range_start_.reset();
    pos_ = end + 1;
    return true;
  }

  std::optional<uint8_t> TakeByte() {
    if (At(pos_) == '\\') ++pos_;
    if (At(pos_) == '\0') return std::nullopt;
    return static_cast<uint8_t>(pattern_[pos_++]);
  }

  std::string_view pattern_;
  size_t& pos_;
  ByteSet set_;
  std::optional<uint8_t> range_start_;
};

class GlobCompiler {
 public:
  GlobCompiler(std::string_view pattern, GlobProgram& out) : pattern_(pattern), out_(out) {}

  // False: the pattern matches nothing, and what was appended is of no use.
  bool Compile() {
    CompileLiteralPrefix();
    while (pos_ < pattern_.size()) {
      if (!CompileNext()) return false;
    }
    return true;
  }

 private:
  // git compares the part before the first wildcard by itself and hands only the rest to its
  // matcher. Hence `**` counts as "at the start" there although no slash precedes it: /ab**/c
  // matches abX/Y/c. We keep that.
  void CompileLiteralPrefix() {
    const size_t special = pattern_.find_first_of("*?[\\");
    for (char c : pattern_.substr(0, special)) PutByte(c);
    pattern_.remove_prefix(std::min(special, pattern_.size()));
  }

  bool CompileNext() {
    switch (pattern_[pos_]) {
      case '*':
        CompileStars();
        return true;
      case '?':
        Put({.kind = GlobToken::Kind::kAnyByte});
        ++pos_;
        return true;
      case '[':
        return CompileSet();
      case '\\':
        if (++pos_ == pattern_.size()) return false;
        [[fallthrough]];
      default:
        PutByte(pattern_[pos_++]);
        return true;
    }
  }

  void CompileStars() {
    const size_t start = pos_;
    pos_ = std::min(pattern_.find_first_not_of('*', start), pattern_.size());
    const bool is_deep = pos_ - start >= 2 && (start == 0 || pattern_[start - 1] == '/');
    const std::string_view rest = pattern_.substr(pos_);
    if (is_deep && rest.starts_with('/')) {
      Put({.kind = GlobToken::Kind::kDirectories});
      ++pos_;
    } else if (is_deep && (rest.empty() || rest.starts_with("\\/"))) {
      Put({.kind = GlobToken::Kind::kAnything});
    } else {
      Put({.kind = GlobToken::Kind::kStar});
    }
  }

  bool CompileSet() {
    std::optional<ByteSet> set = SetParser(pattern_, pos_).Parse();
    if (!set) return false;
    Put({.kind = GlobToken::Kind::kSet, .set = static_cast<uint32_t>(out_.sets.size())});
    out_.sets.push_back(*set);
    return true;
  }

  void PutByte(char c) { Put({.kind = GlobToken::Kind::kByte, .byte = static_cast<uint8_t>(c)}); }
  void Put(GlobToken token) { out_.tokens.push_back(token); }

  std::string_view pattern_;
  size_t pos_ = 0;
  GlobProgram& out_;
};

bool ConsumesOneByte(const GlobToken& token) {
  switch (token.kind) {
    case GlobToken::Kind::kByte:
    case GlobToken::Kind::kAnyByte:
    case GlobToken::Kind::kSet:
      return true;
    case GlobToken::Kind::kStar:
    case GlobToken::Kind::kAnything:
    case GlobToken::Kind::kDirectories:
      return false;
  }
  return false;
}

// Matches with two places to return to: the newest `*` and the newest `**`. Older ones need never
// be tried again:
// - Up to the next slash, whatever an older `*` could still reach, the newer one reaches too. Where
//   a pattern slash has been matched there is only one way to have got there, for nothing but a
//   pattern slash or a `**` matches a slash.
// - What stands before a `**` was matched as early as possible; the `**` covers any later place.
// So the time is at most pattern size times text size for each start of the newest `**`.
class GlobMatcher {
 public:
  GlobMatcher(std::span<const GlobToken> tokens, std::span<const ByteSet> sets,
              std::string_view text)
      : tokens_(tokens), sets_(sets), text_(text) {}

  bool Matches() {
    while (token_ < tokens_.size() || at_ < text_.size()) {
      if (!Step() && !Backtrack()) return false;
    }
    return true;
  }

 private:
  struct Resume {
    size_t token;
    size_t at;
  };

  bool Step() {
    if (token_ == tokens_.size()) return false;
    const GlobToken& token = tokens_[token_];
    if (ConsumesOneByte(token)) return StepByte(token);
    ++token_;
    if (token.kind == GlobToken::Kind::kStar) {
      star_ = Resume{token_, at_};
    } else {
      star_.reset();
      deep_ = Resume{token_, at_};
    }
    return true;
  }

  bool StepByte(const GlobToken& token) {
    if (at_ == text_.size() || !Accepts(token, static_cast<uint8_t>(text_[at_]))) return false;
    if (text_[at_] == '/') star_.reset();
    ++token_;
    ++at_;
    return true;
  }

  bool Accepts(const GlobToken& token, uint8_t byte) const {
    if (token.kind == GlobToken::Kind::kByte) return token.byte == byte;
    if (token.kind == GlobToken::Kind::kAnyByte) return byte != '/';
    return sets_[token.set].test(byte);
  }

  bool Backtrack() {
    if (star_ && star_->at < text_.size() && text_[star_->at] != '/') {
      ++star_->at;
      return Continue(*star_);
    }
    star_.reset();
    return deep_ && WidenDeep() && Continue(*deep_);
  }

  bool WidenDeep() {
    if (tokens_[deep_->token - 1].kind == GlobToken::Kind::kAnything) {
      return deep_->at++ < text_.size();
    }
    const size_t slash = text_.find('/', deep_->at);
    deep_->at = slash + 1;
    return slash != std::string_view::npos;
  }

  bool Continue(const Resume& resume) {
    token_ = resume.token;
    at_ = resume.at;
    return true;
  }

  std::span<const GlobToken> tokens_;
  std::span<const ByteSet> sets_;
  std::string_view text_;
  size_t token_ = 0;
  size_t at_ = 0;
  std::optional<Resume> star_;
  std::optional<Resume> deep_;
};

// ---- Lines ----

// Spaces at the end do not count unless a backslash guards them. Tabs do count.
std::string_view TrimTrailingSpaces(std::string_view line) {
  size_t keep = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ') continue;
    if (line[i] == '\\' && i + 1 < line.size()) ++i;
    keep = i + 1;
  }
  return line.substr(0, keep);
}

// The pattern text of a line, empty where it holds none. Like git we end it at a NUL and drop one
// CR before the newline.
std::string_view PatternOfLine(std::string_view line) {
  if (line.starts_with('#')) return {};
  if (line.ends_with('\r')) line.remove_suffix(1);
  return TrimTrailingSpaces(line.substr(0, line.find('\0')));
}

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

}  // namespace

GitignoreRules GitignoreRules::Parse(std::string_view text) {
  GitignoreRules rules;
  TakePrefix(text, "\xef\xbb\xbf");
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    rules.AddLine(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rules;
}

void GitignoreRules::AddLine(std::string_view line) {
  std::string_view pattern = PatternOfLine(line);
  Rule rule{};
  rule.verdict = TakePrefix(pattern, "!") ? Verdict::kIncluded : Verdict::kIgnored;
  if (pattern.ends_with('/')) {
    rule.applies = Applies::kDirsOnly;
    pattern.remove_suffix(1);
  }
  if (pattern.find('/') != std::string_view::npos) rule.scope = Scope::kWholePath;
  TakePrefix(pattern, "/");
  if (pattern.empty()) return;

  const size_t first = program_.tokens.size();
  const size_t first_set = program_.sets.size();
  if (!GlobCompiler(pattern, program_).Compile()) {
    program_.tokens.resize(first);
    program_.sets.resize(first_set);
    return;
  }
  const auto tokens = std::span(program_.tokens).subspan(first);
  rule.first_token = static_cast<uint32_t>(first);
  rule.token_count = static_cast<uint32_t>(tokens.size());
  rule.min_size = static_cast<uint32_t>(std::ranges::count_if(tokens, ConsumesOneByte));
  rules_.push_back(rule);
}

Verdict GitignoreRules::Match(std::string_view rel_path, PathKind kind) const {
  const std::string_view base_name = BaseName(rel_path);
  if (base_name.empty()) return Verdict::kNone;
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->applies == Applies::kDirsOnly && kind != PathKind::kDir) continue;
    if (RuleMatches(*rule, rule->scope == Scope::kBaseName ? base_name : rel_path)) {
      return rule->verdict;
    }
  }
  return Verdict::kNone;
}

bool GitignoreRules::RuleMatches(const Rule& rule, std::string_view text) const {
  if (text.size() < rule.min_size) return false;
  const auto tokens = std::span(program_.tokens).subspan(rule.first_token, rule.token_count);
  // Most rules are `name` or `*.ext` and most paths match none of them: the last byte alone tells
  // them apart.
  const GlobToken& last = tokens.back();
  if (last.kind == GlobToken::Kind::kByte && last.byte != static_cast<uint8_t>(text.back())) {
    return false;
  }
  return GlobMatcher(tokens, program_.sets, text).Matches();
}

}  // namespace sandglass::undo
