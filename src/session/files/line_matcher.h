// LineMatcher: finds the next match of a pattern in text of many lines; a match never crosses the end of a line. Patterns come from
// people and models, so the engine is RE2: time is linear in the text, whatever the pattern, and memory is bounded.
//
// Most patterns are plain text or hold some: that is looked for first, at the speed of memory, and the engine sees only lines
// that have it. Immutable, but a thread is fastest with a matcher of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace sandglass::session::files {

enum class PatternKind : uint8_t { kExpression, kLiteral };
enum class LetterCase : uint8_t { kSensitive, kInsensitive };

struct LinePattern {
  std::string_view text;  // RE2's syntax; valid UTF-8
  PatternKind kind = PatternKind::kExpression;
  LetterCase letter_case = LetterCase::kSensitive;
};

class LineMatcher {
 public:
  // kInvalid: no such expression (the message says where), not UTF-8, or one that needs too much memory.
  static Result<LineMatcher> Compile(const LinePattern& pattern);
  LineMatcher(LineMatcher&&) noexcept;
  LineMatcher& operator=(LineMatcher&&) noexcept;
  ~LineMatcher();

  // Where the first match at or behind `from`, which is the beginning of a line, begins.
  std::optional<size_t> Find(std::string_view text, size_t from) const;

 private:
  LineMatcher(std::unique_ptr<re2::RE2> expression, std::vector<std::string> needles);
  std::optional<size_t> Search(std::string_view text, size_t from, size_t end) const;
  size_t FindNeedle(std::string_view text, size_t from) const;

  std::unique_ptr<re2::RE2> expression_;  // null: the only needle is the pattern
  std::vector<std::string> needles_;      // each match has one of them; none: nobody can tell
};

// Texts of which each match of the expression has one in it, as far as that is easy to see; none: it is not. Pure; for tests.
std::vector<std::string> RequiredTexts(std::string_view expression);

}  // namespace sandglass::session::files
