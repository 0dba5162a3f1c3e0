// A second opinion about trees: reads one with lstat, read, readlink and the l*xattr calls, keeps the bytes themselves, and
// compares. It shares no code with the undo library nor with TreeSnapshot, because a judge that shares code with the judged
// shares its mistakes. It is plain on purpose: whole files in memory, paths below PATH_MAX. Value types; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace sandglass::crash {

struct PlainEntry {
  uint32_t mode = 0;  // type and the 12 permission bits
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t device = 0;  // device nodes only
  uint32_t flags = 0;   // inode flags that a user can set; files and directories
  int64_t mtime_ns = 0;
  std::string
      body;  // a file's content or a symlink's target; "unreadable: why" when permissions hide it
  std::string twin;  // the first path that is the same inode: its own where there is no other
  std::map<std::string, std::string> xattrs;
};

// By path relative to the root, "" being the root.
using PlainTree = std::map<std::string, PlainEntry>;

Result<PlainTree> ReadPlainTree(const std::string& root);

// One line per difference, "path: what want -> got". The mtimes of the paths in `any_mtime` do not count.
std::vector<std::string> PlainDifferences(const PlainTree& want, const PlainTree& got,
                                          const std::set<std::string>& any_mtime = {});

// The paths that have another mtime in the other tree.
std::set<std::string> PathsWithOtherMtime(const PlainTree& a, const PlainTree& b);

}  // namespace sandglass::crash
