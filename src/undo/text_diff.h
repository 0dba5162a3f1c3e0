// The difference of two texts as a patch that people read and `git apply` or `patch -p1` take.
//
// Myers' algorithm in linear space finds the shortest edit where that is affordable. Its search is
// cut off at a fixed depth and the whole run at a fixed number of steps, so that two huge files
// without much in common cost bounded time: what is left undecided then is shown as replaced. The
// patch is exact in any case, only longer than it could be.
//
// Pure functions over bytes, no I/O; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandglass::undo {

enum class FilePresence : uint8_t { kPresent, kAbsent };

// One side of a comparison. A side that is absent is written as /dev/null and needs neither path
// nor content.
struct DiffInput {
  std::string_view path;  // relative, no leading slash, any bytes but NUL
  std::string_view content;
  FilePresence presence = FilePresence::kPresent;
  // st_mode. Where both sides have one a change is shown, in git's terms: the file type and whether
  // the owner may execute.
  std::optional<uint32_t> mode = std::nullopt;
};

struct DiffOptions {
  size_t context_lines = 3;
  // Differing regions with more lines than this on both sides together are shown as replaced
  // without a search.
  size_t max_lines = 1'000'000;
  // Comparisons of two lines that may be spent on the search: a fraction of a second.
  uint64_t max_steps = 20'000'000;
};

// Empty when there is nothing to tell. Two different paths are shown as a rename. Contents with a
// NUL byte near their start are binary, as in git, and only said to differ. Memory is a small
// multiple of the contents' size.
std::string UnifiedDiff(const DiffInput& before, const DiffInput& after,
                        const DiffOptions& options = {});

// A path as git writes it: in double quotes with C escapes where it holds a control character, a
// quote, a backslash or a byte above ASCII, unchanged otherwise. A path that ends in a space is
// quoted too, because `patch` would cut the space off.
std::string QuotePath(std::string_view path);

}  // namespace sandglass::undo
