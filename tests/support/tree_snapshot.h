// TreeSnapshot: everything about a directory tree that undo promises to bring back, taken with
// reads alone, so that a test can compare the tree before a step with the tree after its rollback.
//
// Recorded for each entry, the root included: type, all 12 mode bits, owner, mtime to the
// nanosecond, every xattr (ACLs and security.* are xattrs), size and content of regular files (a
// hole equals zeros), symlink target, device number, the inode flags a user can set, and which
// paths of the tree share one inode. Not recorded: atime, ctime, inode numbers, sizes of
// directories, and the link count (links may lead out of the tree). Value type; any thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sandglass::test {

struct FileTime {
  int64_t sec = 0;
  uint32_t nsec = 0;
  friend bool operator==(const FileTime&, const FileTime&) = default;
};

// A hash of the bytes that are not zero and of where they lie. With the size it stands for the
// content.
struct ContentHash {
  uint64_t high = 0;
  uint64_t low = 0;
  friend bool operator==(const ContentHash&, const ContentHash&) = default;
};

struct EntrySnapshot {
  std::string path;   // relative to the root; "" is the root itself
  uint32_t mode = 0;  // type and the 12 permission bits, as in st_mode
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t flags = 0;   // FS_*_FL, only those a user can set
  uint64_t size = 0;    // regular files only
  uint64_t device = 0;  // device nodes only: major << 32 | minor
  FileTime mtime;
  ContentHash content;  // regular files only
  int32_t link_group =
      -1;  // index into TreeSnapshot::link_groups(); -1: no other path of the tree is this inode
  int unreadable_errno = 0;  // why content, children or an xattr could not be read
  std::string symlink_target;
  std::vector<std::pair<std::string, std::string>> xattrs;  // sorted by name
};

class TreeSnapshot {
 public:
  // The tree at `root`, which must be a directory and no symlink. An entry that permissions hide is
  // recorded as unreadable; any other failure is an error that names the entry.
  static Result<TreeSnapshot> Capture(const std::string& root);
  static Result<TreeSnapshot> CaptureAt(int root);

  // Sorted by path.
  const std::vector<EntrySnapshot>& entries() const [[clang::lifetimebound]] { return entries_; }
  // Sets of at least two paths that are one inode; each set is sorted.
  const std::vector<std::vector<std::string>>& link_groups() const [[clang::lifetimebound]] {
    return link_groups_;
  }
  // Null: no such path. Lives as long as the snapshot.
  const EntrySnapshot* Find(std::string_view path) const [[clang::lifetimebound]];

 private:
  friend class SnapshotBuilder;

  std::vector<EntrySnapshot> entries_;
  std::vector<std::vector<std::string>> link_groups_;
};

// True: the path is left out of the comparison.
using PathPredicate = std::function<bool(std::string_view path)>;
// `top` and everything below it.
PathPredicate Subtree(std::string top);

enum class Check : uint8_t { kYes, kNo };

struct CompareOptions {
  int64_t mtime_tolerance_ns = 0;
  Check check_xattrs = Check::kYes;
  Check check_owner = Check::kYes;
  // kYes: an entry that could not be read in full is a difference even when it is the same on both
  // sides, since an equality that nobody saw is none.
  Check check_unreadable = Check::kYes;
  std::vector<PathPredicate> exclude;
};

// One line per difference, "path: what before -> after", in the order of paths. Empty: equal.
std::vector<std::string> Diff(const TreeSnapshot& before, const TreeSnapshot& after,
                              const CompareOptions& options = {});

::testing::AssertionResult TreesEqual(const TreeSnapshot& before, const TreeSnapshot& after,
                                      const CompareOptions& options = {});

// On one line, whatever the bytes: all but printable ASCII is written as \xff.
std::string Printable(std::string_view bytes);

}  // namespace sandglass::test

#define EXPECT_TREE_EQ(before, after) EXPECT_TRUE(::sandglass::test::TreesEqual((before), (after)))
#define ASSERT_TREE_EQ(before, after) ASSERT_TRUE(::sandglass::test::TreesEqual((before), (after)))
