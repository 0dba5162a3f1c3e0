// Where steps begin and end and what they may cost: limits, eviction, ambient steps, an open step in the way (UI-17..22).
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class UndoStepBounds : public UndoTest {
 protected:
  // Files of 4 KiB that differ, so that a step can touch many bytes in small pieces.
  void WriteManySmallFiles(int count) const {
    for (int i = 0; i < count; ++i)
      workspace().WriteFile(fmt::format("many/{:03}.txt", i), Noise(4096, i));
  }
  void ChangeManySmallFiles(int from, int to) {
    for (int i = from; i < to; ++i) {
      EXPECT_OK(
          ops().WriteAt(fmt::format("many/{:03}.txt", i), 0, "changed", WriteVisibility::kUnseen));
    }
  }
};

TEST_F(UndoStepBounds, UI_17_AStepOverTheLimitIsMarkedUnprotected) {
  RecordingObserver observer;
  options_.observer = &observer;
  options_.limits.max_step_copied_bytes = 64 * 1024;
  options_.on_oversize = OversizePolicy::kUnprotected;
  WriteManySmallFiles(40);
  OpenLog();
  const StepId small = InStep([&] { ChangeManySmallFiles(0, 2); });
  const StepId step = InStep([&] { ChangeManySmallFiles(2, 40); });
  EXPECT_EQ(InfoOf(step).protection, Protection::kUnprotected);
  EXPECT_EQ(InfoOf(small).protection, Protection::kFull);
  EXPECT_THAT(observer.unprotected(), ElementsAre(step));

  const TreeSnapshot after = Snapshot();
  EXPECT_CODE(log().Rollback(1), Code::kUnprotected);
  EXPECT_CODE(log().Rollback(2), Code::kUnprotected);
  ExpectTree(after);
}

TEST_F(UndoStepBounds, UI_17_StepsAfterAnUnprotectedOneCanBeRolledBack) {
  options_.limits.max_step_copied_bytes = 64 * 1024;
  options_.on_oversize = OversizePolicy::kUnprotected;
  WriteManySmallFiles(40);
  OpenLog();
  InStep([&] { ChangeManySmallFiles(0, 40); });
  ExpectUndone([&] {
    ChangeManySmallFiles(0, 2);
    EXPECT_OK(ops().Unlink("many/003.txt"));
  });
}

TEST_F(UndoStepBounds, UI_17_AnUnprotectedChangeIsShownAndStandsInTheWay) {
  options_.limits.max_step_copied_bytes = 1024;
  options_.on_oversize = OversizePolicy::kUnprotected;
  WriteManySmallFiles(2);
  OpenLog();
  const StepId step = InStep([&] { ChangeManySmallFiles(0, 1); });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified many/000.txt"));
  EXPECT_CODE(log().Rollback(1), Code::kUnprotected);
}

TEST_F(UndoStepBounds, UI_17_ARefusedOversizeOperationChangesNothingAndTheStepStaysUndoable) {
  options_.limits.max_step_copied_bytes = 64 * 1024;
  options_.on_oversize = OversizePolicy::kRefuse;
  WriteManySmallFiles(40);
  OpenLog();
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    int refused = 0;
    for (int i = 0; i < 40; ++i) {
      const std::string path = fmt::format("many/{:03}.txt", i);
      const Status changed = ops().WriteAt(path, 0, "changed", WriteVisibility::kUnseen);
      if (changed.ok()) continue;
      EXPECT_CODE(changed, Code::kLimit);
      EXPECT_EQ(Content(path), Noise(4096, i));
      ++refused;
    }
    EXPECT_GT(refused, 20);
    EXPECT_LT(refused, 40);
  });
  EXPECT_EQ(Steps().back().protection, Protection::kFull);
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoStepBounds, UI_18_TheOldestStepIsEvictedWhenThereAreTooMany) {
  RecordingObserver observer;
  options_.observer = &observer;
  options_.limits.max_steps = 3;
  StartWith(test::SmallTree);
  std::vector<StepId> evicted;
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(log().OpenStep({.label = fmt::format("step {}", i)}));
    EXPECT_OK(ops().Overwrite("small.txt", fmt::format("content {}", i)));
    Result<std::vector<StepId>> gone = log().CloseStep();
    ASSERT_OK(gone);
    evicted.insert(evicted.end(), gone->begin(), gone->end());
  }
  EXPECT_THAT(evicted, ElementsAre(StepId{1}, StepId{2}));
  EXPECT_EQ(observer.evicted(), evicted);
  ASSERT_THAT(Steps(), SizeIs(3));
  EXPECT_EQ(Steps().front().id, StepId{3});
  RollBack(3);
  EXPECT_EQ(Content("small.txt"), "content 1");
  EXPECT_CODE(log().Rollback(1), Code::kNotFound);
}

TEST_F(UndoStepBounds, UI_18_TheLimitHoldsAfterReopening) {
  options_.limits.max_steps = 2;
  StartWith(test::SmallTree);
  for (int i = 0; i < 2; ++i)
    InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", fmt::format("{}", i))); });
  OpenLog();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "after reopening")); });
  EXPECT_THAT(Steps(), SizeIs(2));
  EXPECT_FALSE(::access(StepFolder(workspace(), StepId{1}).c_str(), F_OK) == 0);
}

// --- What is on record counts, too.

class UndoJournalBounds : public UndoStepBounds {
 protected:
  // Files that come and go, and leave nothing but records.
  Status ComeAndGo(int times) {
    for (int i = 0; i < times; ++i) {
      if (Status made = ops().Create("tmp"); !made.ok()) return made;
      if (Status gone = ops().Unlink("tmp"); !gone.ok()) return gone;
    }
    return Ok();
  }
};

TEST_F(UndoJournalBounds, AStepWithMoreRecordsThanAllStepsMayKeepGoesNoFurther) {
  options_.limits.max_copied_bytes = 1 << 20;
  options_.on_oversize = OversizePolicy::kRefuse;
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
    EXPECT_CODE(ComeAndGo(20'000), Code::kLimit);
    EXPECT_CODE(ops().Chmod("medium.txt", 0600), Code::kLimit);
  });
  EXPECT_LT(DiskUsage(workspace().store()), 2u << 20);
  RollBack();
  if (workspace().Exists("tmp")) ADD_FAILURE() << "the last one was on record";
  ExpectTree(before);
}

TEST_F(UndoJournalBounds, UnderPolicyUnprotectedAStepGoesOnAndIsRecorded) {
  options_.limits.max_copied_bytes = 1 << 20;
  options_.on_oversize = OversizePolicy::kUnprotected;
  StartWith(test::SmallTree);
  InStep([&] { EXPECT_OK(ComeAndGo(8'000)); });
  EXPECT_EQ(Steps().back().protection, Protection::kFull);
}

TEST_F(UndoJournalBounds, TheOldestStepsAreEvictedUntilTheRecordsFit) {
  options_.limits.max_copied_bytes = 400 << 10;
  StartWith(test::SmallTree);
  for (int i = 0; i < 6; ++i) {
    InStep([&] {
      EXPECT_OK(ops().Overwrite("small.txt", fmt::format("{}", i)));
      EXPECT_OK(ComeAndGo(500));
    });
  }
  EXPECT_LT(Steps().size(), 5u);
  EXPECT_GT(Steps().size(), 1u);
  EXPECT_LT(DiskUsage(workspace().store()), 1u << 20);
}

// --- Steps without changes.

class UndoEmptySteps : public UndoTest {
 protected:
  void SetUp() override {
    options_.limits.max_steps = 5;
    StartWith(test::SmallTree);
  }
  // As a session records a command.
  StepId Look() {
    const auto id = log().AnnounceStep({.label = "ls"}, IfUnchanged::kRecorded);
    EXPECT_OK(id);
    EXPECT_OK(log().CloseStep());
    return id.ok() ? *id : StepId{0};
  }
  StepId Change(const std::string& content) {
    return InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", content)); });
  }
  std::vector<int64_t> Ids() {
    std::vector<int64_t> ids;
    for (const StepInfo& step : Steps()) ids.push_back(step.id.value);
    return ids;
  }
};

TEST_F(UndoEmptySteps, CommandsThatOnlyLookPushOutNoChange) {
  const TreeSnapshot before = Snapshot();
  Change("1");
  for (int i = 0; i < 20; ++i) Look();
  EXPECT_OK(log().Rollback(1));
  ExpectTree(before);
}

TEST_F(UndoEmptySteps, TheOldestOfThemGoWhereverTheyStand) {
  Look();                              // 1
  Change("1");                         // 2
  Look();                              // 3
  Look();                              // 4
  Change("2");                         // 5
  for (int i = 0; i < 4; ++i) Look();  // 6 to 9
  EXPECT_THAT(Ids(), ElementsAre(2, 4, 5, 6, 7, 8, 9));
  OpenLog();
  EXPECT_THAT(Ids(), ElementsAre(2, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(Look(), StepId{10}) << "no number is given twice";
  EXPECT_THAT(Ids(), ElementsAre(2, 5, 6, 7, 8, 9, 10));
  RollBack(2);
  RedoSteps(2);
  EXPECT_EQ(Content("small.txt"), "2");
}

TEST_F(UndoEmptySteps, ChangesAreEvictedByChanges) {
  for (int i = 0; i < 7; ++i) {
    Change(fmt::format("content {}", i));
    Look();
  }
  EXPECT_THAT(Ids(), ElementsAre(5, 6, 7, 8, 9, 10, 11, 12, 13, 14));
  RollBack(5);
  EXPECT_EQ(Content("small.txt"), "content 1");
}

TEST_F(UndoEmptySteps, WhatWasEditedBehindOneStaysABarrierForTheStepBefore) {
  const StepId change = Change("1");
  Look();
  workspace().WriteFile("small.txt", "by a person");
  const std::vector<std::string> told = {"small.txt"};
  EXPECT_OK(log().NoteExternalModification(told));
  for (int i = 0; i < 6; ++i) Look();
  ASSERT_THAT(Barriers(), SizeIs(1));
  EXPECT_EQ(Barriers()[0].after, change);
}

// They leave the times of a folder as they were only if they are taken back, so older steps need them.
TEST_F(UndoEmptySteps, AStepThatLeftEverythingAsItWasIsNoneOfThem) {
  const TreeSnapshot before = Snapshot();
  Change("1");
  for (int i = 0; i < 5; ++i) {
    InStep([&] {
      EXPECT_OK(ops().WriteNew("src/lock", ""));
      EXPECT_OK(ops().Unlink("src/lock"));
    });
  }
  for (int i = 0; i < 9; ++i) Look();
  EXPECT_THAT(Steps(), SizeIs(11));
  RollBack(1);
  ExpectTree(before);
}

TEST_F(UndoStepBounds, UI_19_TheOldestStepsAreEvictedUntilTheCopiedBytesFit) {
  constexpr uint64_t kBudget = 100 * 1024;
  options_.limits.max_copied_bytes = kBudget;
  options_.compression = Compression::kOff;
  WriteManySmallFiles(60);
  OpenLog();
  std::vector<StepId> evicted;
  for (int i = 0; i < 6; ++i) {
    ASSERT_OK(log().OpenStep({}));
    ChangeManySmallFiles(i * 10, i * 10 + 10);
    Result<std::vector<StepId>> gone = log().CloseStep();
    ASSERT_OK(gone);
    evicted.insert(evicted.end(), gone->begin(), gone->end());
  }
  EXPECT_THAT(evicted, ElementsAre(StepId{1}, StepId{2}, StepId{3}, StepId{4}));
  uint64_t copied = 0;
  for (const StepInfo& step : Steps()) copied += step.copied_bytes;
  EXPECT_LE(copied, kBudget);
  EXPECT_GE(copied, 80u * 1024) << "no more is evicted than needed";
  RollBack(2);
  for (int i = 40; i < 60; ++i) {
    EXPECT_EQ(Content(fmt::format("many/{:03}.txt", i)), Noise(4096, i)) << i;
  }
}

TEST_F(UndoStepBounds, UI_19_TheOldestStepsAreEvictedUntilTheRetainedBytesFit) {
  options_.limits.max_retained_bytes = 2'500'000;
  for (int i = 1; i <= 4; ++i) workspace().WriteFile(fmt::format("{}.bin", i), Noise(1'000'000, i));
  OpenLog();
  std::vector<StepId> evicted;
  for (int i = 1; i <= 4; ++i) {
    ASSERT_OK(log().OpenStep({}));
    EXPECT_OK(ops().Unlink(fmt::format("{}.bin", i)));
    Result<std::vector<StepId>> gone = log().CloseStep();
    ASSERT_OK(gone);
    evicted.insert(evicted.end(), gone->begin(), gone->end());
  }
  EXPECT_THAT(evicted, ElementsAre(StepId{1}, StepId{2}));
  RollBack(2);
  EXPECT_FALSE(workspace().Exists("2.bin"));
  for (const int i : {3, 4})
    EXPECT_TRUE(Content(fmt::format("{}.bin", i)) == Noise(1'000'000, i)) << i;
}

TEST_F(UndoStepBounds, UI_20_AWriteOutsideAnyStepBelongsToAnAmbientOne) {
  FakeClock clock;
  options_.clock = &clock;
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  EXPECT_OK(ops().Overwrite("small.txt", "from a daemon"));
  EXPECT_OK(ops().WriteNew("src/late.txt", "late"));
  EXPECT_EQ(log().open_step(), StepId{-1});
  clock.Advance(6s);
  EXPECT_THAT(log().Tick(),
              ::testing::Truly([](const auto& closed) { return closed.ok() && *closed; }));
  ASSERT_THAT(Steps(), SizeIs(1));
  EXPECT_EQ(Steps()[0].id, StepId{-1});
  EXPECT_EQ(Steps()[0].kind, StepKind::kAmbient);
  EXPECT_EQ(Steps()[0].label, "");
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoStepBounds, UI_20_OpeningAStepClosesTheAmbientOne) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  EXPECT_OK(ops().Overwrite("small.txt", "ambient"));
  const TreeSnapshot after_ambient = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "command")); });
  EXPECT_EQ(step, StepId{1});
  ASSERT_THAT(Steps(), SizeIs(2));
  EXPECT_EQ(Steps()[0].id, StepId{-1});
  RollBack();
  ExpectTree(after_ambient);
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoStepBounds, UI_21_AnAmbientStepClosesAfterInactivityAndTheNextWriteOpensANewOne) {
  FakeClock clock;
  options_.clock = &clock;
  StartWith(test::SmallTree);
  const auto ticked = [&] {
    Result<bool> closed = log().Tick();
    EXPECT_OK(closed);
    return closed.ok() && *closed;
  };
  EXPECT_FALSE(ticked()) << "nothing is open";
  EXPECT_OK(ops().Overwrite("small.txt", "one"));
  clock.Advance(4s);
  EXPECT_FALSE(ticked());
  EXPECT_OK(ops().Overwrite("medium.txt", "two"));
  clock.Advance(4s);
  EXPECT_FALSE(ticked()) << "a write starts the waiting anew";
  clock.Advance(2s);
  EXPECT_TRUE(ticked());
  EXPECT_EQ(log().open_step(), std::nullopt);
  EXPECT_OK(ops().Overwrite("small.txt", "three"));
  EXPECT_EQ(log().open_step(), StepId{-2});
  clock.Advance(6s);
  EXPECT_TRUE(ticked());
  ASSERT_THAT(Steps(), SizeIs(2));
  EXPECT_EQ(Steps()[1].id, StepId{-2});
  RollBack();
  EXPECT_EQ(Content("small.txt"), "one");
}

TEST_F(UndoStepBounds, UI_21_AnAmbientStepThatNeverRestsIsClosedAfterAMinute) {
  FakeClock clock;
  options_.clock = &clock;
  StartWith(test::SmallTree);
  int closed_after = -1;
  for (int i = 0; i < 30 && closed_after < 0; ++i) {
    EXPECT_OK(ops().Overwrite("small.txt", fmt::format("{}", i)));
    clock.Advance(3s);
    Result<bool> closed = log().Tick();
    ASSERT_OK(closed);
    if (*closed) closed_after = (i + 1) * 3;
  }
  EXPECT_EQ(closed_after, 60);
}

TEST_F(UndoStepBounds, UI_21_TickLeavesACommandsStepOpen) {
  FakeClock clock;
  options_.clock = &clock;
  StartWith(test::SmallTree);
  ASSERT_OK(log().OpenStep({.label = "sleep 1h"}));
  EXPECT_OK(ops().Overwrite("small.txt", "x"));
  clock.Advance(1h);
  Result<bool> closed = log().Tick();
  ASSERT_OK(closed);
  EXPECT_FALSE(*closed);
  EXPECT_EQ(log().open_step(), StepId{1});
}

TEST_F(UndoStepBounds, UI_22_RollbackInOneProjectLeavesTheOtherAlone) {
  StartWith(test::SmallTree);
  const TempWorkspace other;
  test::SmallTree(other.project());
  Result<std::unique_ptr<UndoLog>> other_log =
      UndoLog::Open({.project = other.project(), .store = other.store()});
  ASSERT_OK(other_log);
  ProjectOps other_ops(**other_log, other.project());

  const TreeSnapshot before = Snapshot();
  ASSERT_OK((*other_log)->OpenStep({}));
  InStep([&] {
    EXPECT_OK(ops().RemoveTree("src"));
    EXPECT_OK(other_ops.RemoveTree("src"));
  });
  EXPECT_OK((*other_log)->CloseStep());
  const TreeSnapshot other_after = other.Snapshot();
  RollBack();
  ExpectTree(before);
  EXPECT_TREE_EQ(other_after, other.Snapshot());
  EXPECT_OK((*other_log)->Rollback(1));
  EXPECT_TREE_EQ(before, other.Snapshot());
}

TEST_F(UndoStepBounds, RollbackIsRefusedWhileAStepIsOpen) {
  StartWith(test::SmallTree);
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  ASSERT_OK(log().OpenStep({}));
  EXPECT_CODE(log().Rollback(1), Code::kBusy);
  EXPECT_CODE(log().Redo(1), Code::kBusy);
  EXPECT_CODE(log().OpenStep({}), Code::kBusy);
  EXPECT_OK(log().CloseStep());
  EXPECT_OK(log().Rollback(1));
}

TEST_F(UndoStepBounds, AbortTakesTheOpenStepBackAndForgetsIt) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().RemoveTree("src"));
  EXPECT_OK(ops().Overwrite("large.bin", "gone"));
  EXPECT_OK(log().AbortStep());
  ExpectTree(before);
  EXPECT_EQ(log().open_step(), std::nullopt);
  EXPECT_THAT(Steps(), IsEmpty());
}

TEST_F(UndoStepBounds, StepsWithoutChangesAreShownButDoNotCount) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "x")); }, "echo x > small.txt");
  InStep([] {}, "ls");
  InStep([] {}, "pwd");
  EXPECT_THAT(Steps(), SizeIs(3));
  const RewindReport report = RollBack(1);
  ExpectTree(before);
  EXPECT_THAT(Steps(), IsEmpty());
  EXPECT_THAT(report.steps, ElementsAre(StepId{3}, StepId{2}, StepId{1}));
}

}  // namespace
}  // namespace sandglass::undo
