// Going back and forth: redo, and what its stack may keep.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/io.h"
#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/history_fixture.h"

namespace sandglass::undo {
namespace {

using test::Must;
using test::MustCall;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class UndoRedo : public UndoHistoryTest {};

TEST_F(UndoRedo, StepsGoBackAndForthThroughEveryState) {
  std::vector<TreeSnapshot> states = {Snapshot()};
  for (int round = 1; round <= 4; ++round) {
    InStep([&] { ChangeMuch(round); });
    states.push_back(Snapshot());
  }
  for (int at = 4; at > 0; --at) {
    RollBack();
    EXPECT_TREE_EQ(states[static_cast<size_t>(at) - 1], Snapshot());
  }
  EXPECT_EQ(log().redo_depth(), 4u);
  for (size_t at = 1; at <= 4; ++at) {
    RedoSteps();
    EXPECT_TREE_EQ(states[at], Snapshot());
  }
  EXPECT_EQ(log().redo_depth(), 0u);
  EXPECT_THAT(Steps(), SizeIs(4));
  RollBack(4);
  EXPECT_TREE_EQ(states[0], Snapshot());
  const RewindReport report = RedoSteps(4);
  EXPECT_THAT(report.steps, ElementsAre(StepId{1}, StepId{2}, StepId{3}, StepId{4}));
  EXPECT_TREE_EQ(states[4], Snapshot());
}

TEST_F(UndoRedo, ProgressGoesForwardOverAllSteps) {
  std::vector<RewindProgress> told;
  options_.progress = [&](const RewindProgress& progress) { told.push_back(progress); };
  OpenLog();
  for (const char* folder : {"many", "more"}) {
    InStep([&] {
      EXPECT_OK(ops().Mkdir(folder));
      for (int i = 0; i < 200; ++i)
        EXPECT_OK(ops().WriteNew(std::string(folder) + "/" + std::to_string(i), "x"));
    });
  }
  EXPECT_THAT(told, IsEmpty()) << "only rewinds have any";
  const auto expect_all = [&] {
    ASSERT_GE(told.size(), 4u);
    for (size_t i = 0; i < told.size(); ++i) {
      EXPECT_EQ(told[i].total, 402u);
      EXPECT_LE(told[i].done, told[i].total);
      if (i > 0) EXPECT_GE(told[i].done, told[i - 1].done);
    }
    EXPECT_GT(told.back().done, 300u);
    told.clear();
  };
  RollBack(2);
  expect_all();
  RedoSteps(2);
  expect_all();
}

TEST_F(UndoRedo, AFolderThatIsMadeAnewOnTheWayIsFoundAgainByTheNextStep) {
  for (const bool reopened : {false, true}) {
    SCOPED_TRACE(reopened ? "after opening the log again" : "in one go");
    const TreeSnapshot before = Snapshot();
    InStep([&] {
      EXPECT_OK(ops().Mkdir("b"));
      EXPECT_OK(ops().Mkdir("b/d"));
      EXPECT_OK(ops().Rename("b", "a"));
    });
    if (reopened) {
      CloseLog();
      OpenLog();
    }
    InStep([&] {
      EXPECT_OK(ops().Mkdir("b"));
      EXPECT_OK(ops().Rename("a/d", "b/d"));
      EXPECT_OK(ops().Rmdir("b/d"));
      EXPECT_OK(ops().Rmdir("b"));
    });
    const TreeSnapshot after = Snapshot();
    RollBack(2);
    EXPECT_TREE_EQ(before, Snapshot());
    RedoSteps(2);
    EXPECT_TREE_EQ(after, Snapshot());
    RollBack(2);
    EXPECT_TREE_EQ(before, Snapshot());
  }
}

TEST_F(UndoRedo, WhatWasBornInAFolderThatIsGoneIsFoundWhereItWent) {
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    EXPECT_OK(ops().Mkdir("t"));
    EXPECT_OK(ops().WriteNew("t/file", "new"));
    EXPECT_OK(ops().Mkdir("t/folder"));
    EXPECT_OK(ops().Rename("t/file", "file"));
    EXPECT_OK(ops().Rename("t/folder", "folder"));
    EXPECT_OK(ops().Rmdir("t"));
  });
  const TreeSnapshot after = Snapshot();
  RollBack();
  EXPECT_TREE_EQ(before, Snapshot());
  RedoSteps();
  EXPECT_TREE_EQ(after, Snapshot());
}

TEST_F(UndoRedo, WhatALaterStepDidToAKeptInodeByAnotherNameIsNoDamage) {
  EXPECT_EQ(::link((workspace().project() + "/small.txt").c_str(),
                   (workspace().project() + "/other.txt").c_str()),
            0);
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().Unlink("small.txt")); });
  InStep([&] { EXPECT_OK(ops().TruncateTo("other.txt", 0)); });
  const TreeSnapshot after = Snapshot();
  RollBack(2);
  EXPECT_TREE_EQ(before, Snapshot());
  RedoSteps(2);
  EXPECT_TREE_EQ(after, Snapshot());
  // A person takes the name that the later step used: a conflict, and not a damaged store.
  Must(ReplaceFileAt(AT_FDCWD, (workspace().project() + "/other.txt").c_str(), "by a person"));
  EXPECT_CODE(log().Rollback(2), Code::kConflict);
}

TEST_F(UndoRedo, AStepThatCannotBeginLeavesRedoAlone) {
  InStep([&] { ChangeMuch(1); });
  RollBack();
  const std::string in_the_way = workspace().store() + "/wal/in_progress";
  MustCall(::mknod(in_the_way.c_str(), S_IFREG | 0600, 0), in_the_way);
  EXPECT_FALSE(log().OpenStep({}).ok());
  EXPECT_EQ(log().redo_depth(), 1u);
  MustCall(::unlink(in_the_way.c_str()), in_the_way);
  RedoSteps();
}

TEST_F(UndoRedo, ARedoneStepKeepsItsIdLabelAndChanges) {
  const StepId step = InStep([&] { ChangeMuch(1); }, "a label");
  const std::vector<std::string> changes = ChangeLines(step);
  RollBack();
  EXPECT_THAT(Steps(), IsEmpty());
  RedoSteps();
  EXPECT_EQ(InfoOf(step).label, "a label");
  EXPECT_EQ(ChangeLines(step), changes);
}

TEST_F(UndoRedo, ANewStepEmptiesTheRedoStack) {
  InStep([&] { ChangeMuch(1); });
  RollBack();
  EXPECT_EQ(log().redo_depth(), 1u);
  InStep([&] { EXPECT_OK(ops().Chmod("run.sh", 0700)); });
  EXPECT_EQ(log().redo_depth(), 0u);
  EXPECT_CODE(log().Redo(1), Code::kNotFound);
}

TEST_F(UndoRedo, AnAmbientWriteEmptiesTheRedoStackToo) {
  InStep([&] { ChangeMuch(1); });
  RollBack();
  EXPECT_OK(ops().WriteNew("ambient.txt", "x"));
  EXPECT_EQ(log().redo_depth(), 0u);
}

TEST_F(UndoRedo, RedoSurvivesReopening) {
  const TreeSnapshot before = Snapshot();
  InStep([&] { ChangeMuch(1); });
  const TreeSnapshot after = Snapshot();
  RollBack();
  OpenLog();
  EXPECT_EQ(log().redo_depth(), 1u);
  RedoSteps();
  ExpectTree(after);
  OpenLog();
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoRedo, RedoStopsAtAnEditAndTouchesNothing) {
  InStep([&] { ChangeMuch(1); });
  const TreeSnapshot after = Snapshot();
  RollBack();
  workspace().WriteFile("small.txt", "a person's");
  const TreeSnapshot now = Snapshot();
  EXPECT_CODE(log().Redo(1), Code::kConflict);
  ExpectTree(now);
  Result<RewindReport> plan = log().PlanRedo(1);
  ASSERT_OK(plan);
  EXPECT_TRUE(HasConflict(plan->conflicts, ConflictKind::kEdited, "small.txt"));
  EXPECT_EQ(log().redo_depth(), 1u);
  RedoSteps(1, Force::kYes);
  EXPECT_EQ(Content("small.txt"), "round 1");
  ExpectTree(after);
}

TEST_F(UndoRedo, AnEditOfAFileThatARedoMadeAgainIsFound) {
  InStep([&] { EXPECT_OK(ops().WriteNew("new.txt", "step")); });
  RollBack();
  RedoSteps();
  workspace().WriteFile("new.txt", "person");
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  EXPECT_EQ(Content("new.txt"), "person");
}

TEST_F(UndoRedo, AnEditOfAFileThatARedoWouldDeleteIsFound) {
  InStep([&] { EXPECT_OK(ops().Unlink("small.txt")); });
  RollBack();
  workspace().WriteFile("small.txt", "person");
  EXPECT_CODE(log().Redo(1), Code::kConflict);
  EXPECT_EQ(Content("small.txt"), "person");
}

TEST_F(UndoRedo, RedoDoesNotOverwriteAFileThatAppearedMeanwhile) {
  InStep([&] { EXPECT_OK(ops().WriteNew("new.txt", "the step's")); });
  RollBack();
  workspace().WriteFile("new.txt", "a person's");
  EXPECT_CODE(log().Redo(1), Code::kConflict);
  EXPECT_EQ(Content("new.txt"), "a person's");
}

TEST_F(UndoRedo, RedoOfADeletionDeletesAgainAndComesBackAgain) {
  ExpectUndone([&] {
    EXPECT_OK(ops().RemoveTree("src"));
    EXPECT_OK(ops().Unlink("large.bin"));
    EXPECT_OK(ops().Unlink("small.txt"));
  });
}

TEST_F(UndoRedo, WhatRecoveryReplacedCanBeRedone) {
  const TreeSnapshot before = Snapshot();
  CloseLog();
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({.label = "interrupted"}));
    ChangeMuch(1);
    DieNow();
  });
  const TreeSnapshot at_crash = Snapshot();
  OpenLog();
  ExpectTree(before);
  RedoSteps();
  ExpectTree(at_crash);
}

// Limits count what the redo stack keeps.

TEST_F(UndoRedo, TheOldestRollbacksAreGivenUpUntilTheCopiedBytesFit) {
  constexpr uint64_t kSize = 60 << 10;
  options_.limits.max_copied_bytes = 5 * kSize / 2;
  workspace().WriteFile("a.bin", "short");
  OpenLog();
  std::vector<TreeSnapshot> states{Snapshot()};
  for (int i = 1; i <= 3; ++i) {
    InStep([&] { EXPECT_OK(ops().Overwrite("a.bin", Noise(kSize, i))); });
    states.push_back(Snapshot());
  }
  const RewindReport report = RollBack(3);
  EXPECT_EQ(log().redo_depth(), 2u);
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("step 3 can no longer be redone")));
  EXPECT_THAT(NamesIn(workspace().store() + "/redo"), SizeIs(2));
  ExpectTree(states[0]);
  OpenLog();
  RedoSteps(2);
  ExpectTree(states[2]);
}

TEST_F(UndoRedo, TheOldestRollbacksAreGivenUpUntilTheRetainedBytesFit) {
  options_.limits.max_retained_bytes = 1'500'000;
  OpenLog();
  if (!log().abilities().links) GTEST_SKIP() << "nothing is anchored here";
  for (const char* name : {"a", "b", "c"})
    InStep([&] { EXPECT_OK(ops().WriteNew(name, Noise(1'000'000))); });
  RollBack(2);
  EXPECT_EQ(log().redo_depth(), 1u);
  RedoSteps();
  EXPECT_TRUE(workspace().Exists("b"));
}

TEST_F(UndoRedo, AnInodeThatARollbackExchangedCountsAsRetained) {
  options_.limits.max_retained_bytes = 1'500'000;
  for (const char* name : {"a.bin", "b.bin"}) workspace().WriteFile(name, Noise(300'000));
  OpenLog();
  if (!log().abilities().links || !log().abilities().exchange || !log().abilities().leases)
    GTEST_SKIP() << "nothing is anchored here";
  for (const char* name : {"a.bin", "b.bin"})
    InStep([&] { EXPECT_OK(ops().Overwrite(name, Noise(1'000'000))); });
  ASSERT_GE(Steps()[0].retained_bytes, 300'000u);
  RollBack(2);
  EXPECT_EQ(log().redo_depth(), 1u);
  RedoSteps();
  EXPECT_EQ(Content("a.bin"), Noise(1'000'000));
}

TEST_F(UndoRedo, ARunningProgramThatARollbackReplacedCountsAsRetained) {
  options_.limits.max_retained_bytes = 10'000;
  const std::string tool = workspace().Path("tool");
  const Fd root(MustCall(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open /"));
  workspace().WriteFile("tool", Must(ReadFileAt(root.get(), "bin/sleep", 16 << 20)));
  MustCall(::chmod(tool.c_str(), 0755), "chmod");
  OpenLog();
  if (!log().abilities().links || !log().abilities().exchange)
    GTEST_SKIP() << "nothing is anchored here";
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "changed")); });
  InStep([&] { EXPECT_OK(ops().Append("tool", "more", WriteVisibility::kUnseen)); });
  int running[2];
  MustCall(::pipe2(running, O_CLOEXEC), "pipe");
  const pid_t pid = MustCall(::fork(), "fork");
  if (pid == 0) {
    ::execl(tool.c_str(), "sleep", "60", nullptr);
    ::_exit(1);
  }
  ::close(running[1]);
  char none = 0;
  EXPECT_EQ(::read(running[0], &none, 1), 0) << "closed by the exec";
  ::close(running[0]);
  RollBack(2);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(log().redo_depth(), 1u);
}

TEST_F(UndoRedo, TheNewestRollbackStaysHoweverLargeAndTakesNoStepsPlace) {
  options_.limits.max_copied_bytes = 10'000;  // room for both journals
  workspace().WriteFile("a.bin", "1");
  OpenLog();
  InStep([&] { EXPECT_OK(ops().Overwrite("a.bin", "2")); });
  InStep([&] { EXPECT_OK(ops().Overwrite("a.bin", Noise(20'000))); });
  EXPECT_THAT(RollBack().warnings, IsEmpty());
  EXPECT_EQ(log().redo_depth(), 1u);
  EXPECT_THAT(Steps(), SizeIs(1));
  RedoSteps();
  EXPECT_EQ(Content("a.bin"), Noise(20'000));
}

TEST_F(UndoRedo, ADamagedRollbackIsNamedAndDroppedByTheNextStep) {
  for (const char* text : {"1", "2", "3"})
    InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", text)); });
  RollBack(2);
  CloseLog();
  const std::string journal = workspace().store() + "/redo/2/journal";
  MustCall(::truncate(journal.c_str(), 10), "truncate");
  OpenLog();
  const TreeSnapshot before = Snapshot();
  for (const Force force : {Force::kNo, Force::kYes}) {
    const auto redone = log().Redo(1, force);
    ASSERT_CODE(redone, Code::kCorrupt);
    EXPECT_THAT(redone.error().message(),
                AllOf(HasSubstr("redo/2"), HasSubstr("the next step drops it")));
  }
  EXPECT_CODE(log().PlanRedo(2), Code::kCorrupt);
  ExpectTree(before);
  MustCall(::unlink(journal.c_str()), "unlink");
  EXPECT_THAT(log().Redo(1).error().message(), HasSubstr("redo/2"));
  RollBack();
  EXPECT_EQ(Content("small.txt"), "hello world");
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "4")); });
  EXPECT_EQ(log().redo_depth(), 0u);
  EXPECT_THAT(NamesIn(workspace().store() + "/redo"), IsEmpty());
}

TEST_F(UndoRedo, MoreStepsThanThereAreIsNotFoundAndTouchesNothing) {
  InStep([&] { ChangeMuch(1); });
  const TreeSnapshot after = Snapshot();
  EXPECT_CODE(log().Rollback(2), Code::kNotFound);
  EXPECT_CODE(log().Redo(1), Code::kNotFound);
  EXPECT_CODE(log().Rollback(0), Code::kInvalid);
  EXPECT_CODE(log().Redo(0), Code::kInvalid);
  EXPECT_CODE(log().PlanRedo(0), Code::kInvalid);
  ExpectTree(after);
}

TEST_F(UndoRedo, RedoGoesAsFarAsUndoWent) {
  InStep([&] { EXPECT_OK(ops().Unlink("small.txt")); });
  InStep([] {});
  InStep([&] { EXPECT_OK(ops().Unlink("run.sh")); });
  InStep([] {});
  const TreeSnapshot after = Snapshot();
  const size_t steps = Steps().size();
  RollBack(2);
  EXPECT_OK(log().Redo(2));
  ExpectTree(after);
  EXPECT_EQ(Steps().size(), steps);
  EXPECT_CODE(log().Rollback(3), Code::kNotFound);
}

}  // namespace
}  // namespace sandglass::undo
