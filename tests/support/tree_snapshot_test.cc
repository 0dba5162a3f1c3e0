#include "tests/support/tree_snapshot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "tests/support/fixtures.h"
#include "tests/support/inode_flags.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"
#include "tests/support/tree_builder.h"

namespace sandglass::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// An access ACL that leaves mode 0644 as it is.
std::string AclOfMode0644() {
  return AclXattr({{0x01, 6}, {0x02, 4, 4242}, {0x04, 4}, {0x10, 4}, {0x20, 4}});
}

void WriteAt(const TreeBuilder& tree, const char* path, off_t offset, std::string_view bytes) {
  const Fd file(MustCall(::openat(tree.fd(), path, O_WRONLY | O_CLOEXEC), path));
  MustCall(::pwrite(file.get(), bytes.data(), bytes.size(), offset), path);
}

void Truncate(const TreeBuilder& tree, const char* path, off_t size) {
  const Fd file(MustCall(::openat(tree.fd(), path, O_WRONLY | O_CLOEXEC), path));
  MustCall(::ftruncate(file.get(), size), path);
}

// AgeTree gives one inode the time of one of its paths, so the pairs, which change partners, get a
// time that all share.
void PutTimesBack(const std::string& root) {
  AgeTree(root);
  const TreeBuilder tree(root);
  for (const char* path : {"pair_a1", "pair_a2", "pair_b1", "pair_b2"})
    tree.Mtime(path, {1'111'111'111, 1});
}

// One entry of each kind; the xattrs are there where the file system has them.
void OneOfEach(const std::string& root) {
  const TreeBuilder tree(root);
  tree.File("file", "content");
  tree.Dir("dir");
  tree.File("dir/child", "child");
  tree.Dir("empty");
  tree.Symlink("symlink", "file");
  tree.Fifo("fifo");
  tree.Socket("socket");
  tree.Device("char", S_IFCHR, 1, 3);
  for (const char* pair : {"pair_a", "pair_b"}) {
    tree.File(fmt::format("{}1", pair), "same bytes in both pairs");
    tree.Link(fmt::format("{}1", pair), fmt::format("{}2", pair));
  }
  tree.SparseFile("sparse", 10U << 20, 5'000'000, "x");
  tree.Xattr("file", "user.a", "1");
  tree.Xattr("dir", "user.a", "1");
  PutTimesBack(root);
}

// One change of one attribute, and all the lines that it must lead to, by how they begin.
struct Change {
  const char* name;
  std::function<int(const TreeBuilder&)> apply;  // 0, or why this cannot be done here
  std::vector<std::string> lines;
};

void PrintTo(const Change& change, std::ostream* out) { *out << change.name; }
std::string NameOf(const ::testing::TestParamInfo<Change>& info) { return info.param.name; }

class ChangeTest : public ::testing::TestWithParam<Change> {
 protected:
  ChangeTest() { OneOfEach(workspace_.project()); }

  // False: not possible here, and the test is skipped.
  bool Apply() {
    before_ = workspace_.Snapshot();
    const int refused = GetParam().apply(TreeBuilder(workspace_.project()));
    if (refused == 0) return true;
    Skip(refused);
    return false;
  }

  void ExpectExactlyItsLines() {
    std::vector<::testing::Matcher<std::string>> expected;
    for (const std::string& line : GetParam().lines) expected.push_back(StartsWith(line));
    EXPECT_THAT(Diff(before_, workspace_.Snapshot()), ::testing::ElementsAreArray(expected));
  }

 private:
  static void Skip(int refused) {
    GTEST_SKIP() << "refused by this file system or user: " << ::strerror(refused);
  }

  TempWorkspace workspace_;
  TreeSnapshot before_;

 protected:
  const std::string& root() const { return workspace_.project(); }
};

// Names and contents: these change times too, which are put back so that nothing but the change
// itself can be seen.
class DetectedWithTimesPutBack : public ChangeTest {};
TEST_P(DetectedWithTimesPutBack, AsExactlyThis) {
  if (!Apply()) return;
  PutTimesBack(root());
  ExpectExactlyItsLines();
}

// Metadata alone.
class Detected : public ChangeTest {};
TEST_P(Detected, AsExactlyThis) {
  if (!Apply()) return;
  ExpectExactlyItsLines();
}

const Change kNamesAndContents[] = {
    {"Created",
     [](const TreeBuilder& t) {
       t.File("new", "");
       return 0;
     },
     {"new: was not there, is a regular file"}},
    {"CreatedEmptyDirectory",
     [](const TreeBuilder& t) {
       t.Dir("dir/new");
       return 0;
     },
     {"dir/new: was not there, is a directory"}},
    {"Deleted",
     [](const TreeBuilder& t) {
       t.Remove("dir/child");
       return 0;
     },
     {"dir/child: is gone, was a regular"}},
    {"DeletedEmptyDirectory",
     [](const TreeBuilder& t) {
       t.Remove("empty");
       return 0;
     },
     {"empty: is gone, was a dir"}},
    {"Renamed",
     [](const TreeBuilder& t) {
       t.Rename("dir/child", "dir/moved");
       return 0;
     },
     {"dir/child: is gone", "dir/moved: was not there"}},
    {"RenamedDirectory",
     [](const TreeBuilder& t) {
       t.Rename("dir", "moved");
       return 0;
     },
     {"dir: is gone", "dir/child: is gone", "moved: was not there", "moved/child: was not there"}},
    {"FileToDirectory",
     [](const TreeBuilder& t) {
       t.Remove("dir/child");
       t.Dir("dir/child", 0644);
       return 0;
     },
     {"dir/child: type regular file -> directory"}},
    {"FileToSymlink",
     [](const TreeBuilder& t) {
       t.Remove("dir/child");
       t.Symlink("dir/child", "x");
       return 0;
     },
     {"dir/child: type regular file -> symlink", "dir/child: mode 0644 -> 0777"}},
    {"SocketToFifo",
     [](const TreeBuilder& t) {
       t.Remove("socket");
       t.Fifo("socket");
       t.Mode("socket", 0600);
       return 0;
     },
     {"socket: type socket -> fifo"}},
    {"ContentOfTheSameSize",
     [](const TreeBuilder& t) {
       WriteAt(t, "file", 6, "T");
       return 0;
     },
     {"file: content differs"}},
    {"Grown",
     [](const TreeBuilder& t) {
       WriteAt(t, "file", 7, "!");
       return 0;
     },
     {"file: size 7 -> 8", "file: content differs"}},
    {"GrownByAHole",
     [](const TreeBuilder& t) {
       Truncate(t, "sparse", 11 << 20);
       return 0;
     },
     {"sparse: size 10485760 -> 11534336"}},
    {"Emptied",
     [](const TreeBuilder& t) {
       Truncate(t, "file", 0);
       return 0;
     },
     {"file: size 7 -> 0", "file: content differs"}},
    {"OneByteInAHole",
     [](const TreeBuilder& t) {
       WriteAt(t, "sparse", 9'000'001, "x");
       return 0;
     },
     {"sparse: content differs"}},
    {"DataMovedWithinTheFile",
     [](const TreeBuilder& t) {
       WriteAt(t, "sparse", 5'000'000, {"\0", 1});
       WriteAt(t, "sparse", 8'000'000, "x");
       return 0;
     },
     {"sparse: content differs"}},
    {"SymlinkTarget",
     [](const TreeBuilder& t) {
       t.Remove("symlink");
       t.Symlink("symlink", "filf");
       return 0;
     },
     {"symlink: target \"file\" -> \"filf\""}},
    {"DeviceNumber",
     [](const TreeBuilder& t) {
       if (::geteuid() == 0) t.Remove("char");
       return t.Device("char", S_IFCHR, 1, 5);
     },
     {"char: device 0x100000003 -> 0x100000005"}},
    {"HardLinkBroken",
     [](const TreeBuilder& t) {
       t.Remove("pair_a2");
       t.File("pair_a2", "same bytes in both pairs");
       return 0;
     },
     {"pair_a1: hard links {pair_a1, pair_a2} -> {pair_a1}",
      "pair_a2: hard links {pair_a1, pair_a2} -> {pair_a2}"}},
    {"HardLinkMade",
     [](const TreeBuilder& t) {
       t.Remove("pair_b1");
       t.Link("pair_a1", "pair_b1");
       return 0;
     },
     {"pair_a1: hard links {pair_a1, pair_a2} -> {pair_a1, pair_a2, pair_b1}",
      "pair_a2: hard links {pair_a1, pair_a2} -> {pair_a1, pair_a2, pair_b1}",
      "pair_b1: hard links {pair_b1, pair_b2} -> {pair_a1, pair_a2, pair_b1}",
      "pair_b2: hard links {pair_b1, pair_b2} -> {pair_b2}"}},
    {"HardLinksRegrouped",
     [](const TreeBuilder& t) {
       t.Rename("pair_a2", "swap");
       t.Rename("pair_b2", "pair_a2");
       t.Rename("swap", "pair_b2");
       return 0;
     },
     {"pair_a1: hard links {pair_a1, pair_a2} -> {pair_a1, pair_b2}",
      "pair_a2: hard links {pair_a1, pair_a2} -> {pair_a2, pair_b1}",
      "pair_b1: hard links {pair_b1, pair_b2} -> {pair_a2, pair_b1}",
      "pair_b2: hard links {pair_b1, pair_b2} -> {pair_a1, pair_b2}"}},
};
INSTANTIATE_TEST_SUITE_P(NamesAndContents, DetectedWithTimesPutBack,
                         ::testing::ValuesIn(kNamesAndContents), NameOf);

FileTime OneNanosecondLater(const TreeBuilder& tree, const char* path) {
  struct stat st;
  MustCall(::fstatat(tree.fd(), path, &st, AT_SYMLINK_NOFOLLOW), path);
  return {.sec = st.st_mtim.tv_sec, .nsec = static_cast<uint32_t>(st.st_mtim.tv_nsec) + 1};
}

int AddOneNanosecond(const TreeBuilder& tree, const char* path) {
  tree.Mtime(path, OneNanosecondLater(tree, path));
  return 0;
}

const Change kMetadata[] = {
    {"MtimeOfFile",
     [](const TreeBuilder& t) { return AddOneNanosecond(t, "file"); },
     {"file: mtime "}},
    {"MtimeOfDirectory",
     [](const TreeBuilder& t) { return AddOneNanosecond(t, "dir"); },
     {"dir: mtime "}},
    {"MtimeOfRoot", [](const TreeBuilder& t) { return AddOneNanosecond(t, "."); }, {".: mtime "}},
    {"MtimeOfSymlink",
     [](const TreeBuilder& t) { return AddOneNanosecond(t, "symlink"); },
     {"symlink: mtime "}},
    {"MtimeOfFifo",
     [](const TreeBuilder& t) { return AddOneNanosecond(t, "fifo"); },
     {"fifo: mtime "}},
    {"ModeOfDirectory",
     [](const TreeBuilder& t) {
       t.Mode("dir", 02755);
       return 0;
     },
     {"dir: mode 0755 -> 2755"}},
    {"ModeOfRoot",
     [](const TreeBuilder& t) {
       t.Mode("", 01755);
       return 0;
     },
     {".: mode 0755 -> 1755"}},
    {"ModeOfFifo",
     [](const TreeBuilder& t) {
       t.Mode("fifo", 0644);
       return 0;
     },
     {"fifo: mode 06"}},
    {"Uid",
     [](const TreeBuilder& t) { return t.Owner("dir/child", 4242, -1); },
     {"dir/child: uid "}},
    {"Gid",
     [](const TreeBuilder& t) { return t.Owner("dir/child", -1, 4242); },
     {"dir/child: gid "}},
    {"UidOfSymlink",
     [](const TreeBuilder& t) { return t.Owner("symlink", 4242, -1); },
     {"symlink: uid "}},
    {"GidOfRoot", [](const TreeBuilder& t) { return t.Owner("", -1, 4242); }, {".: gid "}},
    {"XattrChanged",
     [](const TreeBuilder& t) { return t.Xattr("file", "user.a", "2"); },
     {"file: xattr user.a \"1\" -> \"2\""}},
    {"XattrRemoved",
     [](const TreeBuilder& t) { return t.RemoveXattr("file", "user.a"); },
     {"file: xattr user.a \"1\" -> none"}},
    {"XattrAdded",
     [](const TreeBuilder& t) { return t.Xattr("file", "user.b", ""); },
     {"file: xattr user.b none -> \"\""}},
    {"XattrRenamed",
     [](const TreeBuilder& t) {
       return t.Xattr("file", "user.0", "1") | t.RemoveXattr("file", "user.a");
     },
     {"file: xattr user.0 none", "file: xattr user.a \"1\" -> none"}},
    {"XattrOfDirectory",
     [](const TreeBuilder& t) { return t.Xattr("dir", "user.b", "1"); },
     {"dir: xattr user.b none"}},
    {"XattrOfRoot",
     [](const TreeBuilder& t) { return t.Xattr("", "user.b", "1"); },
     {".: xattr user.b none"}},
    {"XattrOfSymlink",
     [](const TreeBuilder& t) { return t.Xattr("symlink", "trusted.b", "1"); },
     {"symlink: xattr trusted.b none"}},
    {"XattrOfFifo",
     [](const TreeBuilder& t) { return t.Xattr("fifo", "trusted.b", "1"); },
     {"fifo: xattr trusted.b none"}},
    {"Capability",
     [](const TreeBuilder& t) {
       return t.Xattr("file", "security.capability", SampleCapability());
     },
     {"file: xattr security.capability none"}},
    {"AccessAcl",
     [](const TreeBuilder& t) {
       return t.Xattr("file", "system.posix_acl_access", AclOfMode0644());
     },
     {"file: xattr system.posix_acl_access none"}},
    {"DefaultAcl",
     [](const TreeBuilder& t) { return t.Xattr("dir", "system.posix_acl_default", SampleAcl()); },
     {"dir: xattr system.posix_acl_default none"}},
    {"FlagAppend",
     [](const TreeBuilder& t) { return t.AddFlags("file", FS_APPEND_FL); },
     {"file: flags none -> append"}},
    {"FlagImmutable",
     [](const TreeBuilder& t) { return t.AddFlags("file", FS_IMMUTABLE_FL); },
     {"file: flags none -> immutable"}},
    {"FlagNodump",
     [](const TreeBuilder& t) { return t.AddFlags("file", FS_NODUMP_FL); },
     {"file: flags none -> nodump"}},
    {"FlagNoatime",
     [](const TreeBuilder& t) { return t.AddFlags("file", FS_NOATIME_FL); },
     {"file: flags none -> noatime"}},
    {"FlagSync",
     [](const TreeBuilder& t) { return t.AddFlags("file", FS_SYNC_FL); },
     {"file: flags none -> sync"}},
    {"FlagNocow",
     [](const TreeBuilder& t) { return t.AddFlags("empty", FS_NOCOW_FL); },
     {"empty: flags none -> nocow"}},
    {"FlagOfDirectory",
     [](const TreeBuilder& t) { return t.AddFlags("dir", FS_NODUMP_FL); },
     {"dir: flags none -> nodump"}},
    {"FlagOfRoot",
     [](const TreeBuilder& t) { return t.AddFlags("", FS_APPEND_FL); },
     {".: flags none -> append"}},
};
INSTANTIATE_TEST_SUITE_P(Metadata, Detected, ::testing::ValuesIn(kMetadata), NameOf);

class ModeBit : public ::testing::TestWithParam<int> {};
TEST_P(ModeBit, IsCompared) {
  const TempWorkspace workspace;
  workspace.WriteFile("file", "");
  const TreeBuilder tree(workspace.project());
  tree.Mode("file", 0644);
  const TreeSnapshot before = workspace.Snapshot();
  tree.Mode("file", 0644 ^ (1 << GetParam()));
  // Without root's rights one of the bits hides the content as well.
  const std::vector<std::string> lines =
      Diff(before, workspace.Snapshot(),
           {.check_unreadable = ::geteuid() == 0 ? Check::kYes : Check::kNo});
  EXPECT_THAT(lines,
              ElementsAre(fmt::format("file: mode 0644 -> {:04o}", 0644 ^ (1 << GetParam()))));
}
INSTANTIATE_TEST_SUITE_P(All, ModeBit, ::testing::Range(0, 12));

CompareOptions AsFarAsThisUserSees() {
  return {.check_unreadable = ::geteuid() == 0 ? Check::kYes : Check::kNo};
}

TEST(TreeSnapshot, AnUntouchedTreeEqualsItself) {
  const TempWorkspace workspace;
  WeirdTree(workspace.project());
  EXPECT_TRUE(TreesEqual(workspace.Snapshot(), workspace.Snapshot(), AsFarAsThisUserSees()));
}

TEST(TreeSnapshot, TheRootIsAnEntry) {
  const TempWorkspace workspace;
  ASSERT_NE(workspace.Snapshot().Find(""), nullptr);
  EXPECT_EQ(workspace.Snapshot().Find("")->mode, S_IFDIR | 0755U);
}

TEST(TreeSnapshot, HolesEqualZeros) {
  const TempWorkspace holes;
  const TempWorkspace zeros;
  std::string bytes(700'000, '\0');
  bytes.replace(300'000, 4, "data");
  TreeBuilder(holes.project()).SparseFile("f", bytes.size(), 300'000, "data");
  TreeBuilder(zeros.project()).File("f", bytes);
  AgeTree(holes.project());
  AgeTree(zeros.project());
  EXPECT_TREE_EQ(holes.Snapshot(), zeros.Snapshot());
}

TEST(TreeSnapshot, AHugeHoleCostsNothing) {
  const TempWorkspace workspace;
  TreeBuilder(workspace.project()).SparseFile("huge", 1ULL << 40, (1ULL << 40) - 5, "tail!");
  const TreeSnapshot before = workspace.Snapshot();
  EXPECT_EQ(before.Find("huge")->size, 1ULL << 40);
  EXPECT_TREE_EQ(before, workspace.Snapshot());
}

TEST(TreeSnapshot, ContentAtTheEdgesOfBlocksIsCompared) {
  const TempWorkspace workspace;
  const TreeBuilder tree(workspace.project());
  tree.File("f", std::string(200'000, 'a'));
  const TreeSnapshot before = workspace.Snapshot();
  for (const off_t offset : {0, 65'535, 65'536, 131'071, 131'072, 199'999}) {
    WriteAt(tree, "f", offset, "b");
    EXPECT_NE(workspace.Snapshot().Find("f")->content, before.Find("f")->content) << offset;
    WriteAt(tree, "f", offset, "a");
    EXPECT_EQ(workspace.Snapshot().Find("f")->content, before.Find("f")->content) << offset;
  }
}

TEST(TreeSnapshot, AnotherInodeWithEverythingElseEqualIsEqual) {
  const TempWorkspace workspace;
  SmallTree(workspace.project());
  const TreeSnapshot before = workspace.Snapshot();
  const TreeBuilder tree(workspace.project());
  tree.Rename("small.txt", "old");
  tree.File("small.txt", "hello world");
  tree.Remove("old");
  AgeTree(workspace.project());
  EXPECT_TREE_EQ(before, workspace.Snapshot());
}

TEST(TreeSnapshot, LinksFromOutsideDoNotCount) {
  const TempWorkspace workspace;
  SmallTree(workspace.project());
  const TreeSnapshot before = workspace.Snapshot();
  TreeBuilder(workspace.root()).Link("project/small.txt", "outside");
  EXPECT_TREE_EQ(before, workspace.Snapshot());
  EXPECT_THAT(workspace.Snapshot().link_groups(), IsEmpty());
}

TEST(TreeSnapshot, TakingOneChangesNothingNotEvenTheAtime) {
  const TempWorkspace workspace;
  SmallTree(workspace.project());
  for (const char* rel : {"small.txt", "src"}) {
    const struct stat before = workspace.Stat(rel);
    workspace.Snapshot();
    const struct stat after = workspace.Stat(rel);
    EXPECT_EQ(std::memcmp(&before.st_atim, &after.st_atim, sizeof before.st_atim), 0) << rel;
    EXPECT_EQ(std::memcmp(&before.st_ctim, &after.st_ctim, sizeof before.st_ctim), 0) << rel;
  }
}

// Holds the number of descriptors a process may have down to `count`.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t count) {
    MustCall(::getrlimit(RLIMIT_NOFILE, &before_), "getrlimit");
    const rlimit lowered{.rlim_cur = count, .rlim_max = before_.rlim_max};
    MustCall(::setrlimit(RLIMIT_NOFILE, &lowered), "setrlimit");
  }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(TreeSnapshot, DepthIsNotBoundByDescriptors) {
  const DescriptorLimit limit(100);
  const TempWorkspace workspace;
  TreeBuilder level(workspace.project());
  for (int i = 0; i < 150; ++i) {
    level.Dir("d");
    level.File("f", std::to_string(i));
    level = level.Below("d");
  }
  const TreeSnapshot before = workspace.Snapshot();
  EXPECT_EQ(before.entries().size(), 301U);
  level.File("bottom", "");
  EXPECT_THAT(Diff(before, workspace.Snapshot()),
              ::testing::SizeIs(2));  // the file, and its directory's mtime
}

TEST(TreeSnapshot, WhatPermissionsHideIsADifferenceUnlessAskedOtherwise) {
  const TempWorkspace workspace;
  const TreeBuilder tree(workspace.project());
  tree.File("hidden", "secret", 0);
  tree.Dir("closed", 0);
  const uid_t user = ::geteuid();
  if (user == 0) {
    MustCall(::seteuid(65534), "seteuid");
    MustCall(::prctl(PR_SET_DUMPABLE, 1), "prctl");  // else the process loses its own /proc/self/fd
  }
  const Result<TreeSnapshot> tree_seen = TreeSnapshot::CaptureAt(tree.fd());
  MustCall(::seteuid(user), "seteuid");
  ASSERT_TRUE(tree_seen.ok()) << tree_seen.error().ToString();
  EXPECT_THAT(Diff(*tree_seen, *tree_seen),
              ElementsAre("closed: cannot be compared in full: Permission denied",
                          "hidden: cannot be compared in full: Permission denied"));
  EXPECT_TRUE(TreesEqual(*tree_seen, *tree_seen, {.check_unreadable = Check::kNo}));
}

TEST(TreeSnapshot, ARootThatIsNoDirectoryIsAnError) {
  const TempWorkspace workspace;
  workspace.WriteFile("file", "");
  TreeBuilder(workspace.project()).Symlink("symlink", ".");
  EXPECT_FALSE(TreeSnapshot::Capture(workspace.Path("file")).ok());
  EXPECT_FALSE(TreeSnapshot::Capture(workspace.Path("symlink")).ok());
  EXPECT_EQ(TreeSnapshot::Capture(workspace.Path("missing")).error().code(), Code::kNotFound);
}

TEST(CompareOptions, MtimeToleranceIsInclusive) {
  const TempWorkspace workspace;
  SmallTree(workspace.project());
  const TreeBuilder tree(workspace.project());
  tree.Mtime("small.txt", {.sec = 999, .nsec = 999'999'999});
  const TreeSnapshot before = workspace.Snapshot();
  tree.Mtime("small.txt", {.sec = 1000, .nsec = 1});
  const TreeSnapshot after = workspace.Snapshot();
  EXPECT_THAT(Diff(before, after, {.mtime_tolerance_ns = 2}), IsEmpty());
  EXPECT_THAT(Diff(before, after, {.mtime_tolerance_ns = 1}),
              ElementsAre("small.txt: mtime 999.999999999 -> 1000.000000001"));
}

TEST(CompareOptions, XattrsCanBeLeftOut) {
  const TempWorkspace workspace;
  if (!XattrTree(workspace.project())) GTEST_SKIP() << "no user xattrs on this file system";
  const TreeSnapshot before = workspace.Snapshot();
  TreeBuilder(workspace.project()).Xattr("plain.txt", "user.x", "1");
  EXPECT_THAT(Diff(before, workspace.Snapshot(), {.check_xattrs = Check::kNo}), IsEmpty());
}

TEST(CompareOptions, OwnersCanBeLeftOut) {
  const TempWorkspace workspace;
  SmallTree(workspace.project());
  const TreeSnapshot before = workspace.Snapshot();
  if (TreeBuilder(workspace.project()).Owner("small.txt", 4242, 4242) != 0)
    GTEST_SKIP() << "needs root";
  EXPECT_THAT(Diff(before, workspace.Snapshot(), {.check_owner = Check::kNo}), IsEmpty());
}

TEST(CompareOptions, ExcludedPathsAreNotCompared) {
  const TempWorkspace workspace;
  SmallTree(workspace.project());
  const TreeBuilder tree(workspace.project());
  const TreeSnapshot before = workspace.Snapshot();
  tree.Remove("src/components/app.rs");
  tree.File("src.txt", "");
  tree.Link("small.txt", "src/linked");
  AgeTree(workspace.project());
  tree.Mtime("small.txt", before.Find("small.txt")->mtime);
  EXPECT_THAT(Diff(before, workspace.Snapshot(), {.exclude = {Subtree("src")}}),
              ElementsAre("src.txt: was not there, is a regular file"));
}

TEST(TreesEqual, SaysWhereTheTreesDiffer) {
  const TempWorkspace workspace;
  SmallTree(workspace.project());
  const TreeSnapshot before = workspace.Snapshot();
  TreeBuilder(workspace.project()).Mode("run.sh", 0700);
  const ::testing::AssertionResult result = TreesEqual(before, workspace.Snapshot());
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message(), HasSubstr("run.sh: mode 0755 -> 0700"));
}

TEST(TreesEqual, NamesWithOddBytesStayOnOneLine) {
  const TempWorkspace workspace;
  const TreeSnapshot before = workspace.Snapshot();
  TreeBuilder(workspace.project()).File("a\nb\xff\\c", "");
  EXPECT_THAT(Diff(before, workspace.Snapshot()),
              ElementsAre(StartsWith(".: mtime"), StartsWith("a\\x0ab\\xff\\x5cc: was not there")));
}

}  // namespace
}  // namespace sandglass::test
