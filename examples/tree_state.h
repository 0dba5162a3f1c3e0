// TreeState: everything about a folder that undo promises to bring back, read with plain system
// calls and no part of the undo library, so that the demo's verdict is its own. Value type.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace sandglass::demo {

struct Entry {
  uint32_t mode = 0;  // type and permissions
  uint32_t uid = 0, gid = 0;
  uint64_t size = 0;  // of files
  int64_t mtime_ns = 0;
  std::string content;      // of files; of a symlink: where it leads
  std::string linked_with;  // the first path of the same file; itself, when it has one name only
  std::map<std::string, std::string> xattrs;

  friend bool operator==(const Entry&, const Entry&) = default;
};

class TreeState {
 public:
  static Result<TreeState> Read(const std::string& root);

  // By path relative to the root, which itself is "".
  const std::map<std::string, Entry>& entries() const { return entries_; }
  // Without the root.
  size_t size() const { return entries_.size() - 1; }
  // One number for all of it.
  uint64_t Hash() const;
  // The tree as people like to see it, one line per entry.
  std::string Drawing() const;

 private:
  std::map<std::string, Entry> entries_;
};

// "path: what differs", one line each; none: the trees are equal in everything.
std::vector<std::string> Differences(const TreeState& before, const TreeState& after);

}  // namespace sandglass::demo
