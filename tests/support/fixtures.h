// Trees that tests start from. Each function fills an existing empty directory and gives every
// entry, the directory included, an mtime of its own that is years old and exact to an odd
// nanosecond: a restore that forgets a time, or takes another entry's, is seen however coarse the
// clock is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sandglass::test {

// Files of 0, 11, 4096 and 1,000,000 bytes, nested directories, an executable.
void SmallTree(const std::string& root);
// a.txt and b.txt with different content.
void RenameTree(const std::string& root);
// File and directory with user.test xattrs. False: the file system has no user xattrs, and only the
// files were made.
bool XattrTree(const std::string& root);
// Symlinks to a file and to a directory.
void SymlinkTree(const std::string& root);
// 5 levels of directories with 125 files.
void DeepTree(const std::string& root);

enum class LockedFiles : uint8_t {
  kInclude,
  kOmit,  // nothing append-only or immutable, so that plain system calls can remove the whole tree
};

// Everything that a file system allows and few programs expect: see weird_tree.cc for the list.
// Returns what this file system or this user could not make, one line each with the reason.
std::vector<std::string> WeirdTree(const std::string& root,
                                   LockedFiles locked = LockedFiles::kInclude);
// Where WeirdTree keeps a file whose path, relative to `root`, is longer than PATH_MAX.
std::string WeirdTreeLongPath();

// Gives everything below `root`, and `root`, its odd old mtime; the same path always gets the same
// one. Of paths that are one inode the last in the order of the walk decides.
void AgeTree(const std::string& root);

}  // namespace sandglass::test
