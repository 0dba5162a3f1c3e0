// A store on another file system: nothing can be kept by a link, so what is removed is copied and made anew under another identity.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/mount.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using test::MustCall;
using ::testing::ElementsAre;

// The project has one file under three names: small.txt, other and src/third.
class UndoStoreElsewhere : public UndoTest {
 protected:
  void SetUp() override {
    if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
    test::SmallTree(workspace().project());
    Link("small.txt", "other");
    Link("small.txt", "src/third");
  }
  void Link(const char* from, const char* to) const {
    MustCall(::link(workspace().Path(from).c_str(), workspace().Path(to).c_str()), "link");
  }
  // `body` with the log open.
  void Run(const std::function<void()>& body) {
    RunWithPrivateMounts([&] {
      MustCall(::mount("none", workspace().store().c_str(), "tmpfs", 0, "size=64m"), "mount tmpfs");
      OpenLog();
      EXPECT_FALSE(log().abilities().links);
      body();
    });
  }
  void Write(std::string_view path, std::string_view data) {
    EXPECT_OK(ops().WriteAt(path, 0, data, WriteVisibility::kUnseen));
  }
  void ExpectRefused(uint32_t count, ConflictKind kind, std::string_view path) {
    const TreeSnapshot before = Snapshot();
    Result<RewindReport> plan = log().PlanRollback(count);
    ASSERT_OK(plan);
    EXPECT_TRUE(HasConflict(plan->conflicts, kind, path));
    EXPECT_CODE(log().Rollback(count), Code::kConflict);
    ExpectTree(before);
  }
  // Under all its names the file is another inode than before.
  void MakeAnew() {
    InStep([&] {
      for (const char* name : {"small.txt", "other", "src/third"}) EXPECT_OK(ops().Unlink(name));
    });
    RollBack();
  }
};

// Where no anchor keeps what lost a name, the step must know otherwise how it left the object under its other names.
TEST_F(UndoStoreElsewhere, ALostNameOfALinkedFileIsNoEdit) {
  Run([&] {
    const TreeSnapshot before = Snapshot();
    InStep([&] { Write("other", "x"); });
    InStep([&] {
      EXPECT_OK(ops().Unlink("small.txt"));
      EXPECT_OK(ops().Unlink("src/third"));
    });
    InStep([&] { EXPECT_OK(ops().Rename("medium.txt", "other")); });
    RollBack(3);
    ExpectTree(before);
    RedoSteps(3);
    RollBack(1);
    RollBack(2);
    ExpectTree(before);
  });
}

TEST_F(UndoStoreElsewhere, AWriteThroughANameThatIsLeftIsNoEdit) {
  Run([&] {
    const TreeSnapshot before = Snapshot();
    InStep([&] {
      EXPECT_OK(ops().Unlink("small.txt"));
      Write("other", "x");
    });
    InStep([&] { EXPECT_OK(ops().Rename("medium.txt", "other")); });
    RollBack(2);
    ExpectTree(before);
  });
}

// The copy of what was opened for nothing is dropped, so that the step has changed only its names.
TEST_F(UndoStoreElsewhere, ANameThatComesBackIsNoEdit) {
  Link("large.bin", "huge");
  Run([&] {
    const TreeSnapshot before = Snapshot();
    InStep([&] { Write("large.bin", "x"); });
    InStep([&] {
      EXPECT_OK(ops().OpenFile("large.bin", O_RDWR, WriteVisibility::kUnseen));
      EXPECT_OK(ops().Unlink("huge"));
    });
    RollBack(1);
    RollBack(1);
    ExpectTree(before);
  });
}

TEST_F(UndoStoreElsewhere, ForceTakesBackAllThatTheStepDidToWhatWasMadeAnew) {
  Run([&] {
    const TreeSnapshot before = Snapshot();
    InStep([&] { Write("small.txt", "x"); });
    MakeAnew();
    workspace().WriteFile("small.txt", "a person's");
    RollBack(1, Force::kYes);
    ExpectTree(before);
  });
}

// The name by which the file was found first has moved back by the time that it is needed again.
TEST_F(UndoStoreElsewhere, NamesThatMoveInARewindDoNotSplitALinkedFile) {
  Run([&] {
    ExpectUndone([&] {
      EXPECT_OK(ops().Unlink("small.txt"));
      EXPECT_OK(ops().Rename("src", "moved"));
      EXPECT_OK(ops().Unlink("other"));
    });
  });
}

TEST_F(UndoStoreElsewhere, AnEditUnderANameThatTheStepNeverSawIsNotLost) {
  Run([&] {
    InStep([&] {
      Write("small.txt", "x");
      EXPECT_OK(ops().Unlink("small.txt"));
      EXPECT_OK(ops().Unlink("src/third"));
    });
    workspace().WriteFile("other", "a person's");
    ExpectRefused(1, ConflictKind::kEdited, "other");
  });
}

TEST_F(UndoStoreElsewhere, AnEditIsToldOnce) {
  Run([&] {
    InStep([&] {
      Write("other", "x");
      EXPECT_OK(ops().Unlink("small.txt"));
      EXPECT_OK(ops().Unlink("src/third"));
    });
    workspace().WriteFile("other", "a person's");
    const Result<RewindReport> plan = log().PlanRollback(1);
    ASSERT_OK(plan);
    EXPECT_THAT(Lines(plan->conflicts), ElementsAre("edited other"));
  });
}

TEST_F(UndoStoreElsewhere, AnEditOfWhatWasMadeAnewStandsBehindTheStepThatLeftIt) {
  Run([&] {
    InStep([&] { Write("small.txt", "x"); });
    MakeAnew();
    workspace().WriteFile("small.txt", "a person's");
    InStep([&] { EXPECT_OK(ops().Chmod("small.txt", 0600)); });
    ExpectRefused(2, ConflictKind::kBarrier, "small.txt");
    RollBack();
    ExpectRefused(1, ConflictKind::kBarrier, "small.txt");
  });
}

TEST_F(UndoStoreElsewhere, ABarrierHoldsForAnotherNameOfWhatWasMadeAnew) {
  Run([&] {
    InStep([&] { Write("small.txt", "x"); });
    MakeAnew();
    EXPECT_OK(log().NoteExternalModification(std::vector<std::string>{"other"}));
    ExpectRefused(1, ConflictKind::kBarrier, "other");
  });
}

// A symlink has the flags that its folder had when it was made, and nobody can change them.
TEST_F(UndoStoreElsewhere, ASymlinkIsMadeAnewWithItsOwnFlags) {
  MustCall(::symlink("main.rs", workspace().Path("src/link").c_str()), "symlink");
  Run([&] {
    ExpectUndone([&] {
      (void)ops().SetFlags("src", FS_NODUMP_FL);  // not every file system has flags
      EXPECT_OK(ops().Unlink("src/link"));
    });
  });
}

TEST_F(UndoStoreElsewhere, ARestoreFindsWhatChangedUnderANameThatIsGone) {
  Run([&] {
    EXPECT_OK(ops().Unlink("src/third"));
    EXPECT_OK(log().CloseAmbientStep());
    const std::string was = Content("small.txt");
    const StepId written = InStep([&] { Write("other", "x"); });
    InStep([&] { EXPECT_OK(ops().Rename("medium.txt", "other")); });
    EXPECT_OK(log().Restore(written, std::vector<std::string>{"small.txt"}));
    EXPECT_EQ(Content("small.txt"), was);
    RollBack();
    EXPECT_OK(log().Restore(written, std::vector<std::string>{""}));
    EXPECT_EQ(Content("small.txt"), was);
  });
}

}  // namespace
}  // namespace sandglass::undo
