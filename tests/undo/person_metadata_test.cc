// What a person does to metadata between a step and its rollback, restore or recovery: to the mode, xattrs, ACL, flags and times of
// folders, to flags of files, and to what a folder lets us see. It is kept, or it stands in the way; it never just goes.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using test::MustCall;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class UndoPersonsMetadata : public UndoTest {
 protected:
  void SetUp() override {
    options_.compression = Compression::kOff;
    workspace().WriteFile("d/old", "old");
  }
  void Start() {
    test::AgeTree(workspace().project());
    OpenLog();
  }

  void SetXattr(std::string_view path) const {
    MustCall(::setxattr(workspace().Path(path).c_str(), "user.person", "v", 1, 0), "setxattr");
  }
  bool HasXattr(std::string_view path) const {
    return ::getxattr(workspace().Path(path).c_str(), "user.person", nullptr, 0) == 1;
  }
  void SetFlag(std::string_view path, int flag) const {
    const Fd fd(MustCall(::open(workspace().Path(path).c_str(), O_RDONLY | O_CLOEXEC), "open"));
    int flags = 0;
    MustCall(::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags), "get flags");
    flags |= flag;
    MustCall(::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags), "set flags");
  }
  // Tells whether it was there, and takes it away for whoever cleans up.
  bool TakeFlag(std::string_view path, int flag) const {
    const Fd fd(::open(workspace().Path(path).c_str(), O_RDONLY | O_CLOEXEC));
    int flags = 0;
    if (!fd.valid() || ::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) != 0) return false;
    int without = flags & ~flag;
    MustCall(::ioctl(fd.get(), FS_IOC_SETFLAGS, &without), "set flags");
    return (flags & flag) != 0;
  }
  bool HasFlags() const {
    const Fd fd(::open(workspace().project().c_str(), O_RDONLY | O_CLOEXEC));
    int flags = 0;
    return ::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) == 0;
  }
  void SetMtime(std::string_view path, time_t seconds) const {
    const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                               {.tv_sec = seconds, .tv_nsec = 5}};
    MustCall(::utimensat(AT_FDCWD, workspace().Path(path).c_str(), times, 0), "utimens");
  }
  void Chmod(std::string_view path, mode_t mode) const {
    MustCall(::chmod(workspace().Path(path).c_str(), mode), "chmod");
  }
  mode_t ModeOf(std::string_view path) const { return StatOf(path).st_mode & 07777; }
  StepId AddAFile() {
    return InStep([&] { EXPECT_OK(ops().WriteNew("d/new", "new")); });
  }
  void ExpectRefused(std::string_view path) {
    EXPECT_CODE(log().Rollback(1), Code::kConflict);
    const auto plan = log().PlanRollback(1);
    ASSERT_OK(plan);
    EXPECT_TRUE(HasConflict(plan->conflicts, ConflictKind::kEdited, path));
  }
};

// --- Folders in which the step only changed names: nothing but their time is the step's.

TEST_F(UndoPersonsMetadata, AnXattrOfAFolderOutlivesARollbackOfNamesInIt) {
  Start();
  AddAFile();
  SetXattr("d");
  EXPECT_THAT(Lines(RollBack().conflicts), IsEmpty());
  EXPECT_TRUE(HasXattr("d"));
  RedoSteps();
  EXPECT_TRUE(HasXattr("d"));
}

TEST_F(UndoPersonsMetadata, AnXattrOfTheProjectItselfOutlivesARollback) {
  Start();
  InStep([&] { EXPECT_OK(ops().WriteNew("new", "new")); });
  SetXattr("");
  RollBack();
  EXPECT_TRUE(HasXattr(""));
}

TEST_F(UndoPersonsMetadata, AFlagOfAFolderOutlivesARollback) {
  if (!HasFlags()) GTEST_SKIP() << "no flags on " << FileSystemName(workspace().project());
  Start();
  AddAFile();
  SetFlag("d", FS_NODUMP_FL);
  RollBack();
  EXPECT_TRUE(TakeFlag("d", FS_NODUMP_FL));
}

TEST_F(UndoPersonsMetadata, ALockedFolderIsLockedAgainAfterARollback) {
  if (!HasFlags() || ::geteuid() != 0) GTEST_SKIP() << "nothing can be locked here";
  Start();
  const TreeSnapshot before = Snapshot();
  AddAFile();
  SetFlag("d", FS_IMMUTABLE_FL);
  EXPECT_OK(log().Rollback(1));
  EXPECT_TRUE(TakeFlag("d", FS_IMMUTABLE_FL));
  ExpectTree(before);
}

TEST_F(UndoPersonsMetadata, TheTimeThatAPersonGaveAFolderOutlivesRollbacks) {
  Start();
  AddAFile();
  InStep([&] { EXPECT_OK(ops().Unlink("d/old")); });
  SetMtime("d", 1'000'000'000);
  RollBack();
  EXPECT_EQ(StatOf("d").st_mtim.tv_sec, 1'000'000'000);
  RollBack();
  EXPECT_EQ(StatOf("d").st_mtim.tv_sec, 1'000'000'000);
}

TEST_F(UndoPersonsMetadata, AFolderThatAPersonAddedToKeepsTheTimeOfThat) {
  Start();
  AddAFile();
  InStep([&] { EXPECT_OK(ops().Unlink("d/old")); });
  workspace().WriteFile("d/persons", "mine");
  const struct stat then = StatOf("d");
  EXPECT_THAT(Lines(RollBack(2).conflicts), IsEmpty());
  EXPECT_EQ(StatOf("d").st_mtim.tv_sec, then.st_mtim.tv_sec);
  EXPECT_EQ(StatOf("d").st_mtim.tv_nsec, then.st_mtim.tv_nsec);
}

TEST_F(UndoPersonsMetadata, AnXattrThatAFolderGetsInAnOpenStepOutlivesItsAbort) {
  Start();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().WriteNew("d/new", "new"));
  SetXattr("d");
  EXPECT_OK(log().AbortStep());
  EXPECT_TRUE(HasXattr("d"));
  EXPECT_FALSE(workspace().Exists("d/new"));
}

TEST_F(UndoPersonsMetadata, AFolderThatTheStepRemovedComesBackWithAllItHad) {
  MustCall(::mkdir(workspace().Path("d/empty").c_str(), 0751), "mkdir");
  SetXattr("d/empty");
  Start();
  ExpectUndone([&] { EXPECT_OK(ops().Rmdir("d/empty")); });
}

// --- Folders that the step itself changed, or made.

TEST_F(UndoPersonsMetadata, AnXattrOfAFolderThatTheStepChangedStandsInTheWay) {
  Start();
  InStep([&] { EXPECT_OK(ops().Chmod("d", 0700)); });
  SetXattr("d");
  ExpectRefused("d");
  EXPECT_TRUE(HasXattr("d"));
}

// Taking a later step back leads through the folder, which that step had nothing to do with.
TEST_F(UndoPersonsMetadata, AnAbortInAFolderDoesNotHideWhatWasDoneToItBefore) {
  Start();
  InStep([&] {
    EXPECT_OK(ops().Mkdir("made"));
    EXPECT_OK(ops().WriteNew("made/file", "new"));
  });
  MustCall(::chmod(workspace().Path("made").c_str(), 0711), "chmod");
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Overwrite("made/file", "newer"));
  ASSERT_OK(log().AbortStep());
  ExpectRefused("made");
}

TEST_F(UndoPersonsMetadata, ARecoveryInAFolderDoesNotHideWhatWasDoneToItBefore) {
  RunUntilDeath([&] {
    Start();
    InStep([&] {
      EXPECT_OK(ops().Mkdir("made"));
      EXPECT_OK(ops().WriteNew("made/file", "new"));
    });
    MustCall(::chmod(workspace().Path("made").c_str(), 0711), "chmod");
    ASSERT_OK(log().OpenStep({}));
    EXPECT_OK(ops().Overwrite("made/file", "newer"));
    DieNow();
  });
  OpenLog();
  EXPECT_TRUE(log().recovery().recovered);
  ExpectRefused("made");
}

// Names move the folder's times, so that these tell nothing of the xattr any more.
TEST_F(UndoPersonsMetadata, AnXattrStandsInTheWayAlsoWhenNamesCameAfterIt) {
  Start();
  InStep([&] { EXPECT_OK(ops().Chmod("d", 0700)); });
  SetXattr("d");
  workspace().WriteFile("d/persons", "mine");
  ExpectRefused("d");
  CloseLog();
  OpenLog();
  ExpectRefused("d");
  EXPECT_TRUE(HasXattr("d"));
}

TEST_F(UndoPersonsMetadata, NamesAloneDoNotStandInTheWay) {
  Start();
  InStep([&] { EXPECT_OK(ops().Chmod("d", 0700)); });
  workspace().WriteFile("d/persons", "mine");
  RollBack();
  EXPECT_EQ(ModeOf("d"), 0755u);
  workspace().WriteFile("d/persons too", "mine");
  RedoSteps();
  EXPECT_EQ(ModeOf("d"), 0700u);
}

TEST_F(UndoPersonsMetadata, AnXattrBetweenTwoStepsThatChangeTheFolderStandsInTheWayOfTheOlderOne) {
  Start();
  InStep([&] { EXPECT_OK(ops().Chmod("d", 0700)); });
  SetXattr("d");
  workspace().WriteFile("d/persons", "mine");
  InStep([&] { EXPECT_OK(ops().Chmod("d", 0711)); });
  EXPECT_CODE(log().Rollback(2), Code::kConflict);
  RollBack();
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  EXPECT_TRUE(HasXattr("d"));
  RollBack(1, Force::kYes);
  EXPECT_FALSE(HasXattr("d"));
  EXPECT_EQ(ModeOf("d"), 0755u);
}

TEST_F(UndoPersonsMetadata, AnXattrOfAFolderIsNoticedOnce) {
  Start();
  InStep([&] { EXPECT_OK(ops().Chmod("d", 0700)); });
  RollBack();
  SetXattr("d");
  AddAFile();
  InStep([&] { EXPECT_OK(ops().Unlink("d/old")); });
  EXPECT_THAT(Barriers(), IsEmpty());
  InStep([&] { EXPECT_OK(ops().Chmod("d", 0700)); });
  MustCall(::removexattr(workspace().Path("d").c_str(), "user.person"), "removexattr");
  InStep([&] { EXPECT_OK(ops().Unlink("d/new")); });
  InStep([&] { EXPECT_OK(ops().WriteNew("d/new", "again")); });
  EXPECT_THAT(Barriers(), ::testing::SizeIs(1));
  RollBack(2);
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
}

TEST_F(UndoPersonsMetadata, AnXattrOfAFolderThatTheStepMadeStandsInTheWay) {
  Start();
  InStep([&] { EXPECT_OK(ops().Mkdir("made")); });
  SetXattr("made");
  ExpectRefused("made");
}

// --- After a crash.

class UndoPersonsMetadataAfterACrash : public UndoPersonsMetadata {
 protected:
  void DieIn(const std::function<void()>& body) {
    test::AgeTree(workspace().project());
    RunUntilDeath([&] {
      OpenLog();
      ASSERT_OK(log().OpenStep({}));
      body();
      DieNow();
    });
    std::this_thread::sleep_for(
        std::chrono::milliseconds(700));  // later than any heartbeat's slack
  }
};

TEST_F(UndoPersonsMetadataAfterACrash, AnXattrOfAFolderOutlivesTheRecovery) {
  DieIn([&] { EXPECT_OK(ops().WriteNew("d/new", "half")); });
  SetXattr("d");
  OpenLog();
  EXPECT_FALSE(workspace().Exists("d/new"));
  EXPECT_TRUE(HasXattr("d"));
}

TEST_F(UndoPersonsMetadataAfterACrash, AFolderThatTheStepChangedIsLeftToWhoChangedItSince) {
  DieIn([&] { EXPECT_OK(ops().Chmod("d", 0700)); });
  SetXattr("d");
  OpenLog();
  EXPECT_TRUE(HasXattr("d"));
  EXPECT_THAT(Lines(log().recovery().rewind.conflicts), ElementsAre("edited d"));
}

TEST_F(UndoPersonsMetadataAfterACrash, TheTimeThatAPersonGaveAFolderOutlivesTheRecovery) {
  DieIn([&] { EXPECT_OK(ops().WriteNew("d/new", "half")); });
  SetMtime("d", 1'000'000'000);
  OpenLog();
  EXPECT_FALSE(workspace().Exists("d/new"));
  EXPECT_EQ(StatOf("d").st_mtim.tv_sec, 1'000'000'000);
}

// --- Restore.

TEST_F(UndoPersonsMetadata, RestoreDoesNotTakeAPersonsModeOfAFolderWithoutForce) {
  Start();
  const StepId step = AddAFile();
  Chmod("d", 0700);
  const std::vector<std::string> paths = {"d"};
  EXPECT_CODE(log().Restore(step, paths), Code::kConflict);
  EXPECT_EQ(ModeOf("d"), 0700u);
  EXPECT_OK(log().Restore(step, paths, Force::kYes));
  EXPECT_EQ(ModeOf("d"), 0755u);
}

// --- Files.

TEST_F(UndoPersonsMetadata, ALockedFileThatTheStepRenamedIsLockedAgainAfterARollback) {
  if (!HasFlags() || ::geteuid() != 0) GTEST_SKIP() << "nothing can be locked here";
  workspace().WriteFile("other", "other");
  Start();
  InStep([&] {
    EXPECT_OK(ops().Rename("d/old", "d/renamed"));
    EXPECT_OK(ops().Rename("d/renamed", "other", RenameMode::kExchange));
  });
  SetFlag("d/renamed", FS_IMMUTABLE_FL);
  SetFlag("other", FS_APPEND_FL);
  const auto report = log().Rollback(1);
  EXPECT_OK(report);
  EXPECT_TRUE(TakeFlag("d/old", FS_APPEND_FL));
  EXPECT_TRUE(TakeFlag("other", FS_IMMUTABLE_FL));
  EXPECT_EQ(Content("d/old"), "old");
}

// --- Edits in a folder that nobody may look into.

TEST_F(UndoPersonsMetadata, AnEditThatAClosedFolderHidesStandsInTheWay) {
  test::AgeTree(workspace().project());
  GiveToOrdinaryUser(workspace());
  RunForked(
      [&] {
        OpenLog();
        InStep([&] { EXPECT_OK(ops().Overwrite("d/old", "step")); });
        workspace().WriteFile("d/old", "by a person!!");
        Chmod("d", 0);
        ExpectRefused("d/old");
        Chmod("d", 0755);
        EXPECT_EQ(Content("d/old"), "by a person!!");
        CloseLog();
      },
      Who::kOrdinaryUser);
}

TEST_F(UndoPersonsMetadata, AFolderThatAStepItselfClosedDoesNotStandInTheWay) {
  test::AgeTree(workspace().project());
  GiveToOrdinaryUser(workspace());
  RunForked(
      [&] {
        OpenLog();
        InStep([&] { EXPECT_OK(ops().Overwrite("d/old", "first")); });
        InStep([&] {
          EXPECT_OK(ops().Overwrite("d/old", "second"));
          EXPECT_OK(ops().Chmod("d", 0));
        });
        RollBack(2);
        EXPECT_EQ(Content("d/old"), "old");
        EXPECT_EQ(ModeOf("d"), 0755u);
        CloseLog();
      },
      Who::kOrdinaryUser);
}

// To move a folder to another parent is to write to it.
TEST_F(UndoPersonsMetadata, AFolderThatAStepMovedAndClosedGoesBack) {
  workspace().WriteFile("d/sub/file", "file");
  GiveToOrdinaryUser(workspace());
  RunForked(
      [&] {
        OpenLog();
        const TreeSnapshot before = Snapshot();
        InStep([&] {
          EXPECT_OK(ops().Mkdir("e"));
          EXPECT_OK(ops().Rename("d/sub", "e/sub"));
          EXPECT_OK(ops().Chmod("e/sub", 0500));
        });
        const TreeSnapshot after = Snapshot();
        RollBack(1);
        ExpectTree(before);
        RedoSteps(1);
        ExpectTree(after);
        RollBack(1);
        ExpectTree(before);
        CloseLog();
      },
      Who::kOrdinaryUser);
}

TEST_F(UndoPersonsMetadata, AnEditInAFolderThatTheStepClosedAndAPersonOpenedForItStandsInTheWay) {
  test::AgeTree(workspace().project());
  GiveToOrdinaryUser(workspace());
  RunForked(
      [&] {
        OpenLog();
        InStep([&] {
          EXPECT_OK(ops().Overwrite("d/old", "step"));
          EXPECT_OK(ops().Chmod("d", 0));
        });
        Chmod("d", 0755);
        workspace().WriteFile("d/old", "by a person!!");
        Chmod("d", 0);
        ExpectRefused("d");
        CloseLog();
      },
      Who::kOrdinaryUser);
}

}  // namespace
}  // namespace sandglass::undo
