// What git would ignore, for the option that keeps ignored files out of undo.
//
// Two parts. GitignoreRules is one rules file as a value: parsing and matching are pure functions
// over bytes, follow git's own matcher in its corners too, and never take exponential time, because
// the patterns may come from a hostile guest. GitignoreFilter is a whole project: every rules file
// is read once, when the filter is loaded. A filter that looked again later would let a command
// write a .gitignore first and so keep its own changes out of undo.
//
// Both are immutable after construction; any number of threads may ask at the same time.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

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

// Bounds on reading a project's rules, so that a hostile tree cannot hold up the opening of a
// session.
struct GitignoreLimits {
  size_t max_file_bytes = size_t{1} << 20;
  size_t max_total_bytes = size_t{8} << 20;
  size_t max_directories = 500'000;
  size_t max_depth = 4'096;
};

class GitignoreFilter {
 public:
  // Reads .git/info/exclude and each .gitignore below the root, but none inside an ignored
  // directory or inside .git. Symbolic links are never followed, neither to directories nor to
  // rules files; a directory that cannot be listed adds no rules. A user's global ignore file is
  // not read: undo of a project must not depend on who runs it.
  // `root_fd` is borrowed for the call only. Blocks on the walk.
  // kLimit: a limit was passed, and the message says which. kDenied: a rules file exists but cannot
  // be read; guessing its content would silently decide what undo protects.
  static Result<GitignoreFilter> Load(int root_fd, const GitignoreLimits& limits = {});

  // Whether git would ignore the path. As in git, nothing below an ignored directory can be
  // included again. A `.git` and all below it counts as not ignored, whatever the patterns say: it
  // is the project's history. `rel_path` is relative to the root and has no empty, `.` or `..`
  // component; the root itself is "".
  bool Ignores(std::string_view rel_path, PathKind kind) const;

 private:
  class Loader;
  struct Layer {
    size_t base_size;  // bytes of the path that lead to the rules' directory, its slash included
    const GitignoreRules* rules;
  };

  GitignoreFilter() = default;
  void PushLayer(std::string_view dir, std::vector<Layer>& layers) const;
  bool IgnoredByLayers(std::string_view rel_path, PathKind kind,
                       const std::vector<Layer>& layers) const;

  GitignoreRules exclude_;
  std::map<std::string, GitignoreRules, std::less<>> by_dir_;  // only directories that have rules
};

}  // namespace sandglass::undo
