// Dry runs, and what people are shown.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/history_fixture.h"
#include "undo/journal_view.h"

namespace sandglass::undo {
namespace {

using test::Must;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Dry runs.

class UndoDryRun : public UndoHistoryTest {};

TEST_F(UndoDryRun, APlanTouchesNeitherProjectNorStore) {
  InStep([&] { ChangeMuch(1); });
  InStep([&] { EXPECT_OK(ops().RemoveTree("lib")); });
  RollBack();
  log().WaitForBackground();
  const TreeSnapshot project = Snapshot();
  const TreeSnapshot steps = Must(TreeSnapshot::Capture(workspace().store() + "/steps"));
  Result<RewindReport> back = log().PlanRollback(1);
  Result<RewindReport> forth = log().PlanRedo(1);
  ASSERT_OK(back);
  ASSERT_OK(forth);
  ExpectTree(project);
  EXPECT_TREE_EQ(steps, Must(TreeSnapshot::Capture(workspace().store() + "/steps")));
  EXPECT_THAT(Steps(), SizeIs(1));
  EXPECT_EQ(log().redo_depth(), 1u);
  EXPECT_THAT(back->conflicts, IsEmpty());
}

TEST_F(UndoDryRun, APlanSaysWhatTheRollbackThenDoes) {
  InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
    EXPECT_OK(ops().WriteNew("new.txt", "new"));
    EXPECT_OK(ops().Unlink("medium.txt"));
    EXPECT_OK(ops().Rename("src", "lib"));
  });
  Result<RewindReport> plan = log().PlanRollback(1);
  ASSERT_OK(plan);
  const std::vector<std::string> wanted = {"created medium.txt", "deleted new.txt",
                                           "modified small.txt", "renamed lib -> src"};
  EXPECT_EQ(Lines(plan->changes), wanted);
  EXPECT_THAT(plan->steps, ElementsAre(StepId{1}));
  const RewindReport report = RollBack();
  EXPECT_EQ(Lines(report.changes), wanted);
}

TEST_F(UndoDryRun, APlanListsEveryConflictByPath) {
  InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
    EXPECT_OK(ops().Overwrite("medium.txt", "changed"));
    EXPECT_OK(ops().Unlink("run.sh"));
    EXPECT_OK(ops().WriteNew("new.txt", "new"));
  });
  workspace().WriteFile("small.txt", "edited");
  workspace().WriteFile("run.sh", "somebody made it again");
  TreeBuilder(workspace().project()).Remove("new.txt");
  const TreeSnapshot now = Snapshot();
  Result<RewindReport> plan = log().PlanRollback(1);
  ASSERT_OK(plan);
  EXPECT_THAT(Lines(plan->conflicts),
              ElementsAre("edited small.txt", "missing new.txt", "occupied run.sh"));
  ExpectTree(now);
}

// What people are shown.

class UndoShow : public UndoHistoryTest {};

TEST_F(UndoShow, TheHistoryIsOldestFirstWithLabelsKindsAndTimes) {
  FakeClock clock;
  options_.clock = &clock;
  OpenLog();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); }, "first");
  clock.Advance(std::chrono::seconds(10));
  ASSERT_OK(log().OpenStep({.kind = StepKind::kApi, .label = "write_file"}));
  EXPECT_OK(ops().Overwrite("small.txt", "2"));
  clock.Advance(std::chrono::seconds(3));
  EXPECT_OK(log().CloseStep());
  EXPECT_OK(ops().Overwrite("small.txt", "ambient"));
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "4")); }, "last");

  const std::vector<StepInfo> steps = Steps();
  ASSERT_THAT(steps, SizeIs(4));
  EXPECT_EQ(steps[0].label, "first");
  EXPECT_EQ(steps[1].label, "write_file");
  EXPECT_EQ(steps[1].kind, StepKind::kApi);
  EXPECT_EQ(steps[1].opened - steps[0].opened, std::chrono::seconds(10));
  EXPECT_EQ(steps[1].closed - steps[1].opened, std::chrono::seconds(3));
  EXPECT_EQ(steps[2].kind, StepKind::kAmbient);
  EXPECT_EQ(steps[3].label, "last");
  OpenLog();
  EXPECT_THAT(Steps(), SizeIs(4));
  EXPECT_EQ(Steps()[2].kind, StepKind::kAmbient) << "order and kinds survive";
}

TEST_F(UndoShow, SummariesCountAndMeasure) {
  const StepId step = InStep([&] {
    EXPECT_OK(ops().WriteNew("new.txt", std::string(123, 'n')));
    EXPECT_OK(ops().Append("small.txt", "!", WriteVisibility::kUnseen));
    EXPECT_OK(ops().Unlink("large.bin"));
    EXPECT_OK(ops().Rename("medium.txt", "src/m.txt"));
  });
  const ChangeCounts counts = InfoOf(step).counts;
  EXPECT_EQ(counts.created, 1u);
  EXPECT_EQ(counts.modified, 1u);
  EXPECT_EQ(counts.deleted, 1u);
  EXPECT_EQ(counts.renamed, 1u);
  for (const Change& change : Must(log().Changes(step))) {
    if (change.kind == ChangeKind::kCreated) EXPECT_EQ(change.new_size, 123u);
    if (change.kind == ChangeKind::kModified)
      EXPECT_EQ(std::pair(change.old_size, change.new_size), std::pair(uint64_t{11}, uint64_t{12}));
    if (change.kind == ChangeKind::kDeleted) EXPECT_EQ(change.old_size, 1'000'000u);
    if (change.kind == ChangeKind::kRenamed) EXPECT_EQ(change.old_path, "medium.txt");
  }
}

TEST_F(UndoShow, AFileRenamedAndChangedIsBoth) {
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Rename("small.txt", "renamed.txt"));
    EXPECT_OK(ops().Overwrite("renamed.txt", "changed too"));
  });
  EXPECT_THAT(ChangeLines(step), Contains("renamed small.txt -> renamed.txt"));
  RollBack();
  EXPECT_EQ(Content("small.txt"), "hello world");
}

// As programs do that open a file, take its name away and give it back.
TEST_F(UndoShow, AFileThatIsChangedAndGetsItsNameBackIsModified) {
  StartWith([](const std::string& root) { TreeBuilder(root).File("a", "old"); });
  InStep([&] { EXPECT_OK(ops().WriteNew("other", "")); });
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Link("a", "b"));
    Result<Fd> file = ops().OpenFile("a", O_RDWR, WriteVisibility::kUnseen);
    ASSERT_OK(file);
    EXPECT_OK(ops().Unlink("a"));
    EXPECT_OK(ops().LinkOpenFile(file->get(), "a"));
    EXPECT_OK(ops().Unlink("b"));
    ASSERT_EQ(::pwrite(file->get(), "fresh", 5, 0), 5);
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified a"));
  EXPECT_THAT(RollBack().steps, ElementsAre(step));
  EXPECT_EQ(Content("a"), "old");
}

TEST_F(UndoShow, AFileThatIsChangedUnderANameThatGoesAgainIsModified) {
  StartWith([](const std::string& root) {
    TreeBuilder(root).File("a", "old");
    TreeBuilder(root).File("b", "old");
  });
  InStep([&] { EXPECT_OK(ops().WriteNew("other", "")); });
  const StepId first = InStep([&] {
    EXPECT_OK(ops().Link("a", "passing"));
    EXPECT_OK(ops().Overwrite("passing", "fresh"));
    EXPECT_OK(ops().Unlink("passing"));
  });
  const StepId second = InStep([&] {
    EXPECT_OK(ops().Link("b", "passing"));
    EXPECT_OK(ops().Chmod("passing", 0600));
    EXPECT_OK(ops().Unlink("passing"));
  });
  EXPECT_THAT(ChangeLines(first), ElementsAre("modified a"));
  EXPECT_THAT(ChangeLines(second), ElementsAre("modified b"));
  EXPECT_THAT(RollBack().steps, ElementsAre(second));
  EXPECT_THAT(RollBack().steps, ElementsAre(first));
  EXPECT_EQ(Content("a"), "old");
}

TEST_F(UndoShow, ALargeFileThatGotItsOwnBytesAgainIsModifiedAndAnOpenedOneIsNot) {
  const std::string bytes = Noise(600 << 10);
  StartWith([&](const std::string& root) { TreeBuilder(root).File("large", bytes); });
  const TreeSnapshot before = Snapshot();
  const StepId wrote = InStep([&] {
    EXPECT_OK(ops().WriteAt("large", 0, bytes.substr(0, 100), WriteVisibility::kUnseen));
  });
  const StepId opened =
      InStep([&] { EXPECT_OK(ops().OpenFile("large", O_WRONLY, WriteVisibility::kUnseen)); });
  EXPECT_THAT(ChangeLines(wrote), ElementsAre("modified large"));
  EXPECT_THAT(ChangeLines(opened), IsEmpty());
  EXPECT_THAT(RollBack().steps, ElementsAre(opened, wrote));
  ExpectTree(before);
}

TEST_F(UndoShow, TheDiffIsUnified) {
  workspace().WriteFile("poem.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Overwrite("poem.txt", "one\ntwo\nthree\nFOUR\nfive\nsix\nseven\n"));
    EXPECT_OK(ops().WriteNew("added.txt", "hello\n"));
    EXPECT_OK(ops().Unlink("src/main.rs"));
    EXPECT_OK(ops().WriteAt("large.bin", 0, "\x00\x01\x02", WriteVisibility::kUnseen));
  });
  Result<StepDiff> diff = log().Diff(step);
  ASSERT_OK(diff);
  EXPECT_THAT(diff->text, HasSubstr("--- a/poem.txt\n+++ b/poem.txt\n@@ -1,7 +1,7 @@\n one\n two\n "
                                    "three\n-four\n+FOUR\n five\n"));
  EXPECT_THAT(diff->text, HasSubstr("+hello"));
  EXPECT_THAT(diff->text, HasSubstr("-fn main() {}"));
  EXPECT_THAT(diff->text, Not(HasSubstr("\x01"))) << "no binary in a diff";
}

TEST_F(UndoShow, TheDiffOfAnOlderStepShowsThatStepAlone) {
  workspace().WriteFile("poem.txt", "one\n");
  const StepId first = InStep([&] { EXPECT_OK(ops().Overwrite("poem.txt", "two\n")); });
  InStep([&] { EXPECT_OK(ops().Overwrite("poem.txt", "three\n")); });
  Result<StepDiff> diff = log().Diff(first);
  ASSERT_OK(diff);
  EXPECT_THAT(diff->text, HasSubstr("-one\n+two"));
  EXPECT_THAT(diff->text, Not(HasSubstr("three")));
}

TEST_F(UndoShow, UnknownStepsAreNotFound) {
  EXPECT_CODE(log().Changes(StepId{5}), Code::kNotFound);
  EXPECT_CODE(log().Diff(StepId{5}), Code::kNotFound);
}

TEST_F(UndoShow, AReaderWorksWhileTheStoreIsOwned) {
  const StepId step =
      InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "changed\n")); }, "owned");
  ASSERT_OK(log().OpenStep({.label = "still open"}));
  EXPECT_OK(ops().Overwrite("medium.txt", "x"));
  RunForked([&] {
    Result<StoreReader> reader = StoreReader::Open(paths());
    ASSERT_OK(reader);
    Result<std::vector<HistoryEntry>> history = reader->History();
    ASSERT_OK(history);
    ASSERT_FALSE(history->empty());
    EXPECT_EQ((*history)[0].step->label, "owned");
    Result<std::vector<Change>> changes = reader->Changes(step);
    ASSERT_OK(changes);
    EXPECT_THAT(Lines(*changes), ElementsAre("modified small.txt"));
    Result<StepDiff> diff = reader->Diff(step);
    ASSERT_OK(diff);
    EXPECT_THAT(diff->text, HasSubstr("+changed"));
    EXPECT_OK(reader->Show(step));
  });
  EXPECT_OK(log().CloseStep());
  RollBack(2);
  EXPECT_EQ(Content("small.txt"), "hello world");
}

TEST_F(UndoShow, AReaderChangesNothingInTheStore) {
  InStep([&] { ChangeMuch(1); });
  log().WaitForBackground();
  CloseLog();
  const TreeSnapshot store = Must(TreeSnapshot::Capture(workspace().store()));
  Result<StoreReader> reader = StoreReader::Open(paths());
  ASSERT_OK(reader);
  EXPECT_OK(reader->History());
  EXPECT_OK(reader->Show(StepId{1}));
  EXPECT_TREE_EQ(store, Must(TreeSnapshot::Capture(workspace().store())));
}

TEST_F(UndoShow, AReaderMakesNoFolderThatIsMissing) {
  const StepId step = InStep([&] { EXPECT_OK(ops().Unlink("small.txt")); });
  const std::string anchors = StepFolder(workspace(), step) + "/anchors";
  ASSERT_OK(test::RemoveTree(anchors));
  const StepDiff diff = Must(Must(StoreReader::Open(paths())).Diff(step));
  EXPECT_THAT(diff.missing, ElementsAre(Field(&Conflict::path, "small.txt")));
  EXPECT_NE(::access(anchors.c_str(), F_OK), 0);
}

TEST_F(UndoShow, AReaderOfNoStoreSaysSo) {
  EXPECT_CODE(
      StoreReader::Open({.project = workspace().project(), .store = workspace().root() + "/none"}),
      Code::kNotFound);
}

// A diff shows what the step did, and nobody else's work.
class UndoDiff : public UndoTest {
 protected:
  void SetUp() override {
    StartWith([&](const std::string&) {
      workspace().WriteFile("a.txt", "one\n");
      workspace().WriteFile("b.txt", "bbb\n");
    });
    step_ = InStep([&] { EXPECT_OK(ops().Overwrite("a.txt", "two\n")); });
  }
  StepDiff Diff() { return Must(log().Diff(step_)); }
  void ExpectTold(const StepDiff& diff) {
    EXPECT_THAT(diff.text, HasSubstr("-one\n+two\n"));
    EXPECT_THAT(diff.missing, IsEmpty());
  }
  void ExpectMissing(const StepDiff& diff, ConflictKind kind) {
    EXPECT_EQ(diff.text, "");
    ASSERT_THAT(diff.missing, ElementsAre(Field(&Conflict::path, "a.txt")));
    EXPECT_EQ(diff.missing[0].kind, kind) << diff.missing[0].detail;
  }

  StepId step_;
};

TEST_F(UndoDiff, WhatTheOpenStepDoesIsNotTheOlderStepsDoing) {
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Overwrite("a.txt", "three\n"));
  ExpectTold(Diff());
  EXPECT_OK(ops().Rename("a.txt", "c.txt"));
  ExpectTold(Diff());
  EXPECT_OK(ops().Unlink("c.txt"));
  ExpectTold(Diff());
  EXPECT_OK(log().CloseStep());
  ExpectTold(Diff());
}

// The owner of an open step cuts its journal when it closes, perhaps while somebody reads.
TEST_F(UndoDiff, ACopyOfAJournalIsReadOnAfterItsWriterHasCutTheFile) {
  const std::string folder = fmt::format("{}/steps/{}", workspace().store(), step_.value);
  const Fd dir(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(dir.valid());
  const Result<JournalView> journal = JournalView::Read(dir.get(), "journal");
  ASSERT_OK(journal);
  ASSERT_EQ(::truncate((folder + "/journal").c_str(), 0), 0);
  EXPECT_GT(journal->size(), 0U);
  EXPECT_OK(journal->Close());
}

TEST_F(UndoDiff, APersonsEditIsNotShownAsTheSteps) {
  workspace().WriteFile("a.txt", "a person's secret\n");
  ExpectMissing(Diff(), ConflictKind::kEdited);
}

TEST_F(UndoDiff, APersonsEditThatALaterStepFoundIsNotShownAsTheOlderSteps) {
  workspace().WriteFile("a.txt", "a person's secret\n");
  InStep([&] { EXPECT_OK(ops().Overwrite("a.txt", "three\n")); });
  ExpectMissing(Diff(), ConflictKind::kEdited);
}

TEST_F(UndoDiff, AFileThatAPersonTookAwayOrPutThereIsNotTheSteps) {
  ASSERT_EQ(::rename(workspace().Path("b.txt").c_str(), workspace().Path("a.txt").c_str()), 0);
  ExpectMissing(Diff(), ConflictKind::kEdited);
  ASSERT_EQ(::unlink(workspace().Path("a.txt").c_str()), 0);
  ExpectMissing(Diff(), ConflictKind::kEdited);
}

TEST_F(UndoDiff, WhatSomeoneMadeUnderADeletedNameIsNotTheSteps) {
  step_ = InStep([&] { EXPECT_OK(ops().Unlink("a.txt")); });
  workspace().WriteFile("a.txt", "a person's secret\n");
  const StepDiff diff = Diff();
  EXPECT_THAT(diff.text, HasSubstr("-two\n"));
  EXPECT_THAT(diff.text, Not(HasSubstr("secret")));
  EXPECT_THAT(diff.missing, IsEmpty());
}

}  // namespace
}  // namespace sandglass::undo
