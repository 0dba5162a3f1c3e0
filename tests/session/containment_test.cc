// Symlinks that lead out of the project, in a real world.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/session/sandglass_fixture.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {
namespace {

using ::testing::Not;

class SymlinkContainment : public SandglassFixture {
 protected:
  void SetUp() override {
    SandglassFixture::SetUp();
    if (IsSkipped()) return;
    outside_ = workspace_.root() + "/beside";
    MustCall(::mkdir(outside_.c_str(), 0700), outside_);
    file_ = outside_ + "/file";
    const Fd made(MustCall(::open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), file_));
    Must(WriteFully(made.get(), AsBytes(kContent)));
  }
  std::string Outside() const { return Must(ReadFileAt(AT_FDCWD, file_.c_str(), 1 << 20)); }
  // Does any file of the state folder, the undo store among it, hold the text?
  bool StateHolds(std::string_view text) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(state_)) {
      if (!entry.is_regular_file()) continue;
      const auto content = ReadFileAt(AT_FDCWD, entry.path().c_str(), 64u << 20);
      if (content.ok() && content->find(text) != std::string::npos) return true;
    }
    return false;
  }

  static constexpr char kContent[] = "what nobody inside may see";
  std::string outside_, file_;
};

TEST_F(SymlinkContainment, SC_01_CaptureDoesNotReadWhatASymlinkPointsTo) {
  MustCall(::symlink(file_.c_str(), workspace_.Path("out").c_str()), "symlink");
  MustCall(::symlink("/etc/passwd", workspace_.Path("passwd").c_str()), "symlink");
  workspace_.WriteFile("plain", "what is kept as it is");
  const TreeSnapshot before = workspace_.Snapshot();
  EXPECT_EQ(Shell("mv out moved; rm passwd; ln -s other passwd; chown -h $(id -u) moved; rm moved; "
                  "echo new >>plain")
                .exit_code,
            0);
  EXPECT_TRUE(StateHolds("what is kept as it is")) << "or this test could not fail";
  EXPECT_FALSE(StateHolds(kContent));
  EXPECT_FALSE(StateHolds("root:x:0:0"));
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

TEST_F(SymlinkContainment, SC_02_RollbackWritesNothingThroughASymlink) {
  workspace_.WriteFile("dir/file", "of the project");
  workspace_.WriteFile("link", "of the project, too");
  const TreeSnapshot before = workspace_.Snapshot();
  // Where undo has to put things back there are symlinks now.
  EXPECT_EQ(Shell("rm -r dir link; ln -s " + outside_ + " dir; ln -s " + file_ + " link").exit_code,
            0);
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_EQ(Outside(), kContent);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  // And where somebody else has put one since.
  EXPECT_EQ(Shell("rm dir/file").exit_code, 0);
  MustCall(::rename(workspace_.Path("dir").c_str(), workspace_.Path("dir.was").c_str()), "rename");
  MustCall(::symlink(outside_.c_str(), workspace_.Path("dir").c_str()), "symlink");
  Sandglass({"undo", "--force"});
  EXPECT_EQ(Outside(), kContent);
}

TEST_F(SymlinkContainment, SC_03_AChainOfSymlinksOutIsDenied) {
  const Ended ran =
      Shell("ln -s b a; ln -s src/c b; ln -s " + file_ +
            " src/c; cat a; echo over >a; echo over >>b; truncate -s 0 src/c; chmod 666 a; "
            "ln -s " +
            outside_ + " d1; ln -s d1 d2; touch d2/new; rm -f d2/file; test ! -e a");
  EXPECT_THAT(ran.out, Not(::testing::HasSubstr(kContent)));
  EXPECT_EQ(ran.exit_code, 0) << "the file is seen from inside";
  EXPECT_EQ(Outside(), kContent);
  struct stat seen;
  ASSERT_EQ(::stat(file_.c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 0777, 0600u);
  EXPECT_NE(::access((outside_ + "/new").c_str(), F_OK), 0);
}

// A command can change it, and the next world would show what it chose.
TEST_F(SymlinkContainment, ALinkInAnyKnownProjectShowsNothingOfTheHome) {
  const std::string dotfiles = home_ + "/dotfiles";
  MustCall(::mkdir(dotfiles.c_str(), 0700), dotfiles);
  MustCall(::symlink("dotfiles/gitconfig", (home_ + "/.gitconfig").c_str()), "symlink");
  const std::string target = home_ + "/private";
  const Fd made(MustCall(::open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), target));
  Must(WriteFully(made.get(), AsBytes(kContent)));
  MustCall(::symlink("../private", (dotfiles + "/gitconfig").c_str()), "symlink");
  EXPECT_EQ(Shell("cat ~/.gitconfig").out, kContent)
      << "a person's link; or this test could not fail";
  EXPECT_EQ(Sandglass({"run", "-p", dotfiles, "--", "sh", "-c",
                       "cat ~/.gitconfig; rm gitconfig; ln -s ../private gitconfig"})
                .out,
            "");
  EXPECT_EQ(Shell("cat ~/.gitconfig").out, "");
}

}  // namespace
}  // namespace sandglass::test
