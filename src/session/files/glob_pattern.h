// GlobPattern: `src/**/*.{cc,h}` and the like, for paths from a folder.
//
//   ?       one character, no slash               [a-z] [!a-z]  one character (ASCII when negated or in a range)
//   *       any run without a slash               {a,b}         either; may be nested
//   **      as a whole component: any number of them, also none; at the end: everything below
//   \x      x itself
//
// Names are bytes; `*` matches all of them, also what is not UTF-8. A pattern is translated for RE2, which matches in linear time,
// so it may come from anyone. Immutable; any number of threads may ask at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace sandglass::session::files {

enum class GlobAnchor : uint8_t {
  kPath,       // the pattern is for the whole path
  kNameOrPath  // one without a slash is for the last name alone, at any depth
};

class GlobPattern {
 public:
  // kInvalid: not such a pattern, or longer than any that a person writes.
  static Result<GlobPattern> Compile(std::string_view pattern, GlobAnchor anchor);
  GlobPattern(GlobPattern&&) noexcept;
  GlobPattern& operator=(GlobPattern&&) noexcept;
  ~GlobPattern();

  bool Matches(std::string_view path) const;

  // The folders that every match lies in: "src/lib" for "src/lib/*.cc".
  const std::string& literal_folder() const { return literal_folder_; }
  // Whether it names something that begins with a dot.
  bool names_hidden() const { return names_hidden_; }

 private:
  GlobPattern(std::unique_ptr<re2::RE2> expression, std::string literal_folder, bool names_hidden);
  std::unique_ptr<re2::RE2> expression_;
  std::string literal_folder_;
  bool names_hidden_;
};

// The same as a regular expression over bytes; for tests. kInvalid.
Result<std::string> GlobToExpression(std::string_view pattern);

}  // namespace sandglass::session::files
