// One file of git's ignore rules, as a value (gitignore_filter.h has a whole project's).
//
// Parsing and matching are pure functions over bytes, follow git's own matcher in its corners too,
// and never take exponential time, because the patterns may come from a hostile guest. Immutable
// after construction; any number of threads may ask at the same time.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sandglass::undo {

enum class PathKind : uint8_t { kFile, kDir };

// What one set of rules says about a path: nothing, leave it out, or (after a `!`) keep it.
enum class Verdict : uint8_t { kNone, kIgnored, kIncluded };

// One element of a compiled pattern.
struct GlobToken {
  enum class Kind : uint8_t {
    kByte,         // exactly `byte`
    kAnyByte,      // ?      one byte, no slash
    kSet,          // [...]  one byte of sets[set]; a set never holds the slash
    kStar,         // *      any run without a slash
    kAnything,     // **     any run at all
    kDirectories,  // **/    nothing, or any run that ends in a slash
  };
  Kind kind;
  uint8_t byte = 0;
  uint32_t set = 0;
};

using ByteSet = std::bitset<256>;

// The patterns of a whole rules file, back to back: a hostile file full of one-letter lines must
// not cost a heap block each.
struct GlobProgram {
  std::vector<GlobToken> tokens;
  std::vector<ByteSet> sets;
};

class GitignoreRules {
 public:
  // Never fails: what git cannot match (a class without its end, a lone backslash at the end)
  // matches nothing.
  static GitignoreRules Parse(std::string_view text);

  // The last rule that matches decides. `rel_path` is relative to the directory of the rules file
  // and has no empty, `.` or `..` component. Says nothing about rules that match one of its
  // parents: that is the filter's part.
  Verdict Match(std::string_view rel_path, PathKind kind) const;

  bool empty() const { return rules_.empty(); }

 private:
  enum class Scope : uint8_t { kBaseName, kWholePath };
  enum class Applies : uint8_t { kAlways, kDirsOnly };
  struct Rule {
    uint32_t first_token;
    uint32_t token_count;
    uint32_t min_size;  // no shorter text can match
    Scope scope;
    Applies applies;
    Verdict verdict;
  };

  void AddLine(std::string_view line);
  bool RuleMatches(const Rule& rule, std::string_view text) const;

  std::vector<Rule> rules_;
  GlobProgram program_;
};

}  // namespace sandglass::undo
