#include "tests/support/fixtures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <set>
#include <string>

#include "tests/support/temp_workspace.h"
#include "tests/support/tree_builder.h"

namespace sandglass::test {
namespace {

using ::testing::IsEmpty;

size_t CountOf(const TreeSnapshot& tree, mode_t type) {
  const auto& entries = tree.entries();
  return static_cast<size_t>(
      std::count_if(entries.begin(), entries.end(),
                    [type](const auto& entry) { return (entry.mode & S_IFMT) == type; }));
}

TEST(Fixtures, SmallTreeHasFilesOfAllSizes) {
  const TempWorkspace workspace;
  SmallTree(workspace.project());
  EXPECT_EQ(workspace.ReadFile("small.txt"), "hello world");
  EXPECT_EQ(workspace.Stat("large.bin").st_size, 1'000'000);
  EXPECT_EQ(workspace.Stat("run.sh").st_mode & 07777, 0755U);
  EXPECT_EQ(CountOf(workspace.Snapshot(), S_IFREG), 7U);
}

TEST(Fixtures, RenameTreeHasTwoDifferentFiles) {
  const TempWorkspace workspace;
  RenameTree(workspace.project());
  EXPECT_NE(workspace.ReadFile("a.txt"), workspace.ReadFile("b.txt"));
}

TEST(Fixtures, XattrTreeSaysWhetherItHasXattrs) {
  const TempWorkspace workspace;
  const bool supported = XattrTree(workspace.project());
  EXPECT_EQ(workspace.Snapshot().Find("tagged.txt")->xattrs.size() >= 2, supported);
}

TEST(Fixtures, SymlinkTreeLeadsToFileAndDirectory) {
  const TempWorkspace workspace;
  SymlinkTree(workspace.project());
  EXPECT_EQ(workspace.ReadFile("to_file"), "target");
  EXPECT_EQ(workspace.ReadFile("to_dir/inside.txt"), "inside");
  EXPECT_EQ(CountOf(workspace.Snapshot(), S_IFLNK), 2U);
}

TEST(Fixtures, DeepTreeHasFiveLevelsAndMoreThanAHundredFiles) {
  const TempWorkspace workspace;
  DeepTree(workspace.project());
  EXPECT_TRUE(workspace.Exists("level1/level2/level3/level4/level5/file24.txt"));
  EXPECT_EQ(CountOf(workspace.Snapshot(), S_IFREG), 125U);
}

TEST(Fixtures, EveryEntryHasAnMtimeOfItsOwnThatIsOldAndOdd) {
  const TempWorkspace workspace;
  DeepTree(workspace.project());
  const TreeSnapshot tree = workspace.Snapshot();
  std::set<std::pair<int64_t, uint32_t>> times;
  for (const EntrySnapshot& entry : tree.entries()) {
    EXPECT_LT(entry.mtime.sec, 1'500'000'000) << entry.path;
    EXPECT_NE(entry.mtime.nsec % 1000, 0U) << entry.path;
    EXPECT_TRUE(times.emplace(entry.mtime.sec, entry.mtime.nsec).second) << entry.path;
  }
}

TEST(Fixtures, TheSameTreeTwiceIsEqual) {
  const TempWorkspace one;
  const TempWorkspace other;
  EXPECT_EQ(WeirdTree(one.project()), WeirdTree(other.project()));
  CompareOptions options;
  if (::geteuid() != 0) options.check_unreadable = Check::kNo;
  EXPECT_TRUE(TreesEqual(one.Snapshot(), other.Snapshot(), options));
}

TEST(Fixtures, WeirdTreeHasWhatItPromises) {
  const TempWorkspace workspace;
  const std::vector<std::string> skipped = WeirdTree(workspace.project());
  for (const std::string& line : skipped)
    std::printf("not on this file system: %s\n", line.c_str());
  const TreeSnapshot tree = workspace.Snapshot();

  EXPECT_GT(WeirdTreeLongPath().size(), static_cast<size_t>(PATH_MAX));
  ASSERT_NE(tree.Find(WeirdTreeLongPath()), nullptr);
  EXPECT_EQ(tree.Find(WeirdTreeLongPath())->size, 20U);
  EXPECT_NE(tree.Find("names/new\nline"), nullptr);
  EXPECT_NE(tree.Find("names/invalid\xff\xfe\x80utf8"), nullptr);
  EXPECT_NE(tree.Find("names/" + std::string(255, 'd') + "/child"), nullptr);
  EXPECT_EQ(tree.Find("bits/all")->mode & 07777, 07777U);
  EXPECT_EQ(tree.Find("closed/mode_000")->mode & 07777, 0U);
  EXPECT_EQ(tree.Find("before_1970")->mtime, (FileTime{-86'401, 123'456'789}));
  EXPECT_EQ(tree.link_groups().size(), 6U);
  EXPECT_LT(workspace.Stat("sparse/middle").st_blocks * 512, 1 << 20);
  EXPECT_EQ(CountOf(tree, S_IFIFO), 3U);
  EXPECT_EQ(CountOf(tree, S_IFSOCK), 1U);
}

TEST(Fixtures, WeirdTreeLacksNothingForRootButWhatTheFileSystemLacks) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const TempWorkspace workspace;
  std::vector<std::string> skipped = WeirdTree(workspace.project());
  // tmpfs knows no noatime flag.
  std::erase_if(skipped, [](const std::string& line) { return line.starts_with("flag "); });
  EXPECT_THAT(skipped, IsEmpty());
}

TEST(Fixtures, WithoutLockedFilesPlainCallsCanRemoveTheFlaggedOnes) {
  const TempWorkspace workspace;
  WeirdTree(workspace.project(), LockedFiles::kOmit);
  const TreeBuilder tree(workspace.project());
  for (const char* path : {"flags/append", "flags/immutable", "flags/nodump"}) tree.Remove(path);
  EXPECT_FALSE(workspace.Exists("flags/append"));
}

}  // namespace
}  // namespace sandglass::test
