// What happens to symlinks under each policy (SY-01..08), and that no capture and no rollback ever follows one out of the
// project.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/io.h"
#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using test::Must;
using test::MustCall;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class UndoSymlinks : public UndoTest {
 protected:
  void StartUnder(SymlinkPolicy policy) {
    options_.symlinks = policy;
    test::SymlinkTree(workspace().project());
    workspace().WriteFile("plain.txt", "plain");
    test::AgeTree(workspace().project());
    OpenLog();
  }
  std::string Target(std::string_view path) const {
    char target[4096];
    const ssize_t size = ::readlink(workspace().Path(path).c_str(), target, sizeof target);
    return size < 0 ? "" : std::string(target, static_cast<size_t>(size));
  }
  // Everything that can happen to a symlink, and one change beside.
  void ChangeSymlinks() {
    EXPECT_OK(ops().Symlink("plain.txt", "created"));
    EXPECT_OK(ops().Unlink("to_dir"));
    EXPECT_OK(ops().Unlink("to_file"));
    EXPECT_OK(ops().Symlink("dir/inside.txt", "to_file"));
    EXPECT_OK(ops().Overwrite("plain.txt", "changed"));
  }
};

TEST_F(UndoSymlinks, SY_01_TheDefaultIsFullUndo) {
  EXPECT_EQ(UndoOptions{}.symlinks, SymlinkPolicy::kReadWrite);
  StartUnder(UndoOptions{}.symlinks);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { ChangeSymlinks(); });
  EXPECT_THAT(ChangeLines(step), ElementsAre("created created", "deleted to_dir",
                                             "modified plain.txt", "modified to_file"));
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoSymlinks, SY_02_ReadWriteTakesCreateDeleteReplaceAndRenameBack) {
  StartUnder(SymlinkPolicy::kReadWrite);
  ExpectUndone([&] { EXPECT_OK(ops().Symlink("nowhere", "created")); });
  ExpectUndone([&] { EXPECT_OK(ops().Unlink("to_file")); });
  ExpectUndone([&] {
    EXPECT_OK(ops().Unlink("to_file"));
    EXPECT_OK(ops().Symlink("dir", "to_file"));
  });
  ExpectUndone([&] {
    EXPECT_OK(ops().Symlink("dir", "replacement"));
    EXPECT_OK(ops().Rename("replacement", "to_file"));
  });
  ExpectUndone([&] { EXPECT_OK(ops().Rename("to_file", "dir/renamed")); });
  ExpectUndone([&] { EXPECT_OK(ops().Rename("to_file", "to_dir", RenameMode::kExchange)); });
  ExpectUndone([&] {
    EXPECT_OK(ops().Unlink("to_dir"));
    EXPECT_OK(ops().Mkdir("to_dir"));
    EXPECT_OK(ops().WriteNew("to_dir/file", "a directory now"));
  });
  ExpectUndone([&] { EXPECT_OK(ops().Link("to_file", "hard_link_to_a_symlink")); });
}

TEST_F(UndoSymlinks, SY_03_IgnoreRecordsNoCreatedSymlink) {
  StartUnder(SymlinkPolicy::kIgnore);
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Symlink("plain.txt", "dir/created"));
    EXPECT_OK(ops().Overwrite("plain.txt", "changed"));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified plain.txt"));
  RollBack();
  EXPECT_EQ(Target("dir/created"), "plain.txt");
  EXPECT_EQ(Content("plain.txt"), "plain");
}

TEST_F(UndoSymlinks, SY_04_IgnoreLeavesDeletedAndReplacedSymlinksAsTheyAre) {
  StartUnder(SymlinkPolicy::kIgnore);
  const StepId step = InStep([&] { ChangeSymlinks(); });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified plain.txt"));
  RollBack();
  EXPECT_FALSE(workspace().Exists("to_dir"));
  EXPECT_EQ(Target("to_file"), "dir/inside.txt");
  EXPECT_EQ(Target("created"), "plain.txt");
  EXPECT_EQ(Content("plain.txt"), "plain");
}

TEST_F(UndoSymlinks, SY_04_IgnoreLeavesARenamedSymlinkWhereItIs) {
  StartUnder(SymlinkPolicy::kIgnore);
  const StepId step = InStep([&] { EXPECT_OK(ops().Rename("to_file", "dir/moved")); });
  EXPECT_THAT(ChangeLines(step), IsEmpty());
  EXPECT_EQ(Target("dir/moved"), "target.txt");
}

TEST_F(UndoSymlinks, SY_05_ReadOnlyRecordsADeletedSymlinkButDoesNotMakeItAgain) {
  StartUnder(SymlinkPolicy::kReadOnly);
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Unlink("to_file"));
    EXPECT_OK(ops().Unlink("plain.txt"));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("deleted plain.txt", "deleted to_file"));
  const RewindReport report = RollBack();
  EXPECT_FALSE(workspace().Exists("to_file"));
  EXPECT_EQ(Content("plain.txt"), "plain");
  EXPECT_THAT(report.warnings, Contains(::testing::HasSubstr("to_file")))
      << "what was left out is said";
}

TEST_F(UndoSymlinks, SY_05_ReadOnlyDoesNotMakeADeletedSymlinkAgainByARestoreEither) {
  StartUnder(SymlinkPolicy::kReadOnly);
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Unlink("to_file"));
    EXPECT_OK(ops().Unlink("plain.txt"));
  });
  const std::vector<std::string> paths = {"to_file", "plain.txt"};
  const RewindReport report = Must(log().Restore(step, paths));
  EXPECT_FALSE(workspace().Exists("to_file"));
  EXPECT_EQ(Content("plain.txt"), "plain");
  EXPECT_THAT(report.warnings, Contains(::testing::HasSubstr("to_file")));
}

TEST_F(UndoSymlinks, SY_06_ReadOnlyDoesNotPutAReplacedSymlinkBack) {
  StartUnder(SymlinkPolicy::kReadOnly);
  InStep([&] {
    EXPECT_OK(ops().Unlink("to_file"));
    EXPECT_OK(ops().Symlink("dir/inside.txt", "to_file"));
    EXPECT_OK(ops().Chmod("plain.txt", 0600));
  });
  RollBack();
  EXPECT_NE(Target("to_file"), "target.txt");
  EXPECT_EQ(StatOf("plain.txt").st_mode & 07777, 0644u);
}

// A file that replaced a symlink is the step's own and goes; the name is free then.
TEST_F(UndoSymlinks, SY_06_ReadOnlyRemovesAFileThatTookASymlinksPlace) {
  StartUnder(SymlinkPolicy::kReadOnly);
  InStep([&] {
    EXPECT_OK(ops().Unlink("to_file"));
    EXPECT_OK(ops().WriteNew("to_file", "a file now"));
  });
  RollBack();
  EXPECT_FALSE(workspace().Exists("to_file"));
}

// Symlinks may be left alone; a file that one of them replaced may not.
class UndoFilesUnderSymlinkPolicies : public UndoSymlinks,
                                      public ::testing::WithParamInterface<SymlinkPolicy> {
 protected:
  void SetUp() override { StartUnder(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Policies, UndoFilesUnderSymlinkPolicies,
                         ::testing::Values(SymlinkPolicy::kIgnore, SymlinkPolicy::kReadOnly));

TEST_P(UndoFilesUnderSymlinkPolicies, AFileThatASymlinkWasRenamedOverComesBack) {
  InStep([&] { EXPECT_OK(ops().Rename("to_file", "plain.txt")); });
  RollBack();
  EXPECT_EQ(Content("plain.txt"), "plain");
  RedoSteps();
  RollBack();
  EXPECT_EQ(Content("plain.txt"), "plain");
}

TEST_P(UndoFilesUnderSymlinkPolicies, AFileThatChangedPlacesWithASymlinkComesBack) {
  InStep([&] { EXPECT_OK(ops().Rename("to_file", "plain.txt", RenameMode::kExchange)); });
  RollBack();
  EXPECT_EQ(Content("plain.txt"), "plain");
  EXPECT_EQ(Target("to_file"), "target.txt");
}

TEST_P(UndoFilesUnderSymlinkPolicies, AFileThatASymlinkTookThePlaceOfComesBack) {
  InStep([&] {
    EXPECT_OK(ops().Unlink("plain.txt"));
    EXPECT_OK(ops().Symlink("elsewhere", "plain.txt"));
  });
  const RewindReport report = RollBack();
  EXPECT_THAT(report.conflicts, IsEmpty());
  EXPECT_EQ(Content("plain.txt"), "plain");
  EXPECT_THAT(report.kept, ElementsAre("plain.txt.kept-1"));
  EXPECT_EQ(Target("plain.txt.kept-1"), "elsewhere");
}

TEST_P(UndoFilesUnderSymlinkPolicies, AFileThatASymlinkTookThePlaceOfComesBackAfterACrash) {
  CloseLog();
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    EXPECT_OK(ops().Unlink("plain.txt"));
    EXPECT_OK(ops().Symlink("elsewhere", "plain.txt"));
    DieNow();
  });
  OpenLog();
  EXPECT_EQ(Content("plain.txt"), "plain");
}

// Containment. `outside` lies beside the project; nothing about it may change, not even its access time.
class UndoSymlinkContainment : public UndoSymlinks {
 protected:
  void SetUp() override {
    outside_ = workspace().root() + "/outside";
    MustCall(::mkdir(outside_.c_str(), 0755), "mkdir");
    MustCall(::mkdir((outside_ + "/components").c_str(), 0755), "mkdir");
    for (const char* name : {"/secret.txt", "/main.rs", "/components/app.rs"}) {
      const Fd file(MustCall(
          ::open((outside_ + name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "open"));
      Must(WriteFully(file.get(), AsBytes(kSecret)));
    }
    test::AgeTree(outside_);
    test::SmallTree(workspace().project());
    const TreeBuilder tree(workspace().project());
    tree.Symlink("escape_file", outside_ + "/secret.txt");
    tree.Symlink("escape_dir", "../outside");
    tree.Symlink("chain_1", "chain_2");
    tree.Symlink("chain_2", "escape_file");
    test::AgeTree(workspace().project());
    SetAtime(outside_ + "/secret.txt");
    outside_before_ = Must(TreeSnapshot::Capture(outside_));
  }

  // Back to the epoch, so that any read would move it (relatime).
  static void SetAtime(const std::string& path) {
    const timespec times[2] = {{.tv_sec = 1000, .tv_nsec = 0},
                               {.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
    MustCall(::utimensat(AT_FDCWD, path.c_str(), times, 0), "utimens");
  }
  void ExpectOutsideUntouched() const {
    struct stat st;
    MustCall(::stat((outside_ + "/secret.txt").c_str(), &st), "stat");
    EXPECT_EQ(st.st_atim.tv_sec, 1000) << "someone read it";
    EXPECT_TREE_EQ(outside_before_, Must(TreeSnapshot::Capture(outside_)));
  }
  bool StoreHoldsTheSecret() {
    log().WaitForBackground();  // what is being deleted must not be looked at
    for (const std::string& path : FilesBelow(workspace().store())) {
      const Fd file(MustCall(::open(path.c_str(), O_RDONLY | O_CLOEXEC), "open " + path));
      if (AsText(Must(ReadFully(file.get(), size_t{1} << 30))).find(kSecret) !=
          std::string_view::npos)
        return true;
    }
    return false;
  }
  // A person moves src away and puts a symlink to the outside in its place.
  void ReplaceSrcByASymlink() const {
    MustCall(::rename(workspace().Path("src").c_str(), (workspace().root() + "/src_away").c_str()),
             "rename");
    MustCall(::symlink(outside_.c_str(), workspace().Path("src").c_str()), "symlink");
  }

  static constexpr std::string_view kSecret = "nothing of this may enter the store";
  std::string outside_;
  TreeSnapshot outside_before_;
};

TEST_F(UndoSymlinkContainment, SY_07_CaptureDoesNotReadWhatASymlinkPointsTo) {
  OpenLog();
  ExpectUndone([&] {
    EXPECT_OK(ops().Unlink("escape_file"));
    EXPECT_OK(ops().Rename("escape_dir", "src/escape_dir"));
    EXPECT_OK(ops().Unlink("chain_1"));
    EXPECT_OK(ops().SetMtime("chain_2", 1'500'000'000'000'000'001));
    EXPECT_OK(ops().Unlink("src/escape_dir"));
  });
  EXPECT_FALSE(StoreHoldsTheSecret());
  ExpectOutsideUntouched();
}

TEST_F(UndoSymlinkContainment, SY_07_APathThroughASymlinkIsRefused) {
  OpenLog();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_CODE(ops().Unlink("escape_dir/secret.txt"), Code::kOutsideRoot);
  EXPECT_CODE(ops().Overwrite("escape_dir/secret.txt", "x"), Code::kOutsideRoot);
  EXPECT_FALSE(ops().Overwrite("escape_file", "x").ok());
  EXPECT_OK(log().CloseStep());
  EXPECT_FALSE(StoreHoldsTheSecret());
  ExpectOutsideUntouched();
}

TEST_F(UndoSymlinkContainment, SY_08_RollbackDoesNotWriteThroughADirectoryThatBecameASymlink) {
  OpenLog();
  InStep([&] {
    EXPECT_OK(ops().Overwrite("src/main.rs", "changed"));
    EXPECT_OK(ops().Unlink("src/components/app.rs"));
    EXPECT_OK(ops().WriteNew("src/new.rs", "new"));
    EXPECT_OK(ops().Chmod("src/components", 0700));
  });
  ReplaceSrcByASymlink();
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  ExpectOutsideUntouched();
  (void)log().Rollback(1, Force::kYes);
  ExpectOutsideUntouched();
}

TEST_F(UndoSymlinkContainment, SY_08_RollbackOfACreatedFileDoesNotDeleteThroughASymlink) {
  OpenLog();
  InStep([&] {
    EXPECT_OK(ops().Mkdir("made"));
    EXPECT_OK(ops().WriteNew("made/secret.txt", "the step's own"));
  });
  MustCall(::rename(workspace().Path("made").c_str(), (workspace().root() + "/made_away").c_str()),
           "rename");
  MustCall(::symlink(outside_.c_str(), workspace().Path("made").c_str()), "symlink");
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  (void)log().Rollback(1, Force::kYes);
  ExpectOutsideUntouched();
}

TEST_F(UndoSymlinkContainment, SY_08_RecoveryDoesNotFollowASymlinkEither) {
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    EXPECT_OK(ops().Overwrite("src/main.rs", "changed"));
    EXPECT_OK(ops().Unlink("src/components/app.rs"));
    EXPECT_OK(ops().WriteNew("src/secret.txt", "the step's own"));
    DieNow();
  });
  ReplaceSrcByASymlink();
  OpenLog();
  ExpectOutsideUntouched();
  EXPECT_THAT(log().recovery().rewind.conflicts, Not(IsEmpty()));
}

TEST_F(UndoSymlinkContainment, SY_08_RestoreDoesNotFollowASymlinkEither) {
  OpenLog();
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("src/main.rs", "changed")); });
  ReplaceSrcByASymlink();
  const std::vector<std::string> wanted = {"src/main.rs"};
  EXPECT_FALSE(log().Restore(step, wanted).ok());
  (void)log().Restore(step, wanted, Force::kYes);
  ExpectOutsideUntouched();
  const std::vector<std::string> outside = {"../outside/secret.txt"};
  EXPECT_CODE(log().Restore(step, outside), Code::kOutsideRoot);
}

}  // namespace
}  // namespace sandglass::undo
