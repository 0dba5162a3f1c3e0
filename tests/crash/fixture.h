// The tree that every crash scenario starts from: small and large files, hard links, symlinks, a FIFO, special modes, xattrs; with
// the same bytes and the same times in every run, so that runs can be compared. Plain system calls only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace sandglass::crash {

inline constexpr size_t kLargeBytes = 300'000;  // more than is packed
inline constexpr size_t kLarger = 420'000;

// `size` bytes that no other seed has; they compress to about half.
std::string Pattern(size_t size, uint32_t seed);

// Fills the empty folder `project`.
Status BuildFixture(const std::string& project);

// What this file system and this user can do.
struct Means {
  bool xattrs = false;
  bool flags = false;
  uint32_t other_uid = 0, other_gid = 0;  // owners that we may give a file to
};
// Asks the fixture; changes nothing.
Means FindMeans(const std::string& project);

}  // namespace sandglass::crash
