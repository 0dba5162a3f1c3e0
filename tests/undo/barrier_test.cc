// Edits that a watcher reports, and how they stop a rollback (EB-01..06, EB-08). Edits that nobody reports: conflict_test.cc.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"
#include "undo/store_frame.h"

namespace sandglass::undo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class UndoBarrier : public UndoTest {
 protected:
  void SetUp() override {
    options_.observer = &observer_;
    StartWith(test::SmallTree);
  }

  void Note(const std::vector<std::string>& paths) {
    EXPECT_OK(log().NoteExternalModification(paths));
  }
  StepId OverwriteInStep(const std::string& path, const std::string& content) {
    return InStep([&] { EXPECT_OK(ops().Overwrite(path, content)); });
  }
  // The rollback is refused because of a barrier at `path`, and nothing is touched.
  void ExpectBlocked(uint32_t count, std::string_view path) {
    const TreeSnapshot before = Snapshot();
    EXPECT_CODE(log().Rollback(count), Code::kConflict);
    ExpectTree(before);
    Result<RewindReport> plan = log().PlanRollback(count);
    ASSERT_OK(plan);
    EXPECT_TRUE(HasConflict(plan->conflicts, ConflictKind::kBarrier, path))
        << ::testing::PrintToString(Lines(plan->conflicts));
  }

  RecordingObserver observer_;
};

TEST_F(UndoBarrier, EB_01_AnExternalWriteIsToldWithItsPaths) {
  const StepId step = OverwriteInStep("small.txt", "1");
  workspace().WriteFile("notes.txt", "by a person");
  Note({"notes.txt", "src/main.rs"});
  ASSERT_THAT(observer_.external(), SizeIs(1));
  EXPECT_THAT(observer_.external()[0].paths, ElementsAre("notes.txt", "src/main.rs"));
  EXPECT_EQ(observer_.external()[0].after, step);
}

TEST_F(UndoBarrier, EB_02_RollbackAcrossABarrierIsRefusedAndNamesIt) {
  OverwriteInStep("small.txt", "1");
  Note({"small.txt"});
  ExpectBlocked(1, "small.txt");
  const Result<RewindReport> refused = log().Rollback(1);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("small.txt"));
  EXPECT_THAT(Steps(), SizeIs(1)) << "nothing was popped";
}

TEST_F(UndoBarrier, ABarrierWithoutPathsStaysInTheWayOfOlderStepsWhenItIsCrossedByForce) {
  OverwriteInStep("small.txt", "1");
  OverwriteInStep("small.txt", "2");
  Note({});
  RollBack(1, Force::kYes);
  ExpectBlocked(1, "");
}

TEST_F(UndoBarrier, AClockThatGoesBackLetsNoRedoCrossABarrier) {
  FakeClock clock;
  options_.clock = &clock;
  CloseLog();
  OpenLog();
  OverwriteInStep("small.txt", "1");
  RollBack();
  clock.Advance(-std::chrono::seconds(5));
  Note({});
  EXPECT_CODE(log().Redo(1), Code::kConflict);
  CloseLog();
  OpenLog();
  EXPECT_CODE(log().Redo(1), Code::kConflict);
  RedoSteps(1, Force::kYes);
  RollBack();
  RedoSteps();  // this rollback came after the edit
}

TEST_F(UndoBarrier, EditsOfManyFilesAreToldByTheNamesThatTheyHadBeforeTheStepMovedThem) {
  constexpr int kFiles = 500;
  const auto name = [](std::string_view dir, int i) { return fmt::format("{}/{:03}", dir, i); };
  InStep([&] {
    EXPECT_OK(ops().Mkdir("one"));
    EXPECT_OK(ops().Mkdir("two"));
    for (int i = 0; i < kFiles; ++i) EXPECT_OK(ops().WriteNew(name("one", i), "made"));
  });
  for (int i = 0; i < kFiles; ++i) workspace().WriteFile(name("one", i), "edited by a person");
  InStep([&] {
    EXPECT_OK(ops().Rename("one", "two", RenameMode::kExchange));
    EXPECT_OK(ops().Rename("two", "three"));
    for (int i = 0; i < kFiles; ++i)
      EXPECT_OK(ops().WriteAt(name("three", i), 0, "E", WriteVisibility::kAnnounced));
    EXPECT_OK(ops().Rename("three", "four"));
  });
  ASSERT_THAT(Barriers(), SizeIs(1));
  std::vector<std::string> wanted;
  for (int i = 0; i < kFiles; ++i) wanted.push_back(name("one", i));
  EXPECT_THAT(Barriers()[0].paths, ::testing::UnorderedElementsAreArray(wanted));
}

TEST_F(UndoBarrier, EB_03_ForceCrossesTheBarrierAndSaysSo) {
  const TreeSnapshot before = Snapshot();
  OverwriteInStep("small.txt", "1");
  Note({"small.txt"});
  const RewindReport report = RollBack(1, Force::kYes);
  ExpectTree(before);
  EXPECT_TRUE(HasConflict(report.conflicts, ConflictKind::kBarrier, "small.txt"));
  EXPECT_THAT(Barriers(), IsEmpty()) << "a barrier that was crossed is gone";
}

TEST_F(UndoBarrier, EB_04_TheBarrierIsSeenInTheHistory) {
  FakeClock clock;
  options_.clock = &clock;
  OpenLog();
  const StepId first = OverwriteInStep("small.txt", "1");
  clock.Advance(std::chrono::seconds(7));
  const Instant noted = clock.Now();
  Note({"src/main.rs"});
  const StepId second = OverwriteInStep("medium.txt", "2");

  Result<std::vector<HistoryEntry>> history = log().History();
  ASSERT_OK(history);
  ASSERT_THAT(*history, SizeIs(3));
  ASSERT_TRUE((*history)[0].step && (*history)[1].barrier && (*history)[2].step);
  EXPECT_EQ((*history)[0].step->id, first);
  EXPECT_EQ((*history)[1].barrier->after, first);
  EXPECT_EQ((*history)[1].barrier->at, noted);
  EXPECT_THAT((*history)[1].barrier->paths, ElementsAre("src/main.rs"));
  EXPECT_EQ((*history)[2].step->id, second);
}

TEST_F(UndoBarrier, EB_04_ABarrierSurvivesReopening) {
  OverwriteInStep("small.txt", "1");
  Note({"small.txt"});
  OpenLog();
  ASSERT_THAT(Barriers(), SizeIs(1));
  ExpectBlocked(1, "small.txt");
}

TEST_F(UndoBarrier, EB_05_TheProjectsOwnWritesMakeNoBarrier) {
  InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "1"));
    EXPECT_OK(ops().RemoveTree("src"));
  });
  EXPECT_OK(ops().WriteNew("ambient.txt", "2"));
  InStep([&] { EXPECT_OK(ops().Rename("small.txt", "s.txt")); });
  RollBack();
  RedoSteps();
  RollBack();
  EXPECT_THAT(Barriers(), IsEmpty());
  EXPECT_THAT(observer_.external(), IsEmpty());
  EXPECT_OK(log().Rollback(2));
}

TEST_F(UndoBarrier, EB_06_EachBarrierIsListedAndTheNearestBlocks) {
  const TreeSnapshot original = Snapshot();
  const StepId first = OverwriteInStep("small.txt", "1");
  Note({"small.txt"});
  Note({"large.bin"});
  const TreeSnapshot after_first = Snapshot();
  const StepId second = OverwriteInStep("medium.txt", "2");
  Note({"medium.txt"});
  const TreeSnapshot after_second = Snapshot();
  OverwriteInStep("run.sh", "3");

  ASSERT_THAT(Barriers(), SizeIs(2)) << "one for each place between two steps";
  EXPECT_EQ(Barriers()[0].after, first);
  EXPECT_THAT(Barriers()[0].paths, ElementsAre("small.txt", "large.bin"));
  EXPECT_EQ(Barriers()[1].after, second);

  ExpectBlocked(2, "medium.txt");
  RollBack(1);
  ExpectTree(after_second);
  ExpectBlocked(1, "medium.txt");
  RollBack(1, Force::kYes);
  ExpectTree(after_first);
  ExpectBlocked(1, "small.txt");
  RollBack(1, Force::kYes);
  ExpectTree(original);
}

TEST_F(UndoBarrier, EB_08_UnderPolicyWarnAnExternalWriteIsToldButBlocksNothing) {
  options_.external = ExternalPolicy::kWarn;
  OpenLog();
  const TreeSnapshot before = Snapshot();
  OverwriteInStep("small.txt", "1");
  Note({"small.txt"});
  EXPECT_THAT(observer_.external(), SizeIs(1));
  EXPECT_THAT(Barriers(), IsEmpty());
  RollBack();
  ExpectTree(before);
}

// Beyond the founding list: which barrier concerns which step.

TEST_F(UndoBarrier, ABarrierElsewhereDoesNotBlock) {
  const TreeSnapshot before = Snapshot();
  OverwriteInStep("small.txt", "1");
  Note({"medium.txt", "src/components/app.rs", "small.txt.orig"});
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoBarrier, ABarrierAboveAChangedPathBlocks) {
  OverwriteInStep("src/components/app.rs", "1");
  Note({"src"});
  const TreeSnapshot before = Snapshot();
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  ExpectTree(before);
}

TEST_F(UndoBarrier, ABarrierBeneathAChangedDirectoryBlocks) {
  InStep([&] { EXPECT_OK(ops().Rename("src", "lib")); });
  Note({"lib/components/app.rs"});
  const TreeSnapshot before = Snapshot();
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  ExpectTree(before);
}

TEST_F(UndoBarrier, ABarrierBeneathAFolderThatOnlyGotAnotherModeDoesNotBlock) {
  InStep([&] { EXPECT_OK(ops().Chmod("src", 0700)); });
  Note({"src/main.rs"});
  EXPECT_OK(log().Rollback(1));
}

TEST_F(UndoBarrier, ABarrierWithoutPathsBlocksEverything) {
  OverwriteInStep("small.txt", "1");
  Note({});
  const TreeSnapshot before = Snapshot();
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  ExpectTree(before);
  ASSERT_THAT(Barriers(), SizeIs(1));
  EXPECT_THAT(Barriers()[0].paths, IsEmpty());
}

TEST_F(UndoBarrier, RedoObeysBarriers) {
  OverwriteInStep("small.txt", "1");
  const TreeSnapshot after = Snapshot();
  RollBack();
  Note({"small.txt"});
  const TreeSnapshot now = Snapshot();
  EXPECT_CODE(log().Redo(1), Code::kConflict);
  ExpectTree(now);
  RedoSteps(1, Force::kYes);
  ExpectTree(after);
}

TEST_F(UndoBarrier, AnEditFoundByTheNextStepBecomesABarrierToo) {
  const StepId first = OverwriteInStep("small.txt", "1");
  workspace().WriteFile("small.txt", "by a person, unseen by any watcher");
  OverwriteInStep("small.txt", "2");
  ASSERT_THAT(Barriers(), SizeIs(1));
  EXPECT_EQ(Barriers()[0].after, first);
  EXPECT_THAT(Barriers()[0].paths, ElementsAre("small.txt"));
  EXPECT_THAT(observer_.external(), SizeIs(1));
}

// An observer that asks the log a question, as a session does to show the history.
class AskingObserver final : public UndoObserver {
 public:
  void OnExternalModification(const Barrier&) override { Ask(); }
  void OnEvicted(const std::vector<StepId>&) override { Ask(); }

  UndoLog* log = nullptr;
  int answers = 0;

 private:
  void Ask() {
    if (log != nullptr && log->History().ok()) ++answers;
    if (log != nullptr) (void)log->open_step();
  }
};

TEST_F(UndoBarrier, AnObserverMayAskTheLog) {
  CloseLog();
  RunForked([&] {
    ::alarm(20);  // a lock held during the call would never be given back
    AskingObserver observer;
    options_.observer = &observer;
    options_.limits.max_steps = 1;
    OpenLog();
    observer.log = &log();
    OverwriteInStep("small.txt", "1");
    Note({"medium.txt"});
    OverwriteInStep("small.txt", "2");
    EXPECT_EQ(observer.answers, 2);
    observer.log = nullptr;
    CloseLog();
  });
}

// --- How many there can be.

TEST_F(UndoBarrier, AFileThatIsSavedOftenIsOneBarrierAndIsWrittenOnce) {
  OverwriteInStep("small.txt", "1");
  Note({"medium.txt"});
  const auto inode = [&] {
    struct stat info{};
    EXPECT_EQ(::stat((workspace().store() + "/barriers").c_str(), &info), 0);
    return info.st_ino;
  };
  const auto before = inode();
  for (int i = 0; i < 1000; ++i) Note({"medium.txt"});
  ASSERT_THAT(Barriers(), SizeIs(1));
  EXPECT_THAT(Barriers()[0].paths, ElementsAre("medium.txt"));
  EXPECT_EQ(inode(), before);
  EXPECT_THAT(observer_.external(), SizeIs(1001)) << "the observer hears of each";
}

TEST_F(UndoBarrier, BarriersThatARollbackBringsTogetherBecomeOne) {
  OverwriteInStep("small.txt", "1");
  Note({"medium.txt", "run.sh"});
  OverwriteInStep("large.bin", "2");
  Note({"medium.txt", "src/main.rs"});
  RollBack();
  ASSERT_THAT(Barriers(), SizeIs(1));
  EXPECT_THAT(Barriers()[0].paths, ElementsAre("medium.txt", "run.sh", "src/main.rs"));
}

TEST_F(UndoBarrier, MorePathsThanTheStoreCanHoldAreTheWholeTree) {
  OverwriteInStep("small.txt", "1");
  std::vector<std::string> paths;
  for (int i = 0; i < 3000; ++i) paths.push_back(fmt::format("node_modules/{:0200}.js", i));
  for (int i = 0; i < 3; ++i) Note(paths);
  ASSERT_THAT(Barriers(), SizeIs(1));
  EXPECT_THAT(Barriers()[0].paths, SizeIs(3000));
  std::vector<std::string> more;
  for (int i = 0; i < 3000; ++i) more.push_back(fmt::format("vendor/{:0200}.js", i));
  Note(more);
  ASSERT_THAT(Barriers(), SizeIs(1));
  EXPECT_THAT(Barriers()[0].paths, IsEmpty());
  OpenLog();
  ExpectBlocked(1, "");
}

TEST_F(UndoBarrier, AHugeListOfEditsDoesNotKeepTheStoreFromBeingOpened) {
  OverwriteInStep("small.txt", "1");
  std::vector<std::string> paths;
  for (int i = 0; i < 200'000; ++i)
    paths.push_back(fmt::format("node_modules/some/package/with/a/long/path/{:0200}.js", i));
  for (int i = 0; i < 3; ++i) Note(paths);
  OpenLog();
  ExpectBlocked(1, "");
}

TEST(MergeBarriers, AllOfThemTogetherStayWithinTheBound) {
  std::vector<Barrier> barriers;
  for (int step = 1; step <= 100; ++step) {
    Barrier barrier{.after = {step}, .at = {step}, .redo_depth = 0, .paths = {"short"}};
    for (int i = 0; i < 1000; ++i) barrier.paths.push_back(fmt::format("{:0200}", i * step));
    barriers.push_back(std::move(barrier));
  }
  const auto merged = MergeBarriers(std::move(barriers));
  ASSERT_THAT(merged, SizeIs(100));
  size_t bytes = 0;
  for (const Barrier& barrier : merged)
    for (const std::string& path : barrier.paths) bytes += path.size();
  EXPECT_LE(bytes, kMaxBarriersBytes);
  EXPECT_GE(bytes, kMaxBarriersBytes / 2);
}

TEST(MergeBarriers, ThoseOfDifferentRollbacksStayApart) {
  const auto merged = MergeBarriers({{.after = {1}, .at = {1}, .redo_depth = 0, .paths = {"a"}},
                                     {.after = {1}, .at = {2}, .redo_depth = 1, .paths = {"a"}},
                                     {.after = {1}, .at = {3}, .redo_depth = 0, .paths = {}}});
  ASSERT_THAT(merged, SizeIs(2));
  EXPECT_THAT(merged[0].paths, IsEmpty());
  EXPECT_EQ(merged[0].at.ns, 3);
  EXPECT_THAT(merged[1].paths, ElementsAre("a"));
}

// --- Edits that are told of while a step is open.

constexpr const char* kWork = "a person's work of an hour";

class UndoBarrierInAStep : public UndoBarrier {
 protected:
  // The step changes the file, a person does, and somebody tells.
  void EditDuringStep(const std::string& path) {
    EXPECT_OK(ops().Overwrite(path, "by the step"));
    workspace().WriteFile(path, kWork);
    Note({path});
  }
  // A file of the one folder that was put aside.
  std::string Damaged(const std::string& name) {
    const std::string damaged = workspace().store() + "/damaged";
    const auto kept = NamesIn(damaged);
    EXPECT_THAT(kept, SizeIs(1));
    if (kept.empty()) return "";
    std::ifstream file(damaged + "/" + kept[0] + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(UndoBarrierInAStep, AnEditToldDuringAStepStandsInTheWayOfItsRollback) {
  ASSERT_OK(log().OpenStep({}));
  EditDuringStep("small.txt");
  ASSERT_THAT(Barriers(), SizeIs(1)) << "also while the step is open";
  EXPECT_OK(log().CloseStep());
  ExpectBlocked(1, "small.txt");
  OpenLog();
  ExpectBlocked(1, "small.txt");
  EXPECT_EQ(Content("small.txt"), kWork);
}

TEST_F(UndoBarrierInAStep, AnEditToldDuringALaterStepStandsBehindThatStep) {
  OverwriteInStep("medium.txt", "1");
  ASSERT_OK(log().OpenStep({}));
  EditDuringStep("small.txt");
  Result<std::vector<HistoryEntry>> history = log().History();
  ASSERT_OK(history);
  ASSERT_THAT(*history, SizeIs(2));
  EXPECT_TRUE(history->back().barrier) << "it is the newest that happened";
  EXPECT_OK(log().CloseStep());
  EXPECT_EQ(Barriers().at(0).after, Steps().back().id);
  ExpectBlocked(1, "small.txt");
  EXPECT_EQ(Content("small.txt"), kWork);
}

TEST_F(UndoBarrierInAStep, AWatcherThatLosesTrackDuringAStepBlocksItsRollback) {
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Overwrite("small.txt", "by the step"));
  workspace().WriteFile("small.txt", kWork);
  Note({});
  EXPECT_OK(log().CloseStep());
  ExpectBlocked(1, "");
}

TEST_F(UndoBarrierInAStep, AnEditToldDuringAnAmbientStepBlocksItsRollback) {
  EditDuringStep("small.txt");
  ExpectBlocked(1, "small.txt");
}

TEST_F(UndoBarrierInAStep, AnEditElsewhereDuringAStepStandsInTheWayOfTheStepBefore) {
  OverwriteInStep("small.txt", "1");
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Overwrite("medium.txt", "2"));
  workspace().WriteFile("small.txt", kWork);
  Note({"small.txt"});
  EXPECT_OK(log().CloseStep());
  RollBack(1);
  ExpectBlocked(1, "small.txt");
}

TEST_F(UndoBarrierInAStep, AnAbortLeavesWhatAPersonEditedAndSaysSo) {
  OverwriteInStep("small.txt", "1");
  const StepId before = Steps().back().id;
  const std::string medium = Content("medium.txt");
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Overwrite("medium.txt", "by the step"));
  EditDuringStep("small.txt");
  const Result<RewindReport> report = log().AbortStep();
  ASSERT_OK(report);
  EXPECT_TRUE(HasConflict(report->conflicts, ConflictKind::kEdited, "small.txt"));
  EXPECT_EQ(Content("small.txt"), kWork);
  EXPECT_EQ(Content("medium.txt"), medium);
  ASSERT_THAT(Barriers(), SizeIs(1));
  EXPECT_EQ(Barriers()[0].after, before);
  ExpectBlocked(1, "small.txt");
  EXPECT_THAT(NamesIn(workspace().store() + "/damaged"), SizeIs(1)) << "what it was before";
}

TEST_F(UndoBarrierInAStep, AnAbortLeavesAnEditedFileThatTheStepHasRenamedOrReplacedSince) {
  ASSERT_OK(log().OpenStep({}));
  EditDuringStep("small.txt");
  EditDuringStep("run.sh");
  EXPECT_OK(ops().Rename("small.txt", "moved.txt"));
  EXPECT_OK(ops().WriteNew("new.sh", "by the step"));
  EXPECT_OK(ops().Rename("new.sh", "run.sh"));
  ASSERT_OK(log().AbortStep());
  EXPECT_EQ(Content("small.txt"), kWork);
  if (log().abilities().links) EXPECT_EQ(Content("run.sh"), kWork);
}

TEST_F(UndoBarrierInAStep, AnAbortLeavesWhatIsInAFolderThatWasToldOf) {
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Overwrite("src/main.rs", "by the step"));
  workspace().WriteFile("src/main.rs", kWork);
  Note({"src"});
  ASSERT_OK(log().AbortStep());
  EXPECT_EQ(Content("src/main.rs"), kWork);
}

TEST_F(UndoBarrierInAStep, AnAbortLeavesWhatIsInAToldFolderThatTheStepHasRenamedSince) {
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Overwrite("src/main.rs", "by the step"));
  workspace().WriteFile("src/main.rs", kWork);
  Note({"src"});
  EXPECT_OK(ops().Rename("src", "lib"));
  ASSERT_OK(log().AbortStep());
  EXPECT_EQ(Content("src/main.rs"), kWork);
}

TEST_F(UndoBarrierInAStep, AnAbortLeavesEverythingIfTheProjectItselfWasToldOf) {
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Overwrite("src/main.rs", "by the step"));
  workspace().WriteFile("src/main.rs", kWork);
  Note({"."});
  ASSERT_OK(log().AbortStep());
  EXPECT_EQ(Content("src/main.rs"), kWork);
}

// Most editors save so. The step's preimage has no place to go back to, and is the only copy of what was there before.
TEST_F(UndoBarrierInAStep, WhatAnAbortCannotPutBackWhereAPersonSavedByRenamingIsNotGone) {
  const std::string before = Content("small.txt");
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Overwrite("small.txt", "by the step"));
  workspace().WriteFile("small.txt.new", kWork);
  TreeBuilder(workspace().project()).Rename("small.txt.new", "small.txt");
  Note({"small.txt"});
  const Result<RewindReport> report = log().AbortStep();
  ASSERT_OK(report);
  EXPECT_EQ(Content("small.txt"), kWork);
  EXPECT_TRUE(HasConflict(report->conflicts, ConflictKind::kReplaced, "small.txt"));
  EXPECT_THAT(report->warnings, Not(IsEmpty()));
  EXPECT_THAT(Damaged("pack"), HasSubstr(before));
}

TEST_F(UndoBarrierInAStep, WhatAnAbortCannotPutBackUnderAPersonsNewNameIsNotGone) {
  const std::string before = Content("small.txt");
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Overwrite("small.txt", "by the step"));
  TreeBuilder(workspace().project()).Rename("small.txt", "mine.txt");
  ASSERT_OK(log().AbortStep());
  EXPECT_EQ(Content("mine.txt"), "by the step");
  EXPECT_THAT(Damaged("pack"), HasSubstr(before));
}

TEST_F(UndoBarrierInAStep, WhatAnAbortOverwritesAfterAWatcherLostTrackIsNotGone) {
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Overwrite("small.txt", "by the step"));
  workspace().WriteFile("small.txt", kWork);
  Note({});
  const Result<RewindReport> report = log().AbortStep();
  ASSERT_OK(report);
  EXPECT_TRUE(HasConflict(report->conflicts, ConflictKind::kBarrier, ""));
  EXPECT_THAT(Damaged("pack"), HasSubstr(kWork));
}

TEST_F(UndoBarrierInAStep, ABarrierOfAnAbortedStepIsNotThatOfTheNextOneWithItsId) {
  OverwriteInStep("medium.txt", "1");
  ASSERT_OK(log().OpenStep({}));
  EditDuringStep("small.txt");
  ASSERT_OK(log().AbortStep());
  OpenLog();
  OverwriteInStep("small.txt", "2");
  EXPECT_OK(log().Rollback(1));
}

TEST_F(UndoBarrierInAStep, RecoveryLeavesWhatAPersonEditedAndSaysSo) {
  OverwriteInStep("small.txt", "1");
  const StepId before = Steps().back().id;
  const std::string medium = Content("medium.txt");
  CloseLog();
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    EXPECT_OK(ops().Overwrite("medium.txt", "by the step"));
    EditDuringStep("small.txt");
    DieNow();
  });
  OpenLog();
  EXPECT_TRUE(HasConflict(log().recovery().rewind.conflicts, ConflictKind::kEdited, "small.txt"));
  EXPECT_EQ(Content("small.txt"), kWork);
  EXPECT_EQ(Content("medium.txt"), medium);
  ASSERT_THAT(Barriers(), SizeIs(1));
  EXPECT_EQ(Barriers()[0].after, before);
  ExpectBlocked(1, "small.txt");
}

TEST_F(UndoBarrierInAStep, AnInterruptedAmbientStepKeepsItsBarrier) {
  CloseLog();
  RunUntilDeath([&] {
    OpenLog();
    EditDuringStep("small.txt");
    DieNow();
  });
  OpenLog();
  ExpectBlocked(1, "small.txt");
}

TEST_F(UndoBarrierInAStep, UnderPolicyWarnAnAbortKeepsNothingBack) {
  options_.external = ExternalPolicy::kWarn;
  OpenLog();
  const std::string small = Content("small.txt");
  ASSERT_OK(log().OpenStep({}));
  EditDuringStep("small.txt");
  ASSERT_OK(log().AbortStep());
  EXPECT_EQ(Content("small.txt"), small);
}

TEST_F(UndoBarrier, ABarrierPathThatLeavesTheProjectIsRefused) {
  OverwriteInStep("small.txt", "1");
  const std::vector<std::string> outside = {"../store/version"};
  EXPECT_CODE(log().NoteExternalModification(outside), Code::kOutsideRoot);
  EXPECT_THAT(Barriers(), IsEmpty());
}

}  // namespace
}  // namespace sandglass::undo
