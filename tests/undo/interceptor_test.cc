// What each intercepted operation leaves behind when its step is rolled back (UI-01..24).
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "base/beneath.h"
#include "base/io.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr WriteVisibility kBothVisibilities[] = {WriteVisibility::kUnseen,
                                                 WriteVisibility::kAnnounced};

class UndoInterceptor : public UndoTest {
 protected:
  int64_t MtimeOf(std::string_view path) const {
    const struct stat st = StatOf(path);
    return st.st_mtim.tv_sec * 1'000'000'000LL + st.st_mtim.tv_nsec;
  }
  ino_t InodeOf(std::string_view path) const { return StatOf(path).st_ino; }

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

TEST_F(UndoInterceptor, UI_01_WritingTheSameFileThreeTimesKeepsOnePreimage) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    for (const char* text : {"first", "second", "third"}) {
      EXPECT_OK(ops().WriteAt("medium.txt", 0, text, WriteVisibility::kUnseen));
    }
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified medium.txt"));
  EXPECT_LE(InfoOf(step).copied_bytes, 4096u);
  EXPECT_EQ(Content("medium.txt").substr(0, 6), "thirdd");
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_01_TheFirstTouchCountsWhateverTheOperation) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().Chmod("small.txt", 0600));
    EXPECT_OK(ops().Append("small.txt", " and more", WriteVisibility::kAnnounced));
    EXPECT_OK(ops().TruncateTo("small.txt", 3));
    EXPECT_OK(ops().Overwrite("small.txt", "entirely new"));
    EXPECT_OK(ops().Rename("small.txt", "src/moved.txt"));
    EXPECT_OK(ops().WriteAt("src/moved.txt", 4, "XX", WriteVisibility::kUnseen));
    EXPECT_OK(ops().Unlink("src/moved.txt"));
  });
}

TEST_F(UndoInterceptor, UI_02_RollbackRemovesACreatedFileAndRestoresTheParentsMtime) {
  StartWith(test::SmallTree);
  const int64_t parent_mtime = MtimeOf("src");
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().WriteNew("src/new.txt", "content")); });
  EXPECT_EQ(Content("src/new.txt"), "content");
  EXPECT_NE(MtimeOf("src"), parent_mtime);
  EXPECT_THAT(ChangeLines(step), ElementsAre("created src/new.txt"));
  EXPECT_EQ(InfoOf(step).copied_bytes, 0u) << "what was born in the step needs no content";
  RollBack();
  EXPECT_FALSE(workspace().Exists("src/new.txt"));
  EXPECT_EQ(MtimeOf("src"), parent_mtime);
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_03_RollbackRemovesCreatedDirectoriesDeepestFirst) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().Mkdir("new"));
    EXPECT_OK(ops().Mkdir("new/deep"));
    EXPECT_OK(ops().Mkdir("new/deep/deeper", 0700));
    EXPECT_OK(ops().WriteNew("new/deep/deeper/file.txt", "x"));
    EXPECT_OK(ops().WriteNew("new/file.txt", "y"));
    EXPECT_OK(ops().Mkdir("src/components/inner"));
  });
  EXPECT_FALSE(workspace().Exists("new"));
}

TEST_F(UndoInterceptor, UI_04_RollbackRestoresADeletedFileWithItsMetadata) {
  const TreeBuilder tree(workspace().project());
  tree.File("tool", "#!/bin/sh", 04751);
  // Where there are no user xattrs the rest still counts; UI-12 reports their absence.
  tree.Xattr("tool", "user.note", "kept");
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().Unlink("tool")); });
  EXPECT_FALSE(workspace().Exists("tool"));
  EXPECT_THAT(ChangeLines(step), ElementsAre("deleted tool"));
  RollBack();
  EXPECT_EQ(Content("tool"), "#!/bin/sh");
  EXPECT_EQ(StatOf("tool").st_mode & 07777, 04751u);
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_05_RollbackRestoresADeletedTree) {
  StartWith(test::DeepTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().RemoveTree("level1")); });
  EXPECT_FALSE(workspace().Exists("level1"));
  EXPECT_EQ(InfoOf(step).counts.deleted, 130u);
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_05_ATreeDeletedAndMadeAgainInOneStepComesBackAsItWas) {
  StartWith(test::DeepTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().RemoveTree("level1"));
    EXPECT_OK(ops().Mkdir("level1", 0700));
    EXPECT_OK(ops().Mkdir("level1/level2"));
    EXPECT_OK(ops().WriteNew("level1/file00.txt", "another file of the same name"));
  });
}

TEST_F(UndoInterceptor, UI_06_RollbackTakesARenameBack) {
  StartWith(test::RenameTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().Rename("a.txt", "c.txt")); });
  EXPECT_THAT(ChangeLines(step), ElementsAre("renamed a.txt -> c.txt"));
  RollBack();
  EXPECT_FALSE(workspace().Exists("c.txt"));
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_07_RollbackOfARenameOverRestoresBothFiles) {
  StartWith(test::RenameTree);
  const ino_t inode_a = InodeOf("a.txt");
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().Rename("a.txt", "b.txt")); });
  EXPECT_EQ(Content("b.txt"), "content of a");
  EXPECT_FALSE(workspace().Exists("a.txt"));
  RollBack();
  EXPECT_EQ(InodeOf("a.txt"), inode_a) << "a rename is taken back by a rename";
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_07_ADirectoryRenamedOverAnEmptyOneComesBack) {
  StartWith(test::SmallTree);
  workspace().MakeDir("empty");
  test::AgeTree(workspace().project());
  ExpectUndone([&] { EXPECT_OK(ops().Rename("src", "empty")); });
}

TEST_F(UndoInterceptor, UI_08_RollbackOfARenamedDirectoryRestoresAllBelow) {
  StartWith(test::DeepTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().Rename("level1/level2", "moved")); });
  EXPECT_TRUE(workspace().Exists("moved/level3/level4/file00.txt"));
  EXPECT_THAT(ChangeLines(step), ElementsAre("renamed level1/level2 -> moved"));
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_08_ChangesInsideARenamedDirectoryAreTakenBackToo) {
  StartWith(test::DeepTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().Overwrite("level1/level2/file01.txt", "before the rename"));
    EXPECT_OK(ops().Rename("level1/level2", "moved"));
    EXPECT_OK(ops().Overwrite("moved/file00.txt", "after the rename"));
    EXPECT_OK(ops().Unlink("moved/file01.txt"));
    EXPECT_OK(ops().WriteNew("moved/new.txt", "new"));
    EXPECT_OK(ops().Rename("moved/level3", "level1/level3"));
    EXPECT_OK(ops().RemoveTree("level1/level3/level4"));
  });
}

TEST_F(UndoInterceptor, UI_09_OpeningWithTruncationCapturesTheOldContentFirst) {
  StartWith(test::SmallTree);
  for (const char* path : {"small.txt", "medium.txt", "large.bin"}) {
    SCOPED_TRACE(path);
    const TreeSnapshot before = Snapshot();
    InStep([&] {
      Result<Fd> file = ops().OpenFile(path, O_WRONLY | O_TRUNC, WriteVisibility::kUnseen);
      ASSERT_OK(file);
      EXPECT_EQ(StatOf(path).st_size, 0);
    });
    RollBack();
    ExpectTree(before);
  }
}

// creat() on a name that exists is a truncation; only a new inode is a creation.
TEST_F(UndoInterceptor, UI_09_CreatOfAnExistingFileIsAModificationAndOfANewOneACreation) {
  StartWith(test::SmallTree);
  constexpr int kCreat = O_WRONLY | O_CREAT | O_TRUNC;
  const StepId step = InStep([&] {
    EXPECT_OK(ops().OpenFile("small.txt", kCreat, WriteVisibility::kUnseen));
    EXPECT_OK(ops().OpenFile("fresh.txt", kCreat, WriteVisibility::kUnseen));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("created fresh.txt", "modified small.txt"));
  RollBack();
  EXPECT_EQ(Content("small.txt"), "hello world");
  EXPECT_FALSE(workspace().Exists("fresh.txt"));
}

TEST_F(UndoInterceptor, UI_10_TruncatingKeepsTheFullOldContent) {
  StartWith(test::SmallTree);
  for (const char* path : {"small.txt", "medium.txt", "large.bin"}) {
    for (const uint64_t size : {0, 5, 2'000'000}) {
      SCOPED_TRACE(fmt::format("{} to {}", path, size));
      ExpectUndone([&] { EXPECT_OK(ops().TruncateTo(path, size)); });
    }
  }
}

TEST_F(UndoInterceptor, UI_11_RollbackRestoresTheExecutableBit) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Chmod("small.txt", 0755));
    EXPECT_OK(ops().Chmod("run.sh", 0644));
  });
  EXPECT_EQ(InfoOf(step).copied_bytes, 0u) << "metadata alone needs no content";
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified run.sh", "modified small.txt"));
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoInterceptor, UI_12_RollbackTakesASetXattrBack) {
  if (!test::XattrTree(workspace().project())) {
    GTEST_SKIP() << "user xattrs: not supported by " << FileSystemName(workspace().project());
  }
  OpenLog();
  ExpectUndone([&] {
    EXPECT_OK(ops().SetXattr("plain.txt", "user.new", "added"));
    EXPECT_OK(ops().SetXattr("tagged.txt", "user.test", "changed"));
    EXPECT_OK(ops().SetXattr("dir", "user.more", "on a directory"));
  });
}

TEST_F(UndoInterceptor, UI_13_RollbackRestoresARemovedXattr) {
  if (!test::XattrTree(workspace().project())) {
    GTEST_SKIP() << "user xattrs: not supported by " << FileSystemName(workspace().project());
  }
  OpenLog();
  ExpectUndone([&] {
    EXPECT_OK(ops().RemoveXattr("tagged.txt", "user.binary"));
    EXPECT_OK(ops().RemoveXattr("dir", "user.test"));
  });
}

TEST_F(UndoInterceptor, UI_14_RollbackRestoresTheSizeAfterFallocate) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().Fallocate("small.txt", 0, 100'000));
    EXPECT_OK(ops().Fallocate("large.bin", 900'000, 300'000));
  });
  EXPECT_EQ(StatOf("small.txt").st_size, 11);
}

TEST_F(UndoInterceptor, UI_14_RollbackFillsAPunchedHole) {
  StartWith(test::SmallTree);
  ExpectUndone([&] { EXPECT_OK(ops().PunchHole("large.bin", 65'536, 131'072)); });
}

TEST_F(UndoInterceptor, UI_15_RollbackRestoresTheTargetOfACopiedRange) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().CopyRange("large.bin", 0, "medium.txt", 100, 200'000));
    EXPECT_OK(ops().CopyRange("medium.txt", 0, "large.bin", 500'000, 50));
    EXPECT_OK(ops().CopyRange("large.bin", 0, "large.bin", 700'000, 100'000));
  });
}

TEST_F(UndoInterceptor, UI_16_RollingBackOneOfTwoStepsLeavesTheFirst) {
  StartWith(test::SmallTree);
  const TreeSnapshot original = Snapshot();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "after step 1")); });
  const TreeSnapshot after_first = Snapshot();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "after step 2")); });
  RollBack(1);
  EXPECT_EQ(Content("small.txt"), "after step 1");
  ExpectTree(after_first);
  EXPECT_THAT(Steps(), SizeIs(1)) << "rollback pops";
  RollBack(1);
  ExpectTree(original);
  EXPECT_THAT(Steps(), IsEmpty());
}

TEST_F(UndoInterceptor, UI_16_TwoStepsRolledBackTogetherGiveTheOriginal) {
  StartWith(test::SmallTree);
  const TreeSnapshot original = Snapshot();
  const StepId first = InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "1"));
    EXPECT_OK(ops().Rename("src", "lib"));
  });
  const StepId second = InStep([&] {
    EXPECT_OK(ops().Rename("small.txt", "lib/small.txt"));
    EXPECT_OK(ops().RemoveTree("lib/components"));
  });
  const RewindReport report = RollBack(2);
  EXPECT_THAT(report.steps, ElementsAre(second, first));
  ExpectTree(original);
}

TEST_F(UndoInterceptor, UI_17_AStepOverTheLimitIsMarkedUnprotected) {
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

TEST_F(UndoInterceptor, UI_17_StepsAfterAnUnprotectedOneCanBeRolledBack) {
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

TEST_F(UndoInterceptor, UI_17_AnUnprotectedChangeIsShownAndStandsInTheWay) {
  options_.limits.max_step_copied_bytes = 1024;
  options_.on_oversize = OversizePolicy::kUnprotected;
  WriteManySmallFiles(2);
  OpenLog();
  const StepId step = InStep([&] { ChangeManySmallFiles(0, 1); });
  EXPECT_THAT(ChangeLines(step), ElementsAre("modified many/000.txt"));
  EXPECT_CODE(log().Rollback(1), Code::kUnprotected);
}

TEST_F(UndoInterceptor, UI_17_ARefusedOversizeOperationChangesNothingAndTheStepStaysUndoable) {
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

TEST_F(UndoInterceptor, UI_18_TheOldestStepIsEvictedWhenThereAreTooMany) {
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

TEST_F(UndoInterceptor, UI_18_TheLimitHoldsAfterReopening) {
  options_.limits.max_steps = 2;
  StartWith(test::SmallTree);
  for (int i = 0; i < 2; ++i)
    InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", fmt::format("{}", i))); });
  OpenLog();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "after reopening")); });
  EXPECT_THAT(Steps(), SizeIs(2));
  EXPECT_FALSE(::access(StepFolder(workspace(), StepId{1}).c_str(), F_OK) == 0);
}

TEST_F(UndoInterceptor, UI_19_TheOldestStepsAreEvictedUntilTheCopiedBytesFit) {
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

TEST_F(UndoInterceptor, UI_19_TheOldestStepsAreEvictedUntilTheRetainedBytesFit) {
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

TEST_F(UndoInterceptor, UI_20_AWriteOutsideAnyStepBelongsToAnAmbientOne) {
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

TEST_F(UndoInterceptor, UI_20_OpeningAStepClosesTheAmbientOne) {
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

TEST_F(UndoInterceptor, UI_21_AnAmbientStepClosesAfterInactivityAndTheNextWriteOpensANewOne) {
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

TEST_F(UndoInterceptor, UI_21_AnAmbientStepThatNeverRestsIsClosedAfterAMinute) {
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

TEST_F(UndoInterceptor, UI_21_TickLeavesACommandsStepOpen) {
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

TEST_F(UndoInterceptor, UI_22_RollbackInOneProjectLeavesTheOtherAlone) {
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

// The founding plan captured by path and only asked that hard links do no harm. Objects have identities here, so they are
// exact: both names change together and come back together.
TEST_F(UndoInterceptor, UI_23_HardLinksAreExact) {
  test::SmallTree(workspace().project());
  const TreeBuilder tree(workspace().project());
  tree.Link("medium.txt", "src/second.txt");
  tree.Link("medium.txt", "third.txt");
  test::AgeTree(workspace().project());
  OpenLog();
  ExpectUndone([&] {
    EXPECT_OK(ops().WriteAt("src/second.txt", 10, "through a link", WriteVisibility::kUnseen));
  });
  ExpectUndone([&] { EXPECT_OK(ops().Overwrite("medium.txt", "truncated for all names")); });
  ExpectUndone([&] { EXPECT_OK(ops().Unlink("medium.txt")); });
  ExpectUndone([&] {
    EXPECT_OK(ops().Unlink("medium.txt"));
    EXPECT_OK(ops().WriteAt("third.txt", 0, "after one name went", WriteVisibility::kAnnounced));
    EXPECT_OK(ops().Unlink("src/second.txt"));
    EXPECT_OK(ops().Chmod("third.txt", 0600));
    EXPECT_OK(ops().Unlink("third.txt"));
  });
  ExpectUndone([&] {
    EXPECT_OK(ops().Link("small.txt", "src/linked.txt"));
    EXPECT_OK(ops().Overwrite("src/linked.txt", "both"));
    EXPECT_OK(ops().Rename("small.txt", "third.txt"));
  });
  EXPECT_EQ(InodeOf("medium.txt"), InodeOf("src/second.txt"));
  EXPECT_EQ(InodeOf("medium.txt"), InodeOf("third.txt"));
}

TEST_F(UndoInterceptor, UI_24_RollbackRestoresASymlinksTarget) {
  StartWith(test::SymlinkTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().Unlink("to_file"));
    EXPECT_OK(ops().Symlink("dir/inside.txt", "to_file"));
    EXPECT_OK(ops().Unlink("to_dir"));
    EXPECT_OK(ops().Symlink("target.txt", "new_link"));
    EXPECT_OK(ops().Rename("new_link", "dir/new_link"));
  });
  ExpectUndone([&] {
    EXPECT_OK(ops().Symlink("elsewhere", "temporary"));
    EXPECT_OK(ops().Rename("temporary", "to_dir"));
    EXPECT_OK(ops().SetMtime("to_dir", 1'600'000'000'123'456'789));
  });
}

// Beyond the founding list: every other operation and every order that defeats path-keyed undo.

TEST_F(UndoInterceptor, ExchangeIsTakenBack) {
  StartWith(test::SmallTree);
  ExpectUndone([&] { EXPECT_OK(ops().Rename("small.txt", "src/main.rs", RenameMode::kExchange)); });
  ExpectUndone([&] {
    EXPECT_OK(ops().Rename("src", "large.bin", RenameMode::kExchange));
    EXPECT_OK(ops().Overwrite("large.bin/main.rs", "in the exchanged directory"));
    EXPECT_OK(ops().Unlink("src"));
  });
}

TEST_F(UndoInterceptor, NoReplaceOverAnExistingNameFailsAndIsNothing) {
  StartWith(test::RenameTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    const Status renamed = ops().Rename("a.txt", "b.txt", RenameMode::kNoReplace);
    ASSERT_FALSE(renamed.ok());
    EXPECT_EQ(renamed.error().sys_errno(), EEXIST);
    EXPECT_OK(ops().Rename("a.txt", "c.txt", RenameMode::kNoReplace));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("renamed a.txt -> c.txt"));
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoInterceptor, ARenameBetweenTwoNamesOfOneObjectIsNothing) {
  test::RenameTree(workspace().project());
  TreeBuilder(workspace().project()).Link("a.txt", "alias.txt");
  test::AgeTree(workspace().project());
  OpenLog();
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().Rename("a.txt", "alias.txt")); });
  EXPECT_TRUE(workspace().Exists("a.txt")) << "the kernel does nothing here";
  EXPECT_THAT(ChangeLines(step), IsEmpty());
  ExpectTree(before);
}

TEST_F(UndoInterceptor, AnOpenFileThatWasUnlinkedMayBeWrittenFurtherWithoutHarmToThePreimage) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    for (const char* path : {"small.txt", "large.bin"}) {
      Result<Fd> file = ops().OpenFile(path, O_RDWR, WriteVisibility::kUnseen);
      ASSERT_OK(file);
      EXPECT_EQ(::pwrite(file->get(), "X", 1, 0), 1);
      EXPECT_OK(ops().Unlink(path));
      EXPECT_EQ(::pwrite(file->get(), "YYY", 3, 5), 3);
    }
  });
}

TEST_F(UndoInterceptor, AnUnlinkedOpenFileCannotBeLinkedBack) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    Result<Fd> file = ops().OpenFile("small.txt", O_RDONLY, WriteVisibility::kUnseen);
    ASSERT_OK(file);
    EXPECT_OK(ops().Unlink("small.txt"));
    EXPECT_CODE(ops().LinkOpenFile(file->get(), "back.txt"), Code::kNotFound);
    EXPECT_FALSE(workspace().Exists("back.txt"));
  });
}

TEST_F(UndoInterceptor, AnOpenFileWithANameLeftCanBeLinkedAgain) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    Result<Fd> file = ops().OpenFile("small.txt", O_RDONLY, WriteVisibility::kUnseen);
    ASSERT_OK(file);
    EXPECT_OK(ops().Rename("small.txt", "renamed.txt"));
    EXPECT_OK(ops().LinkOpenFile(file->get(), "src/again.txt"));
    EXPECT_OK(ops().Unlink("renamed.txt"));
    EXPECT_OK(ops().Append("src/again.txt", "!", WriteVisibility::kUnseen));
  });
}

TEST_F(UndoInterceptor, WritesOfEveryKindAreTakenBack) {
  StartWith(test::SmallTree);
  for (const WriteVisibility visibility : kBothVisibilities) {
    SCOPED_TRACE(visibility == WriteVisibility::kUnseen ? "unseen" : "announced");
    for (const char* path : {"empty.txt", "small.txt", "large.bin"}) {
      SCOPED_TRACE(path);
      ExpectUndone([&] { EXPECT_OK(ops().WriteAt(path, 3, "abc", visibility)); });
      ExpectUndone(
          [&] { EXPECT_OK(ops().WriteAt(path, 1'200'000, "beyond the end", visibility)); });
      ExpectUndone([&] { EXPECT_OK(ops().Append(path, "appended", visibility)); });
    }
  }
  ExpectUndone([&] { EXPECT_OK(ops().MmapWrite("large.bin", 500'000, "through a mapping")); });
  ExpectUndone([&] { EXPECT_OK(ops().MmapWrite("small.txt", 0, "HELLO")); });
}

TEST_F(UndoInterceptor, DeletingAndRecreatingOneNameManyTimesKeepsTheFirst) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    for (int i = 0; i < 50; ++i) {
      EXPECT_OK(ops().Unlink("small.txt"));
      EXPECT_OK(ops().WriteNew("small.txt", fmt::format("version {}", i)));
    }
  });
  EXPECT_EQ(Content("small.txt"), "hello world");
}

TEST_F(UndoInterceptor, AnInodeNumberUsedAgainDoesNotConfuseIdentities) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_OK(ops().WriteNew("temporary", "born and gone"));
      EXPECT_OK(ops().Unlink("temporary"));
      EXPECT_OK(ops().WriteNew(fmt::format("kept{}", i), "kept"));
      EXPECT_OK(ops().Chmod(fmt::format("kept{}", i), 0600));
    }
    EXPECT_OK(ops().Unlink("medium.txt"));
    EXPECT_OK(ops().WriteNew("other", "may have its inode"));
  });
}

TEST_F(UndoInterceptor, WhatAStepMadeAndRemovedItselfIsNoChange) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().Unlink("small.txt")); });
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Mkdir("scratch"));
    EXPECT_OK(ops().WriteNew("scratch/a", "a"));
    EXPECT_OK(ops().RemoveTree("scratch"));
  });
  EXPECT_THAT(ChangeLines(step), IsEmpty());
  EXPECT_EQ(InfoOf(step).counts.total(), 0u);
  RollBack(1);
  ExpectTree(before);
}

TEST_F(UndoInterceptor, AFailedOperationLeavesNoChange) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    const Status removed = ops().Rmdir("src");
    ASSERT_FALSE(removed.ok());
    EXPECT_EQ(removed.error().sys_errno(), ENOTEMPTY);
    EXPECT_FALSE(ops().Create("small.txt").ok());
    EXPECT_FALSE(ops().Mkdir("src").ok());
    EXPECT_FALSE(ops().Unlink("missing.txt").ok());
    EXPECT_FALSE(ops().Rename("src", "src/components/inside_itself").ok());
  });
  EXPECT_THAT(ChangeLines(step), IsEmpty());
  ExpectTree(before);
}

TEST_F(UndoInterceptor, ACancelledTicketIsNoChangeAndHoldsNothing) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    Result<Ticket> cancelled =
        log().interceptor().BeginCreate({{ops().root_fd(), ""}, "never"}, NodeType::kFile);
    ASSERT_OK(cancelled);
    cancelled->Cancel();
    {
      Result<Ticket> dropped =
          log().interceptor().BeginCreate({{ops().root_fd(), ""}, "never"}, NodeType::kFile);
      ASSERT_OK(dropped);
    }
    EXPECT_OK(ops().WriteNew("real", "the name is free again"));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("created real"));
  RollBack();
  ExpectTree(before);
}

// A bridge that dies between the operation and its commit: the journal judges by what is on disk.
TEST_F(UndoInterceptor, WhatAPersonMakesUnderACancelledNameIsNotTakenAway) {
  StartWith(test::SmallTree);
  InStep([&] {
    log()
        .interceptor()
        .BeginCreate({{ops().root_fd(), ""}, "later.txt"}, NodeType::kFile)
        ->Cancel();
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
  });
  workspace().WriteFile("later.txt", "a person's");
  RollBack();
  EXPECT_EQ(Content("later.txt"), "a person's");
}

TEST_F(UndoInterceptor, ACancelledRemovalIsNeitherAChangeNorAConflict) {
  StartWith(test::SmallTree);
  const StepId step = InStep([&] {
    log().interceptor().BeginRemove({{ops().root_fd(), ""}, "small.txt"})->Cancel();
    EXPECT_OK(ops().WriteNew("made.txt", "x"));
  });
  EXPECT_THAT(ChangeLines(step), ElementsAre("created made.txt"));
  workspace().WriteFile("other.txt", "a person's");
  RollBack();
  EXPECT_EQ(Content("other.txt"), "a person's");
}

// The target belongs to someone else, so it cannot be linked (protected_hardlinks) and is moved aside instead.
TEST_F(UndoInterceptor, AFailedRenameLeavesTheTargetThatWasMovedAside) {
  workspace().WriteFile("from.txt", "from");
  GiveToOrdinaryUser(workspace());
  workspace().WriteFile("to.txt", "to");
  RunForked(
      [&] {
        OpenLog();
        InStep([&] {
          const NameRef from{{ops().root_fd(), ""}, "from.txt"},
              to{{ops().root_fd(), ""}, "to.txt"};
          Result<Ticket> failed = log().interceptor().BeginRename(from, to, RenameMode::kReplace);
          ASSERT_OK(failed);
          EXPECT_OK(failed->Commit(Outcome::Failed(EIO)));
          EXPECT_EQ(Content("to.txt"), "to");
          log().interceptor().BeginRename(from, to, RenameMode::kReplace)->Cancel();
          EXPECT_EQ(Content("to.txt"), "to");
        });
      },
      Who::kOrdinaryUser);
}

TEST_F(UndoInterceptor, AFailedTruncationLeavesTheContent) {
  const std::string content = Noise(2 << 20);
  workspace().WriteFile("big.bin", content);
  OpenLog();
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    for (const bool cancel : {false, true}) {
      const Fd file(::open((workspace().project() + "/big.bin").c_str(), O_PATH | O_CLOEXEC));
      Result<Ticket> ticket = log().interceptor().BeginOpenForWrite(
          {file.get(), "big.bin"}, Truncate::kYes, WriteVisibility::kUnseen);
      ASSERT_OK(ticket);
      if (cancel) {
        ticket->Cancel();
      } else {
        EXPECT_OK(ticket->Commit(Outcome::Failed(EACCES)));
      }
      EXPECT_EQ(Content("big.bin"), content);
    }
  });
  ExpectTree(before);
  EXPECT_THAT(ChangeLines(step), IsEmpty());
}

TEST_F(UndoInterceptor, AnOperationWhoseTicketWasDroppedIsStillTakenBack) {
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    {
      Result<Ticket> create =
          log().interceptor().BeginCreate({{ops().root_fd(), ""}, "made"}, NodeType::kFile);
      ASSERT_OK(create);
      workspace().WriteFile("made", "without a commit");
    }
    Result<Ticket> remove = log().interceptor().BeginRemove({{ops().root_fd(), ""}, "small.txt"});
    ASSERT_OK(remove);
    if (!remove->performed()) EXPECT_EQ(::unlinkat(ops().root_fd(), "small.txt", 0), 0);
  });
}

TEST_F(UndoInterceptor, RollbackIsRefusedWhileAStepIsOpen) {
  StartWith(test::SmallTree);
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  ASSERT_OK(log().OpenStep({}));
  EXPECT_CODE(log().Rollback(1), Code::kBusy);
  EXPECT_CODE(log().Redo(1), Code::kBusy);
  EXPECT_CODE(log().OpenStep({}), Code::kBusy);
  EXPECT_OK(log().CloseStep());
  EXPECT_OK(log().Rollback(1));
}

TEST_F(UndoInterceptor, AbortTakesTheOpenStepBackAndForgetsIt) {
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

TEST_F(UndoInterceptor, StepsWithoutChangesAreShownButDoNotCount) {
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

// A file below `depth` folders, opened by a name at the top that is gone by now: only a search finds the one that is left.
Fd OpenByALostName(const TempWorkspace& workspace, int depth) {
  workspace.WriteFile("top", "original");
  Fd dir(::open(workspace.project().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Fd root(::openat(dir.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < depth; ++i) {
    EXPECT_EQ(::mkdirat(dir.get(), "d", 0755), 0);
    dir = Fd(::openat(dir.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  Fd file(::openat(root.get(), "top", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(::linkat(root.get(), "top", dir.get(), "deep", 0), 0);
  EXPECT_EQ(::unlinkat(root.get(), "top", 0), 0);
  return file;
}

TEST_F(UndoInterceptor, AFileBelowSevenHundredFoldersIsFoundWithoutItsPath) {
  const Fd file = OpenByALostName(workspace(), 700);
  OpenLog();
  ASSERT_OK(log().OpenStep({}));
  {
    auto ticket = log().interceptor().BeginContent({file.get()}, ContentChange::Whole());
    ASSERT_OK(ticket);
    ASSERT_EQ(::pwrite(file.get(), "CHANGED!", 8, 0), 8);
    EXPECT_OK(ticket->Commit(Outcome::Done()));
    auto chmod = log().interceptor().BeginMetadata({file.get()});
    ASSERT_OK(chmod);
    ASSERT_EQ(::fchmod(file.get(), 0600), 0);
    EXPECT_OK(chmod->Commit(Outcome::Done()));
  }
  struct stat before{};
  EXPECT_OK(log().CloseStep());
  RollBack();
  ASSERT_EQ(::fstat(file.get(), &before), 0);
  EXPECT_EQ(before.st_mode & 0777, 0644u);
  char text[9] = {};
  EXPECT_EQ(::pread(file.get(), text, 8, 0), 8);
  EXPECT_STREQ(text, "original");
}

TEST_F(UndoInterceptor, WhatMayHaveANameInAFolderThatCannotBeSearchedIsRefused) {
  GiveToOrdinaryUser(workspace());
  RunForked(
      [&] {
        const Fd file = OpenByALostName(workspace(), 2);
        OpenLog();
        ASSERT_EQ(::chmod(workspace().Path("d").c_str(), 0000), 0);
        ASSERT_OK(log().OpenStep({}));
        EXPECT_CODE(log().interceptor().BeginContent({file.get()}, ContentChange::Whole()),
                    Code::kUnsupported);
        EXPECT_CODE(log().interceptor().BeginMetadata({file.get()}), Code::kUnsupported);
        EXPECT_CODE(log().interceptor().BeginLink({file.get()}, {{ops().root_fd(), ""}, "again"}),
                    Code::kUnsupported);
        ASSERT_EQ(::chmod(workspace().Path("d").c_str(), 0755), 0);
        EXPECT_OK(log().interceptor().BeginContent({file.get()}, ContentChange::Whole()));
        CloseLog();
      },
      Who::kOrdinaryUser);
}

}  // namespace
}  // namespace sandglass::undo
