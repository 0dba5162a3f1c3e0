// WeirdTree: one function per family of oddities.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <string_view>

#include "tests/support/fixtures.h"
#include "tests/support/inode_flags.h"
#include "tests/support/tree_builder.h"

namespace sandglass::test {
namespace {

constexpr size_t kLongNameSize = 250;
constexpr size_t kLongPathLevels = 18;  // 18 * 251 > PATH_MAX
static_assert(kLongPathLevels * (kLongNameSize + 1) > PATH_MAX);

// What could not be made here, with the reason.
class Skips {
 public:
  void Note(int error, std::string_view what) {
    if (error != 0) lines_.push_back(fmt::format("{}: {}", what, ::strerror(error)));
  }
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

void OddNames(const TreeBuilder& tree) {
  tree.Dir("names");
  const TreeBuilder names = tree.Below("names");
  names.File(std::string(255, 'n'), "the longest name");
  names.Dir(std::string(255, 'd'));
  names.File(std::string(255, 'd') + "/child", "in the longest name");
  for (const char* name :
       {"new\nline", "invalid\xff\xfe\x80utf8", " leading space", "trailing space ", "-rf", "tab\t",
        "back\\slash", "quotes'\"`$(x)", "...", ".hidden", "*", "\x01", "gr\xc3\xbc\xc3\x9f"}) {
    names.File(name, name);
  }
  names.Dir("dir\nwith\xffodd name");
  names.File("dir\nwith\xffodd name/a.txt", "a");
}

void SpecialFiles(const TreeBuilder& tree, Skips& skips) {
  tree.Dir("special");
  tree.Fifo("special/fifo");
  tree.Socket("special/socket");
  skips.Note(tree.Device("special/char", S_IFCHR, 1, 3), "character device");
  skips.Note(tree.Device("special/block", S_IFBLK, 7, 300), "block device");
}

void SetIdBits(const TreeBuilder& tree) {
  tree.Dir("bits");
  tree.File("bits/setuid", "u", 04755);
  tree.File("bits/setgid", "g", 02755);
  tree.File("bits/all", "a", 07777);
  tree.Dir("bits/sticky", 01777);
  tree.Dir("bits/setgid_dir", 02775);
  tree.File("bits/setgid_dir/child", "c");
}

// Their final modes come last of all: see CloseDoors.
void ClosedFiles(const TreeBuilder& tree) {
  tree.Dir("closed");
  tree.File("closed/mode_000", "secret");
  tree.Dir("closed/dir_0555");
  tree.File("closed/dir_0555/child", "read-only directory");
  tree.Dir("closed/dir_0555/sub");
  tree.File("closed/dir_0555/sub/grandchild", "g", 0444);
  tree.Dir("closed/dir_0000");
  tree.File("closed/dir_0000/child", "hidden");
  tree.Dir("closed/empty_dir");
}

void CloseDoors(const TreeBuilder& tree) {
  tree.Mode("closed/mode_000", 0);
  tree.Mode("closed/dir_0555/sub", 0555);
  tree.Mode("closed/dir_0555", 0555);
  tree.Mode("closed/dir_0000", 0);
}

void SparseFiles(const TreeBuilder& tree) {
  tree.Dir("sparse");
  tree.SparseFile("sparse/middle", 16U << 20, 5'000'000, "data between two holes");
  tree.SparseFile("sparse/start", 1U << 20, 0, "data, then a hole");
  tree.SparseFile("sparse/hole", 1U << 20, 0, "");
}

void Symlinks(const TreeBuilder& tree) {
  tree.Dir("symlinks");
  tree.Symlink("symlinks/dangling", "nowhere/at/all");
  tree.Symlink("symlinks/absolute", "/nonexistent/absolute");
  tree.Symlink("symlinks/self", "self");
  tree.Symlink("symlinks/up", "../..");
  tree.Symlink("symlinks/odd", "new\nline\xff");
  tree.Symlink("symlinks/long", std::string(1000, 'l'));  // xfs takes 1023 bytes at most
}

void HardLinks(const TreeBuilder& tree) {
  tree.Dir("links");
  tree.Dir("links/other");
  tree.File("links/within_1", "one inode, one directory");
  tree.Link("links/within_1", "links/within_2");
  tree.File("links/across_1", "one inode, two directories");
  tree.Link("links/across_1", "links/other/across_2");
  tree.Link("links/across_1", "links/other/across_3");
  // The same bytes as a group beside it: content alone must not decide who belongs together.
  tree.File("links/twin_1", "one inode, one directory");
  tree.Link("links/twin_1", "links/twin_2");
  tree.Symlink("links/symlink_1", "within_1");
  tree.Link("links/symlink_1", "links/other/symlink_2");
  tree.Fifo("links/fifo_1");
  tree.Link("links/fifo_1", "links/fifo_2");
}

void Xattrs(const TreeBuilder& tree, Skips& skips) {
  tree.Dir("xattrs");
  tree.File("xattrs/user", "u");
  const char binary[] = {0, '\xff', '\n', 0};
  skips.Note(tree.Xattr("xattrs/user", "user.binary", {binary, sizeof binary}), "user xattr");
  skips.Note(tree.Xattr("xattrs/user", "user.empty", ""), "empty user xattr");
  skips.Note(tree.Xattr("xattrs/user", "user.big", std::string(1500, 'v')),
             "user xattr of 1500 bytes");
  tree.Dir("xattrs/dir");
  skips.Note(tree.Xattr("xattrs/dir", "user.dir", "d"), "user xattr of a directory");
  tree.File("xattrs/capability", "c", 0755);
  skips.Note(tree.Xattr("xattrs/capability", "security.capability", SampleCapability()),
             "security.capability");
  tree.Symlink("xattrs/symlink", "user");
  skips.Note(tree.Xattr("xattrs/symlink", "trusted.sandglass", "on a symlink"),
             "trusted xattr of a symlink");
  skips.Note(tree.Xattr("special/fifo", "trusted.sandglass", "on a fifo"),
             "trusted xattr of a fifo");
}

void Acls(const TreeBuilder& tree, Skips& skips) {
  tree.Dir("acls");
  tree.File("acls/file", "f");
  tree.Dir("acls/dir");
  const int refused = tree.Xattr("acls/file", "system.posix_acl_access", SampleAcl());
  skips.Note(refused, "access ACL");
  if (refused != 0) return;
  skips.Note(tree.Xattr("acls/dir", "system.posix_acl_access", SampleAcl()),
             "access ACL of a directory");
  skips.Note(tree.Xattr("acls/dir", "system.posix_acl_default", SampleAcl()), "default ACL");
  tree.Mode("acls/dir", 0770);
  tree.File("acls/dir/inherits", "i", 0640);
  tree.Dir("acls/dir/inherits_too", 0750);
}

void Owners(const TreeBuilder& tree, Skips& skips) {
  tree.Dir("owners");
  tree.File("owners/file", "f");
  tree.Symlink("owners/symlink", "file");
  tree.Dir("owners/dir");
  for (const char* path : {"owners/file", "owners/symlink", "owners/dir"}) {
    skips.Note(tree.Owner(path, 12345, 54321), fmt::format("foreign owner of {}", path));
  }
}

// Where the family "flags" lies, in the order in which the flags are set.
struct FlaggedEntry {
  const char* path;
  uint32_t flags;
  LockedFiles kind;  // kInclude: nobody can remove it
};
constexpr FlaggedEntry kFlagged[] = {
    {"flags/nodump", FS_NODUMP_FL, LockedFiles::kOmit},
    {"flags/noatime", FS_NOATIME_FL, LockedFiles::kOmit},
    {"flags/nodump_dir", FS_NODUMP_FL, LockedFiles::kOmit},
    {"flags/append", FS_APPEND_FL, LockedFiles::kInclude},
    {"flags/immutable", FS_IMMUTABLE_FL, LockedFiles::kInclude},
};

void FlaggedFiles(const TreeBuilder& tree) {
  tree.Dir("flags");
  for (const FlaggedEntry& entry : kFlagged) {
    const std::string_view path = entry.path;
    path.ends_with("_dir") ? tree.Dir(path) : tree.File(path, "flagged");
  }
}

void SetFlags(const TreeBuilder& tree, LockedFiles locked, Skips& skips) {
  for (const FlaggedEntry& entry : kFlagged) {
    if (entry.kind == LockedFiles::kInclude && locked == LockedFiles::kOmit) continue;
    skips.Note(tree.AddFlags(entry.path, entry.flags),
               fmt::format("flag {}", FlagNames(entry.flags)));
  }
}

// Directory by directory, since no system call takes the whole path.
void LongPath(const TreeBuilder& tree) {
  tree.Dir("long");
  TreeBuilder level = tree.Below("long");
  for (size_t i = 0; i < kLongPathLevels; ++i) {
    const std::string name(kLongNameSize, 'p');
    level.Dir(name);
    level = level.Below(name);
  }
  level.File("bottom.txt", "deeper than PATH_MAX");
  level.Dir("empty");
  level.Symlink("symlink", "bottom.txt");
  level.File("linked_1", "linked at depth");
  level.Link("linked_1", "linked_2");
}

void OddTimes(const TreeBuilder& tree) {
  tree.File("before_1970", "old");
  tree.File("whole_second", "even");
  tree.File("in_2037", "not yet");
}

void SetOddTimes(const TreeBuilder& tree) {
  tree.Mtime("before_1970", {.sec = -86'401, .nsec = 123'456'789});
  tree.Mtime("whole_second", {.sec = 1'234'567'890, .nsec = 0});
  tree.Mtime("in_2037", {.sec = 2'114'380'800, .nsec = 999'999'999});
}

}  // namespace

std::string WeirdTreeLongPath() {
  std::string path = "long";
  for (size_t i = 0; i < kLongPathLevels; ++i) path += '/' + std::string(kLongNameSize, 'p');
  return path + "/bottom.txt";
}

std::vector<std::string> WeirdTree(const std::string& root, LockedFiles locked) {
  const TreeBuilder tree(root);
  Skips skips;
  OddNames(tree);
  SpecialFiles(tree, skips);
  SetIdBits(tree);
  ClosedFiles(tree);
  SparseFiles(tree);
  Symlinks(tree);
  HardLinks(tree);
  Xattrs(tree, skips);
  Acls(tree, skips);
  Owners(tree, skips);
  FlaggedFiles(tree);
  LongPath(tree);
  OddTimes(tree);
  AgeTree(root);
  // What would keep the lines above from their work comes last.
  SetOddTimes(tree);
  CloseDoors(tree);
  SetFlags(tree, locked, skips);
  return skips.Take();
}

}  // namespace sandglass::test
