// FileScan: the matches in one file, fed to it piece by piece. Pure; one thread.
//
// Costs nothing for a file without a match but the search itself: lines are counted and copied only once something is found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "session/files/line_matcher.h"

namespace sandglass::session::files {

enum class GrepMode : uint8_t { kContent, kFilesWithMatches, kCount };
enum class LineKind : uint8_t { kMatch, kContext };

struct GrepLine {
  uint64_t number = 0;  // from 1
  LineKind kind = LineKind::kMatch;
  uint64_t column = 0;  // of the first match, in bytes from 1; 0 for context
  std::string text;     // without its end
  bool cut = false;     // the line is longer; of a match, what is around it is shown
  size_t match =
      0;  // the match that it belongs to: itself, the one that it leads to, or the one that it follows
};

struct ScanOptions {
  GrepMode mode = GrepMode::kContent;
  size_t before = 0, after = 0;   // lines of context
  size_t max_matches = SIZE_MAX;  // of content
  size_t max_line_bytes = 500;
  uint64_t after_line = 0;  // matches up to this line are left out
};

class FileScan {
 public:
  FileScan(const LineMatcher& matcher, const ScanOptions& options)
      : matcher_(matcher), options_(options) {}

  // Whole lines, but for the last piece of a file.
  void Feed(std::string_view text);
  // Nothing more can come.
  bool done() const { return done_; }

  uint64_t matches() const { return matches_; }
  std::vector<GrepLine>& lines() { return lines_; }

 private:
  void OnMatch(std::string_view text, size_t begin, size_t end, size_t at);
  void AddLines(std::string_view text, size_t begin, size_t end, size_t at);
  void AddBefore(std::string_view text, size_t begin);
  void AddAfter(std::string_view text, size_t until);
  void KeepTail(std::string_view text);
  uint64_t NumberAt(std::string_view text, size_t begin);
  GrepLine ContextLine(std::string_view line, uint64_t number) const;
  bool NeedsNumbers() const {
    return options_.mode == GrepMode::kContent || options_.after_line > 0;
  }

  const LineMatcher& matcher_;
  const ScanOptions& options_;
  uint64_t matches_ = 0;
  std::vector<GrepLine> lines_;
  bool done_ = false;

  uint64_t line_ = 1;             // the number of the line at `counted_`
  size_t counted_ = 0;            // in this piece
  size_t shown_ = 0;              // in this piece: what is before has been shown, or must not be
  size_t after_left_ = 0;         // lines that still belong to the last match
  std::deque<std::string> tail_;  // the last lines of earlier pieces that were not shown
};

}  // namespace sandglass::session::files
