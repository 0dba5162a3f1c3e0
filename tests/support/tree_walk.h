// A walk over a directory tree that only reads: it follows no symlink, opens nothing but
// directories, and holds at most a fixed number of descriptors, so that depth and path length are
// bounded by the file system alone. The tree must not change meanwhile. Any thread; each walk is
// independent.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace sandglass::test {

// One entry as the visitor sees it; everything in it is borrowed until the visitor returns.
struct WalkEntry {
  int parent;              // descriptor of the directory that holds the entry
  const char* name;        // the name in it; "." for the root
  std::string_view path;   // relative to the root; "" for the root
  const struct statx& st;  // STATX_BASIC_STATS
  int dir_fd = -1;         // a directory, open for reading; -1 for everything else
  int dir_errno = 0;       // why a directory could not be opened: its children are not visited
};

using WalkVisitor = std::function<Status(const WalkEntry&)>;

// Visits the directory `root` and everything below it: a directory before its children, siblings in
// the order of names.
Status WalkTree(int root, const WalkVisitor& visit);

// The directory at `path`, open for reading; a symlink in its last component is refused.
Result<Fd> OpenDirectory(const std::string& path);

// Opens `name` in `parent` for reading without touching its atime where the kernel allows that;
// never follows a symlink. Invalid with errno set when refused.
Fd OpenForReading(int parent, const char* name, int extra_flags);

// The names in an open directory, without "." and "..".
Result<std::vector<std::string>> ListDirectory(int dir);

}  // namespace sandglass::test
