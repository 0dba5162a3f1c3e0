// Glob: the files of a project whose paths match a pattern, newest first or by name. What git ignores and what is hidden is left out
// unless asked for. Free function, several threads inside, blocking.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "session/files/tree_walk.h"

namespace sandglass::session::files {

inline constexpr size_t kDefaultGlobMatches = 1'000;
// With the offset: what has to be kept to find a page.
inline constexpr size_t kMostGlobMatches = 200'000;

enum class GlobOrder : uint8_t { kNewestFirst, kName };

struct GlobRequest {
  std::string_view pattern;       // relative to the folder: glob_pattern.h
  std::string_view folder;        // where to look; "": the root. Also looked into if git ignores it
  Hidden hidden = Hidden::kSkip;  // a pattern that names something hidden finds it anyway
  IgnoreRules ignore = IgnoreRules::kRespect;
  WalkKinds kinds = WalkKinds::kFilesAndLinks;
  GlobOrder order = GlobOrder::kNewestFirst;
  size_t offset = 0;
  size_t limit = kDefaultGlobMatches;
  std::stop_token stop = {};
};

struct GlobMatch {
  std::string path;  // from the root
  undo::NodeType type = undo::NodeType::kFile;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
};

struct GlobResult {
  std::vector<GlobMatch> matches;
  size_t total = 0;  // of all pages
  bool more = false;
  WalkCounts walked;
};

// kInvalid: the pattern, the folder, a limit of 0, or a page too far away. Others as WalkTree.
Result<GlobResult> Glob(int root_fd, const GlobRequest& request);

}  // namespace sandglass::session::files
