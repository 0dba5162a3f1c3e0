// Opening files of a project to look at them. The kernel keeps every path beneath the root (openat2), so that no rename in between
// can lead elsewhere. Free functions, any thread; they block as open() does.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace sandglass::session::files {

// Follows symbolic links as long as they stay beneath the root and on its mount. Never waits for the other end of a FIFO. `path` is
// in the normal form.
// kOutsideRoot: it leads out. Others as the kernel says.
Result<Fd> OpenFollowing(int root_fd, std::string_view path, int flags);

// One component, never a symbolic link, never another mount. Like a system call: -1 with errno set. The cheapest way to open many.
int OpenName(int dir_fd, const char* name, int flags);

// What tells whether a file is still the one that was read: nobody can change its content without moving the last of these.
struct FileVersion {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t mtime_ns = 0, ctime_ns = 0;
  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};
FileVersion VersionOf(const struct stat& st);

int64_t NanosecondsOf(const timespec& time);

}  // namespace sandglass::session::files
