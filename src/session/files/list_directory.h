// A folder of a project, in pages. Names come in the order of their bytes, and a page begins behind a name instead of at a number, so
// that pages neither repeat nor miss what stays while something else comes and goes. Free function, any thread, blocking.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "undo/interceptor.h"

namespace sandglass::session::files {

inline constexpr size_t kDefaultListEntries = 1'000;
inline constexpr size_t kMostListedNames = 2'000'000;

struct ListRequest {
  std::string_view path = {};   // "": the root
  std::string_view after = {};  // the last name of the page before; "": from the beginning
  size_t limit = kDefaultListEntries;
};

struct ListedEntry {
  std::string name;
  undo::NodeType type = undo::NodeType::kFile;
  uint32_t mode = 0;  // the 12 bits
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  std::string target;  // of a symbolic link
};

struct Listing {
  std::vector<ListedEntry> entries;
  size_t total = 0;  // names in the folder
  bool more = false;
};

// kInvalid: no folder, or a limit of 0. kLimit: more names than kMostListedNames. kNotFound, kDenied, kOutsideRoot.
Result<Listing> ListDirectory(int root_fd, const ListRequest& request);

}  // namespace sandglass::session::files
