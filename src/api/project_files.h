// Looking at the files of a working directory, and at nothing else: every path is resolved by the kernel beneath the directory, symlinks
// as far as they stay there. Free functions; they block on the disk only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sandglass::api {

// To look below it with session/files.
Result<Fd> OpenDirectory(const std::string& directory);

// The path from the directory: given so, or as an absolute one that begins with it. kOutsideRoot, kInvalid.
Result<std::string> PathWithin(const std::string& directory, std::string_view given);

struct FolderEntry {
  std::string name;
  std::string_view type;  // file, directory, symlink, fifo, socket, device
  uint64_t size = 0;
  uint32_t mode = 0;  // permission bits
  int64_t mtime_ns = 0;
  std::string target;  // of a symlink
};
// By name. kNotFound, kOutsideRoot, kInvalid: it is no folder. kLimit: it has more than `max_entries` entries.
Result<std::vector<FolderEntry>> ListFolderIn(const std::string& directory, const std::string& path,
                                              size_t max_entries);

}  // namespace sandglass::api
