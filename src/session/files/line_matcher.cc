#include "session/files/line_matcher.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/json.h"

namespace sandglass::session::files {
namespace {

constexpr size_t kMaxPatternBytes = 64 << 10;
constexpr int64_t kMaxMemory = 64 << 20;
// Shorter ones are in too many lines to be worth a look.
constexpr size_t kShortestNeedle = 2;
constexpr size_t kMostNeedles = 8;
constexpr size_t kBlockBytes = 8 << 10;

constexpr std::string_view kSpecial = "\\.+*?()|[]{}^$";

re2::RE2::Options OptionsFor(const LinePattern& pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxMemory);
  options.set_never_nl(true);
  options.set_case_sensitive(pattern.letter_case == LetterCase::kSensitive);
  options.set_literal(pattern.kind == PatternKind::kLiteral);
  return options;
}

bool IsPunctuation(char c) {
  return kSpecial.find(c) != std::string_view::npos || c == '/' || c == '-';
}

using Needles = std::vector<std::string>;

// Behind the class that begins at `at`.
size_t SkipClass(std::string_view expression, size_t at) {
  ++at;
  if (at < expression.size() && expression[at] == '^') ++at;
  if (at < expression.size() && expression[at] == ']') ++at;
  while (at < expression.size() && expression[at] != ']') {
    const bool named = expression.substr(at).starts_with("[:");
    const size_t end = named ? expression.find(":]", at) : std::string_view::npos;
    if (end != std::string_view::npos)
      at = end + 2;
    else
      at += expression[at] == '\\' ? 2 : 1;
  }
  return at + 1;
}

// At bars that stand in no group and no class.
std::vector<std::string_view> Alternatives(std::string_view expression) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t at = 0; at < expression.size();) {
    const char c = expression[at];
    if (c == '[') {
      at = SkipClass(expression, at);
      continue;
    }
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == '|' && depth == 0) {
      parts.push_back(expression.substr(begin, at - begin));
      begin = at + 1;
    }
    at += c == '\\' ? 2 : 1;
  }
  parts.push_back(expression.substr(std::min(begin, expression.size())));
  return parts;
}

size_t Shortest(const Needles& needles) {
  if (needles.empty()) return 0;
  return std::ranges::min(needles, {}, &std::string::size).size();
}

// Reads an expression without alternatives from the left, as far as it is a row of characters and simple things between them.
class NeedleFinder {
 public:
  explicit NeedleFinder(std::string_view expression) : rest_(expression) {}

  Needles Run() {
    while (!rest_.empty() && TakeOne()) {
    }
    EndRun();
    return std::move(best_);
  }

 private:
  // False: from here on it is not easy any more.
  bool TakeOne() {
    const char c = rest_.front();
    switch (c) {
      case '(':
        return TakeGroup();
      case '[':
      case ')':
      case '|':
        return false;
      case '.':
      case '^':
      case '$':
      case '+':
        EndRun();
        break;
      case '*':
      case '?':
        DropLast();
        EndRun();
        break;
      case '{':
        return TakeCount();
      case '\\':
        return TakeEscape();
      default:
        run_.push_back(c);
    }
    rest_.remove_prefix(1);
    return true;
  }

  bool TakeCount() {
    const size_t end = rest_.find('}');
    if (end == std::string_view::npos) return false;
    DropLast();  // the count may be 0
    EndRun();
    rest_.remove_prefix(end + 1);
    return true;
  }

  bool TakeEscape() {
    constexpr std::string_view kSimple = "wWdDsSbB";
    if (rest_.size() < 2) return false;
    const char c = rest_[1];
    if (IsPunctuation(c))
      run_.push_back(c);
    else if (kSimple.find(c) != std::string_view::npos)
      EndRun();
    else
      return false;
    rest_.remove_prefix(2);
    return true;
  }

  // (one|two) of plain texts, not made optional by what follows.
  bool TakeGroup() {
    EndRun();
    const size_t end = rest_.find(')');
    if (end == std::string_view::npos) return false;
    std::string_view inside = rest_.substr(1, end - 1);
    if (inside.starts_with("?:")) inside.remove_prefix(2);
    if (inside.find_first_of("\\.+*?()[]{}^$") != std::string_view::npos) return false;
    rest_.remove_prefix(end + 1);
    const bool optional =
        !rest_.empty() && std::string_view("*?{").find(rest_[0]) != std::string_view::npos;
    if (optional) return false;
    Needles found;
    for (const std::string_view part : Alternatives(inside)) found.emplace_back(part);
    Offer(std::move(found));
    return true;
  }

  // The whole of the last character.
  void DropLast() {
    while (!run_.empty() && (run_.back() & 0xC0) == 0x80) run_.pop_back();
    if (!run_.empty()) run_.pop_back();
  }

  void EndRun() {
    if (!run_.empty()) Offer({run_});
    run_.clear();
  }

  // Longer ones are rarer.
  void Offer(Needles needles) {
    if (Shortest(needles) > Shortest(best_)) best_ = std::move(needles);
  }

  std::string_view rest_;
  std::string run_;
  Needles best_;
};

// The expression is this text, with nothing special about it.
std::optional<std::string> AsLiteral(const LinePattern& pattern) {
  if (pattern.letter_case == LetterCase::kInsensitive) return std::nullopt;
  if (pattern.kind == PatternKind::kLiteral) return std::string(pattern.text);
  std::string text;
  for (size_t i = 0; i < pattern.text.size(); ++i) {
    char c = pattern.text[i];
    if (c == '\\' && i + 1 < pattern.text.size() && IsPunctuation(pattern.text[i + 1]))
      c = pattern.text[++i];
    else if (kSpecial.find(c) != std::string_view::npos)
      return std::nullopt;
    text.push_back(c);
  }
  return text;
}

size_t FindText(std::string_view text, std::string_view needle, size_t from) {
  const void* found =
      ::memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

Status CheckText(const LinePattern& pattern) {
  if (pattern.text.size() > kMaxPatternBytes)
    return Error(Code::kInvalid, fmt::format("a pattern has at most {} bytes", kMaxPatternBytes));
  if (!IsValidUtf8(pattern.text)) return Error(Code::kInvalid, "the pattern is not UTF-8");
  if (pattern.text.find('\n') != std::string_view::npos)
    return Error(Code::kInvalid, "a pattern has no line break: matches are within one line");
  return Ok();
}

}  // namespace

std::vector<std::string> RequiredTexts(std::string_view expression) {
  // Flags reach over bars, and quoted text hides them.
  const bool has_flags = expression.find("(?") != std::string_view::npos;
  if (expression.find("\\Q") != std::string_view::npos) return {};
  const std::vector<std::string_view> parts = Alternatives(expression);
  if (parts.size() > kMostNeedles || (parts.size() > 1 && has_flags)) return {};
  Needles all;
  for (const std::string_view part : parts) {
    Needles found = NeedleFinder(part).Run();
    if (Shortest(found) < kShortestNeedle) return {};
    std::ranges::move(found, std::back_inserter(all));
  }
  return all.size() > kMostNeedles ? Needles() : all;
}

LineMatcher::LineMatcher(std::unique_ptr<re2::RE2> expression, std::vector<std::string> needles)
    : expression_(std::move(expression)), needles_(std::move(needles)) {}
LineMatcher::LineMatcher(LineMatcher&&) noexcept = default;
LineMatcher& LineMatcher::operator=(LineMatcher&&) noexcept = default;
LineMatcher::~LineMatcher() = default;

Result<LineMatcher> LineMatcher::Compile(const LinePattern& pattern) {
  TRY(CheckText(pattern));
  if (auto literal = AsLiteral(pattern); literal && !literal->empty())
    return LineMatcher(nullptr, {std::move(*literal)});
  const re2::RE2::Options options = OptionsFor(pattern);
  // As it is given first: what is wrong with it must not be hidden, or moved, by what is put before it.
  const re2::RE2 given({pattern.text.data(), pattern.text.size()}, options);
  if (!given.ok())
    return Error(Code::kInvalid,
                 fmt::format("the expression '{}' does not work: {}", pattern.text, given.error()));
  const std::string_view lines = pattern.kind == PatternKind::kLiteral ? "" : "(?m)";
  auto expression = std::make_unique<re2::RE2>(std::string(lines).append(pattern.text), options);
  if (!expression->ok())
    return Error(Code::kInvalid,
                 fmt::format("the expression does not work: {}", expression->error()));
  const bool has_needles =
      pattern.letter_case == LetterCase::kSensitive && pattern.kind == PatternKind::kExpression;
  return LineMatcher(std::move(expression), has_needles ? RequiredTexts(pattern.text) : Needles());
}

std::optional<size_t> LineMatcher::Search(std::string_view text, size_t from, size_t end) const {
  re2::StringPiece found;
  if (!expression_->Match({text.data(), text.size()}, from, end, re2::RE2::UNANCHORED, &found, 1))
    return std::nullopt;
  return static_cast<size_t>(found.data() - text.data());
}

// In blocks, so that a needle that is nowhere is not looked for up to the end again and again.
size_t LineMatcher::FindNeedle(std::string_view text, size_t from) const {
  if (needles_.size() == 1) return FindText(text, needles_.front(), from);
  for (size_t block = from; block < text.size(); block += kBlockBytes) {
    size_t nearest = std::string_view::npos;
    for (const std::string& needle : needles_) {
      const size_t reach = std::min(text.size(), block + kBlockBytes + needle.size() - 1);
      nearest = std::min(nearest, FindText(text.substr(0, reach), needle, block));
    }
    if (nearest != std::string_view::npos) return nearest;
  }
  return std::string_view::npos;
}

std::optional<size_t> LineMatcher::Find(std::string_view text, size_t from) const {
  if (needles_.empty()) return Search(text, from, text.size());
  while (from < text.size()) {
    const size_t at = FindNeedle(text, from);
    if (at == std::string_view::npos) return std::nullopt;
    if (expression_ == nullptr) return at;
    const size_t brk = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
    const size_t begin = brk == std::string_view::npos ? 0 : brk + 1;
    const size_t end = std::min(text.find('\n', at), text.size());
    if (const auto found = Search(text, std::max(begin, from), end)) return found;
    from = end + 1;
  }
  return std::nullopt;
}

}  // namespace sandglass::session::files
