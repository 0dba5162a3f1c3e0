// Questions before destructive operations (SG-01..06, SG-09), and what a denial leaves behind: nothing.
#include "undo/safeguard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class UndoSafeguard : public UndoTest {
 protected:
  static std::string FileName(int i) { return fmt::format("level1/file{:02}.txt", i); }
  int FilesLeft() const {
    int left = 0;
    for (int i = 0; i < 25; ++i) left += workspace().Exists(FileName(i)) ? 1 : 0;
    return left;
  }
  // Deletes files until one is refused; the number that went.
  int DeleteFiles(int count) {
    for (int i = 0; i < count; ++i) {
      last_ = ops().Unlink(FileName(i));
      if (!last_.ok()) return i;
    }
    return count;
  }
  // After a denial there is no step, no change and no trace in the history.
  void ExpectStepUndoneAndGone(const TreeSnapshot& before) {
    EXPECT_EQ(log().open_step(), std::nullopt);
    EXPECT_THAT(Steps(), IsEmpty());
    ExpectTree(before);
  }

  Status last_;
};

TEST_F(UndoSafeguard, SG_01_ReachingTheDeleteCountAsksBeforeAnythingMoreHappens) {
  int left_when_asked = -1;
  ScriptedHandler handler(Decision::kDeny,
                          [&](const SafeguardQuestion&) { left_when_asked = FilesLeft(); });
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 5;
  StartWith(test::DeepTree);
  ASSERT_OK(log().OpenStep({}));
  EXPECT_EQ(DeleteFiles(20), 4);
  EXPECT_EQ(left_when_asked, 21) << "the fifth deletion had not happened";

  ASSERT_THAT(handler.questions(), SizeIs(1));
  const SafeguardQuestion question = handler.questions()[0];
  EXPECT_EQ(question.kind, SafeguardKind::kDeleteCount);
  EXPECT_EQ(question.step, StepId{1});
  EXPECT_EQ(question.amount, 5u);
  EXPECT_THAT(question.sample_paths,
              ElementsAre(FileName(0), FileName(1), FileName(2), FileName(3), FileName(4)));
}

TEST_F(UndoSafeguard, SG_01_TheSampleIsShortAndEndsWithTheOneThatTriggered) {
  ScriptedHandler handler(Decision::kAllow);
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 24;
  StartWith(test::DeepTree);
  InStep([&] { EXPECT_EQ(DeleteFiles(25), 25); });
  ASSERT_THAT(handler.questions(), SizeIs(1));
  EXPECT_LE(handler.questions()[0].sample_paths.size(), 20u);
  EXPECT_EQ(handler.questions()[0].sample_paths.back(), FileName(23));
}

TEST_F(UndoSafeguard, SG_02_AllowedTheStepGoesOnAndIsUndoable) {
  ScriptedHandler handler(Decision::kAllow);
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 5;
  StartWith(test::DeepTree);
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().RemoveTree("level1")); });
  EXPECT_FALSE(workspace().Exists("level1"));
  EXPECT_THAT(handler.questions(), SizeIs(1)) << "one yes counts for the whole step";
  RollBack();
  ExpectTree(before);

  InStep([&] { EXPECT_OK(ops().RemoveTree("level1")); });
  EXPECT_THAT(handler.questions(), SizeIs(2)) << "but not for the next";
}

TEST_F(UndoSafeguard, SG_03_DeniedTheWholeStepIsRolledBack) {
  ScriptedHandler handler(Decision::kDeny);
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 10;
  StartWith(test::DeepTree);
  const TreeSnapshot before = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().WriteNew("created.txt", "earlier in the step"));
  EXPECT_OK(ops().Overwrite("level1/level2/file00.txt", "earlier in the step"));
  EXPECT_OK(ops().Rename("level1/level2/level3", "moved"));
  EXPECT_EQ(DeleteFiles(25), 9);
  EXPECT_CODE(last_, Code::kDenied);
  ExpectStepUndoneAndGone(before);
  EXPECT_OK(log().OpenStep({.label = "the next command"}));
}

// A file where the rollback needs a folder keeps it from happening.
TEST_F(UndoSafeguard, SG_03_ADeniedStepThatCannotBeRolledBackGoesNoFurther) {
  // Something that is in the way, and in the way of being set aside.
  const std::string obstacles[] = {workspace().store() + "/wal/rewind",
                                   workspace().store() + "/damaged"};
  ScriptedHandler handler(Decision::kDeny, [&](const SafeguardQuestion&) {
    for (const std::string& obstacle : obstacles)
      EXPECT_EQ(::mknod(obstacle.c_str(), S_IFREG | 0600, 0), 0) << obstacle;
  });
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 3;
  StartWith(test::DeepTree);
  const TreeSnapshot before = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_EQ(DeleteFiles(10), 2);
  EXPECT_CODE(last_, Code::kDenied);
  EXPECT_THAT(last_.error().message(), ::testing::HasSubstr("could not be rolled back"));

  EXPECT_CODE(ops().WriteNew("new.txt", "x"), Code::kDenied);
  EXPECT_FALSE(workspace().Exists("new.txt"));
  EXPECT_CODE(ops().Unlink(FileName(5)), Code::kDenied);
  EXPECT_CODE(log().CloseStep(), Code::kDenied);
  EXPECT_THAT(Steps(), IsEmpty());
  EXPECT_THAT(handler.questions(), SizeIs(1));

  for (const std::string& obstacle : obstacles) ASSERT_EQ(::unlink(obstacle.c_str()), 0);
  EXPECT_CODE(ops().WriteNew("new.txt", "x"), Code::kDenied) << "it was meant for that step";
  ExpectStepUndoneAndGone(before);
  EXPECT_OK(log().OpenStep({.label = "the next command"}));
}

TEST_F(UndoSafeguard, SG_04_AnAnswerThatComesTooLateIsADenial) {
  ScriptedHandler handler(Decision::kAllow,
                          [](const SafeguardQuestion&) { std::this_thread::sleep_for(400ms); });
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 3;
  options_.safeguards.timeout = 50ms;
  StartWith(test::DeepTree);
  const TreeSnapshot before = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_EQ(DeleteFiles(10), 2);
  EXPECT_CODE(last_, Code::kDenied);
  ExpectStepUndoneAndGone(before);
}

TEST_F(UndoSafeguard, SG_04_AQuestionThatNobodyAnswersIsDeniedAfterTheTimeout) {
  WaitingSafeguard handler(100ms, [](const SafeguardQuestion&) {});
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 3;
  StartWith(test::DeepTree);
  const TreeSnapshot before = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  const auto asked = std::chrono::steady_clock::now();
  EXPECT_EQ(DeleteFiles(10), 2);
  EXPECT_GE(std::chrono::steady_clock::now() - asked, 100ms);
  EXPECT_CODE(last_, Code::kDenied);
  ExpectStepUndoneAndGone(before);
}

TEST_F(UndoSafeguard, SG_04_AnAnswerFromAnotherThreadLetsTheOperationGoOn) {
  std::vector<std::thread> people;
  WaitingSafeguard* asked = nullptr;
  WaitingSafeguard handler(20s, [&](const SafeguardQuestion& question) {
    people.emplace_back([&asked, id = question.id] {
      std::this_thread::sleep_for(20ms);
      EXPECT_FALSE(asked->Answer(id + 1000, Decision::kDeny)) << "nobody asked that";
      EXPECT_TRUE(asked->Answer(id, Decision::kAllow));
    });
  });
  asked = &handler;
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 3;
  StartWith(test::DeepTree);
  ExpectUndone([&] { EXPECT_EQ(DeleteFiles(10), 10); });
  for (std::thread& person : people) person.join();
  EXPECT_THAT(people, SizeIs(1));
}

TEST_F(UndoSafeguard, SG_04_WithNobodyToAskTheAnswerIsNo) {
  options_.safeguards.delete_count = 3;
  StartWith(test::DeepTree);
  const TreeSnapshot before = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_EQ(DeleteFiles(10), 2);
  EXPECT_CODE(last_, Code::kDenied);
  ExpectStepUndoneAndGone(before);
}

TEST_F(UndoSafeguard, SG_05_OverwritingALargeFileAsks) {
  bool intact_when_asked = false;
  ScriptedHandler handler(Decision::kDeny, [&](const SafeguardQuestion&) {
    intact_when_asked = Content("large.bin") == std::string(1'000'000, '\xAB');
  });
  options_.safeguard_handler = &handler;
  options_.safeguards.overwrite_bytes = 100'000;
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().WriteAt("medium.txt", 0, "small enough", WriteVisibility::kUnseen));
  EXPECT_THAT(handler.questions(), IsEmpty());
  EXPECT_CODE(ops().WriteAt("large.bin", 0, "x", WriteVisibility::kUnseen), Code::kDenied);
  EXPECT_TRUE(intact_when_asked);
  ASSERT_THAT(handler.kinds(), ElementsAre(SafeguardKind::kOverwriteLarge));
  EXPECT_EQ(handler.questions()[0].amount, 1'000'000u);
  EXPECT_THAT(handler.questions()[0].sample_paths, ElementsAre("large.bin"));
  ExpectStepUndoneAndGone(before);
}

TEST_F(UndoSafeguard, SG_05_TruncatingALargeFileAsks) {
  ScriptedHandler handler(Decision::kDeny);
  options_.safeguard_handler = &handler;
  options_.safeguards.truncate_bytes = 100'000;
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  const std::function<Status()> truncations[] = {
      [&] { return ops().Overwrite("large.bin", "x"); },
      [&] { return ops().TruncateTo("large.bin", 10); },
  };
  for (const auto& truncate : truncations) {
    ASSERT_OK(log().OpenStep({}));
    EXPECT_OK(ops().Overwrite("medium.txt", "small enough"));
    EXPECT_CODE(truncate(), Code::kDenied);
    ExpectStepUndoneAndGone(before);
  }
  EXPECT_THAT(handler.kinds(),
              ElementsAre(SafeguardKind::kTruncateLarge, SafeguardKind::kTruncateLarge));
}

TEST_F(UndoSafeguard, SG_05_MakingALargeFileLongerAsksNothing) {
  ScriptedHandler handler(Decision::kDeny);
  options_.safeguard_handler = &handler;
  options_.safeguards.overwrite_bytes = 100'000;
  options_.safeguards.truncate_bytes = 100'000;
  StartWith(test::SmallTree);
  InStep([&] { EXPECT_OK(ops().TruncateTo("large.bin", 2'000'000)); });
  EXPECT_THAT(handler.questions(), IsEmpty());
}

TEST_F(UndoSafeguard, SG_05_AFileBornInTheStepMayBeOverwritten) {
  ScriptedHandler handler(Decision::kDeny);
  options_.safeguard_handler = &handler;
  options_.safeguards.overwrite_bytes = 1000;
  options_.safeguards.truncate_bytes = 1000;
  StartWith(test::SmallTree);
  InStep([&] {
    EXPECT_OK(ops().WriteNew("big.txt", std::string(5000, 'b')));
    EXPECT_OK(ops().WriteAt("big.txt", 0, "again", WriteVisibility::kUnseen));
    EXPECT_OK(ops().Overwrite("big.txt", "and again"));
  });
  EXPECT_THAT(handler.questions(), IsEmpty());
}

TEST_F(UndoSafeguard, SG_06_RenamingOverAnExistingFileAsks) {
  std::string target_when_asked;
  ScriptedHandler handler(Decision::kDeny,
                          [&](const SafeguardQuestion&) { target_when_asked = Content("b.txt"); });
  options_.safeguard_handler = &handler;
  options_.safeguards.rename_over_count = 1;
  StartWith(test::RenameTree);
  const TreeSnapshot before = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Rename("a.txt", "free.txt"));
  EXPECT_THAT(handler.questions(), IsEmpty()) << "a free name is no loss";
  EXPECT_CODE(ops().Rename("free.txt", "b.txt"), Code::kDenied);
  EXPECT_EQ(target_when_asked, "b holds something else");
  ASSERT_THAT(handler.kinds(), ElementsAre(SafeguardKind::kRenameOver));
  EXPECT_THAT(handler.questions()[0].sample_paths, ElementsAre("b.txt"));
  ExpectStepUndoneAndGone(before);
}

TEST_F(UndoSafeguard, SG_06_AnExchangeLosesNothingAndIsNotAsked) {
  ScriptedHandler handler(Decision::kDeny);
  options_.safeguard_handler = &handler;
  options_.safeguards.rename_over_count = 1;
  StartWith(test::RenameTree);
  InStep([&] { EXPECT_OK(ops().Rename("a.txt", "b.txt", RenameMode::kExchange)); });
  EXPECT_THAT(handler.questions(), IsEmpty());
}

TEST_F(UndoSafeguard, SG_09_TheQuestionComesBeforeTheNthDeletionNotAfter) {
  for (const uint32_t threshold : {1u, 2u, 7u}) {
    SCOPED_TRACE(threshold);
    CloseLog();
    TempWorkspace scratch;
    bool exists_when_asked = false;
    int left = -1;
    ScriptedHandler handler(Decision::kDeny, [&](const SafeguardQuestion& question) {
      exists_when_asked = scratch.Exists(question.sample_paths.back());
      left = 0;
      for (int i = 0; i < 25; ++i) left += scratch.Exists(FileName(i)) ? 1 : 0;
    });
    UndoOptions options;
    options.safeguard_handler = &handler;
    options.safeguards.delete_count = threshold;
    test::DeepTree(scratch.project());
    const TreeSnapshot before = scratch.Snapshot();
    Result<std::unique_ptr<UndoLog>> opened =
        UndoLog::Open({.project = scratch.project(), .store = scratch.store()}, options);
    ASSERT_OK(opened);
    ProjectOps scratch_ops(**opened, scratch.project());
    ASSERT_OK((*opened)->OpenStep({}));
    for (uint32_t i = 0; i + 1 < threshold; ++i)
      EXPECT_OK(scratch_ops.Unlink(FileName(static_cast<int>(i))));
    EXPECT_THAT(handler.questions(), IsEmpty());
    EXPECT_CODE(scratch_ops.Unlink(FileName(static_cast<int>(threshold) - 1)), Code::kDenied);
    EXPECT_TRUE(exists_when_asked);
    EXPECT_EQ(left, 25 - static_cast<int>(threshold) + 1);
    EXPECT_TREE_EQ(before, scratch.Snapshot());
  }
}

// Beyond the founding list.

TEST_F(UndoSafeguard, DeletingWhatTheStepMadeDoesNotCount) {
  ScriptedHandler handler(Decision::kDeny);
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 3;
  StartWith(test::DeepTree);
  InStep([&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_OK(ops().WriteNew("temporary", "x"));
      EXPECT_OK(ops().Unlink("temporary"));
    }
    EXPECT_OK(ops().Mkdir("scratch"));
    EXPECT_OK(ops().Rmdir("scratch"));
    EXPECT_EQ(DeleteFiles(2), 2);
  });
  EXPECT_THAT(handler.questions(), IsEmpty());
}

TEST_F(UndoSafeguard, EveryKindIsOffByDefault) {
  StartWith(test::DeepTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().Rename(FileName(1), FileName(2)));
    EXPECT_OK(ops().RemoveTree("level1"));
  });
}

TEST_F(UndoSafeguard, CountsStartAnewWithEachStep) {
  ScriptedHandler handler(Decision::kDeny);
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 4;
  StartWith(test::DeepTree);
  for (int step = 0; step < 4; ++step) {
    InStep([&] {
      for (int i = 0; i < 3; ++i) EXPECT_OK(ops().Unlink(FileName(step * 3 + i)));
    });
  }
  EXPECT_THAT(handler.questions(), IsEmpty());
}

TEST_F(UndoSafeguard, AnAmbientStepIsGuardedToo) {
  ScriptedHandler handler(Decision::kDeny);
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 3;
  StartWith(test::DeepTree);
  const TreeSnapshot before = Snapshot();
  EXPECT_EQ(DeleteFiles(10), 2);
  EXPECT_CODE(last_, Code::kDenied);
  ExpectTree(before);
}

class UndoLimitSafeguard : public UndoSafeguard {
 protected:
  // 4 KiB each, changed in place, so that every file system has to copy.
  void StartWithManyFiles(SafeguardHandler* handler) {
    options_.safeguard_handler = handler;
    options_.limits.max_step_copied_bytes = 20 * 4096;
    options_.on_oversize = OversizePolicy::kAsk;
    for (int i = 0; i < 30; ++i) workspace().WriteFile(fmt::format("{:02}.txt", i), Noise(4096, i));
    OpenLog();
  }
  Status Change(int i) {
    return ops().WriteAt(fmt::format("{:02}.txt", i), 0, "changed", WriteVisibility::kUnseen);
  }
};

TEST_F(UndoLimitSafeguard, AnOversizedStepAsksAndWithANoItIsRolledBack) {
  ScriptedHandler handler(Decision::kDeny);
  StartWithManyFiles(&handler);
  ASSERT_OK(log().OpenStep({}));
  int changed = 0;
  while (changed < 30 && (last_ = Change(changed)).ok()) ++changed;
  EXPECT_CODE(last_, Code::kDenied);
  EXPECT_THAT(handler.kinds(), ElementsAre(SafeguardKind::kUndoLimit));
  EXPECT_GE(changed, 15);
  EXPECT_LT(changed, 30);
  EXPECT_EQ(log().open_step(), std::nullopt);
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(Content(fmt::format("{:02}.txt", i)), Noise(4096, i));
  }
}

TEST_F(UndoLimitSafeguard, AnOversizedStepMayGoOnWithAYes) {
  ScriptedHandler handler(Decision::kAllow);
  StartWithManyFiles(&handler);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    for (int i = 0; i < 30; ++i) EXPECT_OK(Change(i));
  });
  EXPECT_THAT(handler.kinds(), ElementsAre(SafeguardKind::kUndoLimit));
  if (InfoOf(step).protection == Protection::kFull) {
    RollBack();
    ExpectTree(before);
  } else {
    EXPECT_CODE(log().Rollback(1), Code::kUnprotected);
  }
}

TEST_F(UndoLimitSafeguard, WithNobodyToAskAnOversizedStepIsRefused) {
  StartWithManyFiles(nullptr);
  ASSERT_OK(log().OpenStep({}));
  int changed = 0;
  while (changed < 30 && (last_ = Change(changed)).ok()) ++changed;
  EXPECT_CODE(last_, Code::kLimit);
  EXPECT_LT(changed, 30);
}

TEST_F(UndoSafeguard, WhoWaitsForEverGetsTheAnswer) {
  WaitingSafeguard* asked = nullptr;
  WaitingSafeguard handler(std::chrono::milliseconds::max(), [&](const SafeguardQuestion& q) {
    asked->Answer(q.id, Decision::kAllow);
  });
  asked = &handler;
  options_.safeguard_handler = &handler;
  options_.safeguards.delete_count = 1;
  options_.safeguards.timeout = std::chrono::milliseconds::max();
  StartWith(test::DeepTree);
  ASSERT_OK(log().OpenStep({}));
  EXPECT_EQ(DeleteFiles(3), 3);
  EXPECT_OK(log().CloseStep());
}

}  // namespace
}  // namespace sandglass::undo
