// A person's edits between a step and its rollback, found without any watcher: nothing is touched, every path is named, and
// what was never recorded is never deleted, not even by force.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/support/must.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using test::MustCall;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class UndoConflict : public UndoTest {
 protected:
  void SetUp() override { StartWith(test::SmallTree); }

  // Puts another inode in place of the file, as editors do.
  void ReplaceFile(std::string_view path, std::string_view content) const {
    const std::string scratch = std::string(path) + ".scratch";
    workspace().WriteFile(scratch, content);
    TreeBuilder(workspace().project()).Rename(scratch, path);
  }
  // Rollback is refused with exactly these conflicts, and touches nothing.
  void ExpectRefused(const std::vector<std::string>& conflicts, uint32_t count = 1) {
    const RewindReport plan = ExpectUntouchedRefusal(count);
    EXPECT_EQ(Lines(plan.conflicts), conflicts);
  }
  // The same for an edit that a later step found first: then it may be known as a barrier.
  void ExpectRefusedFor(std::string_view path, uint32_t count = 1) {
    const RewindReport plan = ExpectUntouchedRefusal(count);
    ASSERT_FALSE(plan.conflicts.empty());
    for (const Conflict& conflict : plan.conflicts) EXPECT_EQ(conflict.path, path);
  }
  RewindReport ExpectUntouchedRefusal(uint32_t count) {
    const TreeSnapshot now = Snapshot();
    const size_t steps = Steps().size();
    const Result<RewindReport> refused = log().Rollback(count);
    EXPECT_CODE(refused, Code::kConflict);
    ExpectTree(now);
    EXPECT_THAT(Steps(), SizeIs(steps));
    Result<RewindReport> plan = log().PlanRollback(count);
    EXPECT_OK(plan);
    if (refused.ok() || !plan.ok()) return {};
    for (const Conflict& conflict : plan->conflicts)
      EXPECT_THAT(refused.error().message(), HasSubstr(conflict.path));
    return *plan;
  }
};

// ctime tells: a file that was taken back and redone looks the same otherwise.
TEST_F(UndoConflict, WhatIsInTheWayOfAnOlderStepKeepsNewerOnesUntouched) {
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "one")); });
  InStep([&] { EXPECT_OK(ops().Overwrite("run.sh", "two")); });
  workspace().WriteFile("small.txt", "a person's");
  struct stat before{}, after{};
  MustCall(::stat((workspace().project() + "/run.sh").c_str(), &before), "stat");
  ExpectRefused({"edited small.txt"}, 2);
  MustCall(::stat((workspace().project() + "/run.sh").c_str(), &after), "stat");
  EXPECT_EQ(before.st_ctim.tv_sec, after.st_ctim.tv_sec);
  EXPECT_EQ(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
  EXPECT_CODE(log().Redo(1), Code::kNotFound);
}

TEST_F(UndoConflict, AnEditInPlaceIsFound) {
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "by the step")); });
  workspace().WriteFile("small.txt", "by a person");
  ExpectRefused({"edited small.txt"});
}

TEST_F(UndoConflict, AnEditInPlaceIsFoundAfterReopening) {
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "by the step")); });
  CloseLog();
  workspace().WriteFile("small.txt", "by a person");
  OpenLog();
  ExpectRefused({"edited small.txt"});
}

TEST_F(UndoConflict, AnEditThatKeepsSizeAndMtimeIsFound) {
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "by the step")); });
  const struct stat st = StatOf("small.txt");
  workspace().WriteFile("small.txt", "by a human.");
  ASSERT_EQ(StatOf("small.txt").st_size, st.st_size);
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, st.st_mtim};
  MustCall(::utimensat(AT_FDCWD, workspace().Path("small.txt").c_str(), times, 0), "utimens");
  ExpectRefused({"edited small.txt"});
}

TEST_F(UndoConflict, AReplacedFileIsFound) {
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "by the step")); });
  ReplaceFile("small.txt", "by a person");
  ExpectRefused({"replaced small.txt"});
}

TEST_F(UndoConflict, ADeletedFileIsFound) {
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "by the step")); });
  TreeBuilder(workspace().project()).Remove("small.txt");
  ExpectRefused({"missing small.txt"});
}

TEST_F(UndoConflict, AChmodIsFound) {
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "by the step")); });
  TreeBuilder(workspace().project()).Mode("small.txt", 0600);
  ExpectRefused({"edited small.txt"});
}

TEST_F(UndoConflict, ANameThatWasFreedAndTakenAgainIsFound) {
  InStep([&] { EXPECT_OK(ops().Unlink("small.txt")); });
  workspace().WriteFile("small.txt", "by a person");
  ExpectRefused({"occupied small.txt"});
}

TEST_F(UndoConflict, ARenamedObjectThatWasMovedOnIsFound) {
  InStep([&] { EXPECT_OK(ops().Rename("small.txt", "renamed.txt")); });
  TreeBuilder(workspace().project()).Rename("renamed.txt", "src/moved.txt");
  const TreeSnapshot now = Snapshot();
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  ExpectTree(now);
}

TEST_F(UndoConflict, AnEditOfACreatedFileIsFound) {
  InStep([&] { EXPECT_OK(ops().WriteNew("new.txt", "by the step")); });
  workspace().WriteFile("new.txt", "by a person: more than the step ever wrote");
  ExpectRefused({"edited new.txt"});
}

TEST_F(UndoConflict, EveryConflictIsListed) {
  InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "step"));
    EXPECT_OK(ops().Overwrite("medium.txt", "step"));
    EXPECT_OK(ops().Chmod("run.sh", 0700));
    EXPECT_OK(ops().Unlink("empty.txt"));
    EXPECT_OK(ops().Overwrite("src/main.rs", "step"));
  });
  workspace().WriteFile("small.txt", "person");
  ReplaceFile("medium.txt", "person");
  TreeBuilder(workspace().project()).Remove("run.sh");
  workspace().WriteFile("empty.txt", "person");
  ExpectRefused(
      {"edited small.txt", "missing run.sh", "occupied empty.txt", "replaced medium.txt"});
}

TEST_F(UndoConflict, EditsElsewhereAreNoConflictAndStay) {
  InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "step"));
    EXPECT_OK(ops().Unlink("src/main.rs"));
  });
  workspace().WriteFile("medium.txt", "person");
  workspace().WriteFile("src/notes.txt", "person");
  RollBack();
  EXPECT_EQ(Content("small.txt"), "hello world");
  EXPECT_EQ(Content("src/main.rs"), "fn main() {}");
  EXPECT_EQ(Content("medium.txt"), "person");
  EXPECT_EQ(Content("src/notes.txt"), "person");
}

TEST_F(UndoConflict, ReadingIsNoEdit) {
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "step")); });
  EXPECT_EQ(Content("small.txt"), "step");
  const Fd opened_for_writing(
      MustCall(::open(workspace().Path("small.txt").c_str(), O_RDWR | O_CLOEXEC), "open"));
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoConflict, WhatAPersonPutIntoACreatedDirectoryIsKeptAndReported) {
  InStep([&] {
    EXPECT_OK(ops().Mkdir("made"));
    EXPECT_OK(ops().Mkdir("made/deep"));
    EXPECT_OK(ops().WriteNew("made/deep/step.txt", "step"));
    EXPECT_OK(ops().WriteNew("made/step.txt", "step"));
  });
  workspace().WriteFile("made/deep/notes.txt", "person");
  const RewindReport report = RollBack();
  EXPECT_EQ(Content("made/deep/notes.txt"), "person");
  EXPECT_FALSE(workspace().Exists("made/deep/step.txt"));
  EXPECT_FALSE(workspace().Exists("made/step.txt"));
  EXPECT_THAT(report.kept, Contains("made/deep"));
}

TEST_F(UndoConflict, AStepAfterSuchARollbackStillWorks) {
  InStep([&] {
    EXPECT_OK(ops().Mkdir("made"));
    EXPECT_OK(ops().WriteNew("made/step.txt", "step"));
  });
  workspace().WriteFile("made/notes.txt", "person");
  RollBack();
  ExpectUndone([&] {
    EXPECT_OK(ops().Overwrite("made/notes.txt", "step"));
    EXPECT_OK(ops().WriteNew("made/step.txt", "step again"));
  });
  EXPECT_EQ(Content("made/notes.txt"), "person");
}

TEST_F(UndoConflict, AnEditBetweenTwoStepsBlocksTheOlderOneOnly) {
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "step 1")); });
  workspace().WriteFile("small.txt", "person");
  const TreeSnapshot between = Snapshot();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "step 2")); });
  ExpectRefusedFor("small.txt", 2);
  RollBack(1);
  EXPECT_EQ(Content("small.txt"), "person");
  ExpectTree(between);
  ExpectRefusedFor("small.txt", 1);
}

TEST_F(UndoConflict, AReplacementBetweenTwoStepsBlocksTheOlderOne) {
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "step 1")); });
  ReplaceFile("small.txt", "person");
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "step 2")); });
  RollBack(1);
  EXPECT_EQ(Content("small.txt"), "person");
  ExpectRefusedFor("small.txt", 1);
}

TEST_F(UndoConflict, AnEditBetweenTwoStepsOnDifferentFilesBlocksNothingElse) {
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "step 1")); });
  workspace().WriteFile("medium.txt", "person");
  InStep([&] { EXPECT_OK(ops().Overwrite("run.sh", "step 2")); });
  RollBack(2);
  EXPECT_EQ(Content("small.txt"), "hello world");
  EXPECT_EQ(Content("medium.txt"), "person");
}

TEST_F(UndoConflict, AStepInBetweenThatTouchesSomethingElseDoesNotHideAnEdit) {
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "step 1")); });
  workspace().WriteFile("small.txt", "person");
  InStep([&] { EXPECT_OK(ops().Overwrite("run.sh", "step 2")); });
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "step 3")); });
  ExpectRefusedFor("small.txt", 3);
  RollBack(2);
  EXPECT_EQ(Content("small.txt"), "person");
  ExpectRefusedFor("small.txt", 1);
}

TEST_F(UndoConflict, ADeletionBeforeALaterStepThatTookTheNameIsPlannedAsMissing) {
  InStep([&] { EXPECT_OK(ops().WriteNew("new.txt", "step 1")); });
  TreeBuilder(workspace().project()).Remove("new.txt");
  InStep([&] { EXPECT_OK(ops().WriteNew("new.txt", "step 2")); });
  ExpectRefused({"missing new.txt"}, 2);
}

TEST_F(UndoConflict, AnEditIsNamedByThePathThatItHadBeforeALaterStepMovedItsFolder) {
  InStep([&] { EXPECT_OK(ops().Overwrite("src/main.rs", "step 1")); });
  workspace().WriteFile("src/main.rs", "person");
  InStep([&] {
    EXPECT_OK(ops().Rename("src", "moved"));
    EXPECT_OK(ops().Overwrite("moved/main.rs", "step 2"));
  });
  ExpectRefusedFor("src/main.rs", 2);
}

TEST_F(UndoConflict, AReplacementIsPlannedThroughALaterRenameOfItsFolder) {
  InStep([&] { EXPECT_OK(ops().Overwrite("src/main.rs", "step 1")); });
  ReplaceFile("src/main.rs", "person");
  InStep([&] { EXPECT_OK(ops().Rename("src", "moved")); });
  ExpectRefused({"replaced src/main.rs"}, 2);
}

TEST_F(UndoConflict, AStepThatOnlyMovedTheFolderOfAnEditedFileIsNotBlockedByIt) {
  InStep([&] { EXPECT_OK(ops().Overwrite("src/main.rs", "step 1")); });
  workspace().WriteFile("src/main.rs", "person");
  InStep([&] { EXPECT_OK(ops().Rename("src", "lib")); });
  InStep([&] { EXPECT_OK(ops().Overwrite("lib/main.rs", "step 3")); });
  RollBack(2);
  EXPECT_EQ(Content("src/main.rs"), "person");
  ExpectRefusedFor("src/main.rs");
}

TEST_F(UndoConflict, AnEditUnderANameThatTheStepNeverSawIsFoundThroughALaterStep) {
  InStep([&] { EXPECT_OK(ops().Link("small.txt", "other.txt")); });
  InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "by the step"));
    EXPECT_OK(ops().Unlink("small.txt"));
  });
  workspace().WriteFile("other.txt", "by a person");
  InStep([&] { EXPECT_OK(ops().Overwrite("other.txt", "by a later step")); });
  ExpectRefusedFor("other.txt", 2);
  RollBack(1);
  EXPECT_EQ(Content("other.txt"), "by a person");
  ExpectRefusedFor("other.txt", 1);
}

TEST_F(UndoConflict, WhatWentWithAFolderThatTheStepHadMadeComesBack) {
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    EXPECT_OK(ops().Mkdir("trash"));
    EXPECT_OK(ops().Mkdir("trash/deep"));
    EXPECT_OK(ops().Rename("small.txt", "trash/deep/small.txt"));
    EXPECT_OK(ops().Overwrite("trash/deep/small.txt", "step"));
    EXPECT_OK(ops().Rename("medium.txt", "trash/medium.txt"));
    EXPECT_OK(ops().Rename("trash", "rubbish"));
    EXPECT_OK(ops().Rename("rubbish/medium.txt", "src/medium.txt"));
    EXPECT_OK(ops().RemoveTree("rubbish"));
  });
  const TreeSnapshot after = Snapshot();
  EXPECT_THAT(RollBack().conflicts, IsEmpty());
  ExpectTree(before);
  EXPECT_THAT(RedoSteps().conflicts, IsEmpty());
  ExpectTree(after);
  EXPECT_THAT(RollBack().conflicts, IsEmpty());
  ExpectTree(before);
}

TEST_F(UndoConflict, AFolderMadeAndRemovedByTheStepIsNoConflict) {
  InStep([&] {
    EXPECT_OK(ops().Mkdir("made"));
    EXPECT_OK(ops().WriteNew("made/new.txt", "step"));
    EXPECT_OK(ops().Rename("made/new.txt", "made/renamed.txt"));
    EXPECT_OK(ops().RemoveTree("made"));
    EXPECT_OK(ops().Overwrite("small.txt", "step"));
  });
  EXPECT_THAT(RollBack().conflicts, IsEmpty());
}

// Several names, and changes of names only.

TEST_F(UndoConflict, AnEditUnderANameThatTheStepNeverSawIsFound) {
  InStep([&] { EXPECT_OK(ops().Link("small.txt", "other.txt")); });
  InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "by the step"));
    EXPECT_OK(ops().Unlink("small.txt"));
  });
  workspace().WriteFile("other.txt", "by a person");
  ExpectRefused({"edited other.txt"});
}

TEST_F(UndoConflict, SuchANameIsPlannedAsItWasBeforeALaterStepMovedItsFolder) {
  InStep([&] { EXPECT_OK(ops().Link("small.txt", "src/other.txt")); });
  InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "by the step"));
    EXPECT_OK(ops().Unlink("small.txt"));
  });
  workspace().WriteFile("src/other.txt", "by a person");
  InStep([&] { EXPECT_OK(ops().Rename("src", "lib")); });
  ExpectRefused({"edited src/other.txt"}, 2);
}

TEST_F(UndoConflict, ARewindOfOneOfSeveralNamesIsNoEditUnderTheOthers) {
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().Link("small.txt", "other.txt")); });
  InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "step 2"));
    EXPECT_OK(ops().Unlink("small.txt"));
  });
  InStep([&] { EXPECT_OK(ops().Overwrite("other.txt", "step 3")); });
  const TreeSnapshot after = Snapshot();
  RollBack(3);
  ExpectTree(before);
  RedoSteps(3);
  ExpectTree(after);
  RollBack(3);
  ExpectTree(before);
}

TEST_F(UndoConflict, AnEditOfAFileThatWasOnlyRenamedSurvivesTheRollback) {
  InStep([&] { EXPECT_OK(ops().Rename("small.txt", "renamed.txt")); });
  workspace().WriteFile("renamed.txt", "person");
  TreeBuilder(workspace().project()).Mode("renamed.txt", 0600);
  const struct stat edited = StatOf("renamed.txt");
  RollBack();
  EXPECT_EQ(Content("small.txt"), "person");
  EXPECT_EQ(StatOf("small.txt").st_mode, edited.st_mode);
  EXPECT_EQ(StatOf("small.txt").st_mtim.tv_nsec, edited.st_mtim.tv_nsec);
}

TEST_F(UndoConflict, AnEditOfARenamedFileStillBlocksTheOlderStepThatChangedIt) {
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "step 1")); });
  InStep([&] { EXPECT_OK(ops().Rename("small.txt", "renamed.txt")); });
  workspace().WriteFile("renamed.txt", "person");
  RollBack();
  ExpectRefusedFor("small.txt");
}

TEST_F(UndoConflict, AChmodOfAFolderInWhichNamesChangedSurvivesTheRollback) {
  InStep([&] { EXPECT_OK(ops().WriteNew("src/new.txt", "step")); });
  TreeBuilder(workspace().project()).Mode("src", 0750);
  RollBack();
  EXPECT_FALSE(workspace().Exists("src/new.txt"));
  EXPECT_EQ(StatOf("src").st_mode & 07777, 0750u);
}

// Force.

TEST_F(UndoConflict, ForceOverwritesAnEditAndSaysSo) {
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "step")); });
  workspace().WriteFile("small.txt", "person");
  const RewindReport report = RollBack(1, Force::kYes);
  EXPECT_THAT(Lines(report.conflicts), ElementsAre("edited small.txt"));
  ExpectTree(before);
}

TEST_F(UndoConflict, WhatForceOverwroteComesBackByRedo) {
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "step")); });
  workspace().WriteFile("small.txt", "person");
  RollBack(1, Force::kYes);
  RedoSteps();
  EXPECT_EQ(Content("small.txt"), "person") << "redo restores what the rollback replaced";
}

TEST_F(UndoConflict, ForceNeverDeletesWhatWasNotRecorded) {
  InStep([&] {
    EXPECT_OK(ops().Unlink("small.txt"));
    EXPECT_OK(ops().Mkdir("made"));
    EXPECT_OK(ops().WriteNew("made/step.txt", "step"));
    EXPECT_OK(ops().Overwrite("medium.txt", "step"));
  });
  workspace().WriteFile("small.txt", "a person's own file");
  workspace().WriteFile("made/notes.txt", "a person's own file");
  ReplaceFile("medium.txt", "a person's own file");
  const RewindReport report = RollBack(1, Force::kYes);
  EXPECT_EQ(Content("made/notes.txt"), "a person's own file");
  EXPECT_THAT(report.kept, Contains("made"));

  // Whatever became of the names, the content is still somewhere: in the project or one redo away.
  const auto holds_it = [&](const char* path) {
    return workspace().Exists(path) && Content(path) == "a person's own file";
  };
  const bool small_kept = holds_it("small.txt");
  const bool medium_kept = holds_it("medium.txt");
  if (small_kept && medium_kept) return;
  RedoSteps(1, Force::kYes);
  EXPECT_TRUE(holds_it("small.txt"));
  EXPECT_TRUE(holds_it("medium.txt"));
}

// What a person put in the place of one half of an exchange does not keep the other half from going home.
TEST_F(UndoConflict, ForceUndoesAnExchangeAlsoWhereAPersonReplacedTheBornOne) {
  const std::string was = Content("small.txt");
  InStep([&] {
    EXPECT_OK(ops().WriteNew("new", "new"));
    EXPECT_OK(ops().Rename("new", "small.txt", RenameMode::kExchange));
  });
  ReplaceFile("small.txt", "person");
  ExpectRefusedFor("small.txt");
  const RewindReport report = RollBack(1, Force::kYes);
  EXPECT_EQ(Content("small.txt"), was);
  EXPECT_FALSE(workspace().Exists("new"));
  EXPECT_THAT(report.kept, Contains("small.txt.kept-1"));
  EXPECT_EQ(Content("small.txt.kept-1"), "person");
}

TEST_F(UndoConflict, ForceUndoesAnExchangeAlsoWhereAPersonReplacedAnOldOne) {
  const std::string was = Content("small.txt");
  InStep([&] { EXPECT_OK(ops().Rename("small.txt", "medium.txt", RenameMode::kExchange)); });
  ReplaceFile("small.txt", "person");  // what was medium.txt is gone
  RollBack(1, Force::kYes);
  EXPECT_EQ(Content("small.txt"), was);
  EXPECT_EQ(Content("small.txt.kept-1"), "person");
}

// The name beside changed the time of what was set aside. That is no person's edit.
TEST_F(UndoConflict, WhatForceSetAsideIsAsTheStepsKnowIt) {
  workspace().WriteFile("src/large",
                        std::string(300 << 10, 'x'));  // kept by moving it to the store
  InStep([&] { EXPECT_OK(ops().Overwrite("src/large", "step")); });
  ReplaceFile("src/large", "person");
  InStep([&] { EXPECT_OK(ops().Chmod("src/large", 0600)); });
  RollBack(2, Force::kYes);
  EXPECT_EQ(Content("src/large.kept-1"), "person");
  const StepId moved = InStep([&] { EXPECT_OK(ops().Rename("src", "lib")); });
  const std::string gone[] = {"lib"};
  EXPECT_OK(log().Restore(moved, gone));
  EXPECT_FALSE(workspace().Exists("lib"));
}

TEST_F(UndoConflict, ForceOnACreatedFileThatWasEditedIsRedoable) {
  InStep([&] { EXPECT_OK(ops().WriteNew("new.txt", "step")); });
  workspace().WriteFile("new.txt", "person");
  RollBack(1, Force::kYes);
  EXPECT_FALSE(workspace().Exists("new.txt"));
  RedoSteps();
  EXPECT_EQ(Content("new.txt"), "person");
}

TEST_F(UndoConflict, ADirectoryThatBecameAFileIsAConflict) {
  InStep([&] { EXPECT_OK(ops().Unlink("src/components/app.rs")); });
  const TreeBuilder tree(workspace().project());
  tree.Remove("src/components");
  tree.File("src/components", "a file now");
  const TreeSnapshot now = Snapshot();
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  ExpectTree(now);
  EXPECT_EQ(Content("src/components"), "a file now");
}

TEST_F(UndoConflict, AParentDirectoryThatIsGoneIsAConflict) {
  InStep([&] { EXPECT_OK(ops().Unlink("src/components/app.rs")); });
  TreeBuilder(workspace().project()).Remove("src/components");
  const TreeSnapshot now = Snapshot();
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  ExpectTree(now);
}

TEST_F(UndoConflict, AbortingAStepKeepsWhatAPersonDidMeanwhile) {
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Mkdir("made"));
  EXPECT_OK(ops().WriteNew("made/step.txt", "step"));
  workspace().WriteFile("made/notes.txt", "person");
  Result<RewindReport> report = log().AbortStep();
  ASSERT_OK(report);
  EXPECT_EQ(Content("made/notes.txt"), "person");
  EXPECT_FALSE(workspace().Exists("made/step.txt"));
}

TEST_F(UndoConflict, APersonsNewHardLinkToAChangedFileIsNoReasonToLoseIt) {
  InStep([&] { EXPECT_OK(ops().WriteNew("new.txt", "step")); });
  TreeBuilder(workspace().project()).Link("new.txt", "kept_link.txt");
  const Result<RewindReport> rolled_back = log().Rollback(1);
  EXPECT_EQ(Content("kept_link.txt"), "step") << "that name was never recorded";
  if (!rolled_back.ok()) EXPECT_CODE(rolled_back, Code::kConflict);
}

}  // namespace
}  // namespace sandglass::undo
