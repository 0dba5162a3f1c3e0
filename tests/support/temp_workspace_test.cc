#include "tests/support/temp_workspace.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "tests/support/fixtures.h"
#include "tests/support/inode_flags.h"
#include "tests/support/tree_builder.h"

namespace sandglass::test {
namespace {

bool PathExists(const std::string& path) {
  struct stat st;
  return ::lstat(path.c_str(), &st) == 0;
}

TEST(TempWorkspace, ProjectAndStoreLieSideBySideOnTheFileSystemUnderTest) {
  const TempWorkspace workspace;
  EXPECT_TRUE(workspace.root().starts_with(TestDirectory() + "/"));
  EXPECT_EQ(workspace.project(), workspace.root() + "/project");
  EXPECT_EQ(workspace.store(), workspace.root() + "/store");
  EXPECT_TRUE(PathExists(workspace.store()));
  EXPECT_EQ(workspace.Snapshot().entries().size(), 1U);
}

TEST(TempWorkspace, TwoOfThemNeverMeet) {
  const TempWorkspace one;
  const TempWorkspace other;
  EXPECT_NE(one.root(), other.root());
}

TEST(TempWorkspace, FilesAreWrittenReadAndSeen) {
  const TempWorkspace workspace;
  workspace.WriteFile("a/b/c.txt", "one");
  workspace.WriteFile("a/b/c.txt", "2");
  workspace.MakeDir("x/y");
  workspace.MakeDir("x/y");
  EXPECT_EQ(workspace.ReadFile("a/b/c.txt"), "2");
  EXPECT_TRUE(workspace.Exists("x/y"));
  EXPECT_FALSE(workspace.Exists("x/z"));
  EXPECT_EQ(workspace.Stat("a/b/c.txt").st_size, 1);
  EXPECT_TRUE(S_ISDIR(workspace.Stat("").st_mode));
}

TEST(TempWorkspace, OverwritingKeepsTheInode) {
  const TempWorkspace workspace;
  workspace.WriteFile("f", "one");
  const ino_t inode = workspace.Stat("f").st_ino;
  workspace.WriteFile("f", "two");
  EXPECT_EQ(workspace.Stat("f").st_ino, inode);
}

TEST(TempWorkspace, NothingIsLeftBehindHoweverLockedItWas) {
  std::string root;
  {
    const TempWorkspace workspace;
    root = workspace.root();
    WeirdTree(workspace.project());
    const TreeBuilder tree(workspace.project());
    tree.AddFlags("links/other", FS_IMMUTABLE_FL);
    tree.AddFlags("bits", FS_APPEND_FL);
    tree.Mode("", 0);
    tree.AddFlags("", FS_IMMUTABLE_FL);
  }
  EXPECT_FALSE(PathExists(root));
}

TEST(TempWorkspace, RemovingFollowsNoSymlink) {
  const TempWorkspace workspace;
  workspace.WriteFile("kept", "kept");
  const TreeBuilder root(workspace.root());
  root.Dir("doomed");
  root.Symlink("doomed/file", "../project/kept");
  root.Symlink("doomed/dir", "../project");
  EXPECT_TRUE(RemoveTree(workspace.root() + "/doomed").ok());
  EXPECT_FALSE(PathExists(workspace.root() + "/doomed"));
  EXPECT_EQ(workspace.ReadFile("kept"), "kept");
}

}  // namespace
}  // namespace sandglass::test
