// Grep: the lines of a project's files that match a pattern, in the order of their paths, by several threads.
//
// Every page is the same whatever the threads do, and a page begins behind a place instead of at a number, so that memory follows
// the size of a page and what changes meanwhile shifts nothing. What git ignores, what is hidden and what is binary is left out, as
// far as not asked for. UTF-16 with a mark is searched as text up to kMostUtf16Bytes. A line of more than kLongestLineBytes is taken
// as several. Free function, blocking.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "session/files/file_scan.h"
#include "session/files/line_matcher.h"
#include "session/files/tree_walk.h"

namespace sandglass::session::files {

inline constexpr size_t kDefaultGrepMatches = 1'000;
inline constexpr size_t kMostContextLines = 100;
inline constexpr size_t kLongestLineBytes = 8 << 20;
inline constexpr size_t kMostUtf16Bytes = 8 << 20;
// What a page may take of memory at most: pages of less than the limit follow from it where lines and contexts are long.
inline constexpr size_t kMostPageBytes = 32 << 20;

// The last thing of a page: a line of a file, or (line 0) a whole file.
struct GrepCursor {
  std::string path;
  uint64_t line = 0;
};

struct GrepRequest {
  LinePattern pattern;
  std::string_view
      path;  // a folder, "" for the root, or one file; looked at also if git ignores it
  // A file must match one of these, if there are any that do not begin with `!`, and none of those that do. One without a slash is for
  // names, others are for paths from the folder.
  std::span<const std::string> globs = {};
  GrepMode mode = GrepMode::kContent;
  size_t before = 0, after = 0;  // lines of context
  Hidden hidden = Hidden::kSkip;
  IgnoreRules ignore = IgnoreRules::kRespect;
  size_t max_line_bytes = 500;
  size_t limit = kDefaultGrepMatches;  // matches of content, else files
  std::optional<GrepCursor> after_page = {};
  std::stop_token stop = {};
};

struct GrepFile {
  std::string path;      // from the root
  uint64_t matches = 0;  // lines: all of them for a count, those of this page for content, else 1
  std::vector<GrepLine> lines;
};

struct GrepCounts {
  uint64_t searched = 0, binary = 0,
           unreadable = 0;  // files; of a page that was full early, not all
  WalkCounts walked;
};

struct GrepResult {
  std::vector<GrepFile> files;
  std::optional<GrepCursor> next;  // there is more: give it as `after_page`
  GrepCounts counts;
};

// kInvalid: the pattern, a glob, the limits or the path. Others as WalkTree.
Result<GrepResult> Grep(int root_fd, const GrepRequest& request);

}  // namespace sandglass::session::files
