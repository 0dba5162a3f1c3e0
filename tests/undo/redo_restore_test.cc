// Going back and forth: redo, restore of single paths, dry runs, and what people are shown.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/io.h"
#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using test::Must;
using test::MustCall;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class UndoRedo : public UndoTest {
 protected:
  void SetUp() override { StartWith(test::SmallTree); }

  void ChangeMuch(int round) {
    EXPECT_OK(ops().Overwrite("small.txt", fmt::format("round {}", round)));
    EXPECT_OK(ops().WriteAt("large.bin", 100'000u * static_cast<uint64_t>(round), "changed",
                            WriteVisibility::kAnnounced));
    EXPECT_OK(ops().WriteNew(fmt::format("new{}.txt", round), "new"));
    EXPECT_OK(ops().Mkdir(fmt::format("dir{}", round)));
    EXPECT_OK(ops().Rename(round % 2 == 0 ? "lib" : "src", round % 2 == 0 ? "src" : "lib"));
  }
};

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
  options_.limits.max_copied_bytes = 100;
  workspace().WriteFile("a.bin", "1");
  OpenLog();
  InStep([&] { EXPECT_OK(ops().Overwrite("a.bin", "2")); });
  InStep([&] { EXPECT_OK(ops().Overwrite("a.bin", Noise(1000))); });
  EXPECT_THAT(RollBack().warnings, IsEmpty());
  EXPECT_EQ(log().redo_depth(), 1u);
  EXPECT_THAT(Steps(), SizeIs(1));
  RedoSteps();
  EXPECT_EQ(Content("a.bin"), Noise(1000));
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

// Restore.

class UndoRestore : public UndoRedo {
 protected:
  Result<RewindReport> Restore(StepId step, std::vector<std::string> paths,
                               Force force = Force::kNo) {
    return log().Restore(step, paths, force);
  }
};

TEST_F(UndoRestore, ASingleFileComesBackAndTheRestOfTheStepStays) {
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
    EXPECT_OK(ops().Overwrite("medium.txt", "changed"));
    EXPECT_OK(ops().Unlink("run.sh"));
  });
  EXPECT_OK(Restore(step, {"small.txt"}));
  EXPECT_EQ(Content("small.txt"), "hello world");
  EXPECT_EQ(Content("medium.txt"), "changed");
  EXPECT_OK(Restore(step, {"run.sh"}));
  EXPECT_EQ(StatOf("run.sh").st_mode & 07777, 0755u);
  const TreeSnapshot now = Snapshot();
  EXPECT_EQ(now.Find("small.txt")->mtime, before.Find("small.txt")->mtime);
  EXPECT_EQ(now.Find("run.sh")->mtime, before.Find("run.sh")->mtime);
}

TEST_F(UndoRestore, ARestoreIsAStepOfItsOwnAndCanBeTakenBack) {
  const TreeSnapshot original = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "changed")); });
  const TreeSnapshot changed = Snapshot();
  EXPECT_OK(Restore(step, {"small.txt"}));
  ASSERT_THAT(Steps(), SizeIs(2));
  EXPECT_EQ(Steps()[1].kind, StepKind::kApi);
  EXPECT_THAT(ChangeLines(Steps()[1].id), ElementsAre("modified small.txt"));
  RollBack();
  ExpectTree(changed);
  RollBack();
  ExpectTree(original);
}

TEST_F(UndoRestore, AFolderComesBackWithAllBelow) {
  const StepId step = InStep([&] {
    EXPECT_OK(ops().RemoveTree("src"));
    EXPECT_OK(ops().Unlink("small.txt"));
  });
  EXPECT_OK(Restore(step, {"src"}));
  EXPECT_EQ(Content("src/main.rs"), "fn main() {}");
  EXPECT_EQ(Content("src/components/app.rs"), "pub struct App;");
  EXPECT_FALSE(workspace().Exists("small.txt"));
}

TEST_F(UndoRestore, AFileComesBackEvenWhenItsFolderIsGone) {
  const StepId step = InStep([&] { EXPECT_OK(ops().RemoveTree("src")); });
  EXPECT_OK(Restore(step, {"src/components/app.rs"}));
  EXPECT_EQ(Content("src/components/app.rs"), "pub struct App;");
  EXPECT_FALSE(workspace().Exists("src/main.rs"));
}

TEST_F(UndoRestore, AnOlderStepsStateCanBeFetchedOverNewerOnes) {
  const StepId first = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  const StepId second = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "2")); });
  InStep([&] { EXPECT_OK(ops().Overwrite("medium.txt", "3")); });
  EXPECT_OK(Restore(second, {"small.txt"}));
  EXPECT_EQ(Content("small.txt"), "1");
  EXPECT_OK(Restore(first, {"small.txt"}));
  EXPECT_EQ(Content("small.txt"), "hello world");
  EXPECT_EQ(Content("medium.txt"), "3");
}

TEST_F(UndoRestore, APathThatDidNotExistBeforeTheStepIsRemoved) {
  const StepId step = InStep([&] {
    EXPECT_OK(ops().WriteNew("new.txt", "new"));
    EXPECT_OK(ops().WriteNew("other.txt", "new"));
  });
  EXPECT_OK(Restore(step, {"new.txt"}));
  EXPECT_FALSE(workspace().Exists("new.txt"));
  EXPECT_TRUE(workspace().Exists("other.txt"));
  RollBack();
  EXPECT_EQ(Content("new.txt"), "new");
}

TEST_F(UndoRestore, AnEditInTheWayIsAConflictAndForceKeepsItUndoable) {
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "changed")); });
  workspace().WriteFile("small.txt", "a person's");
  EXPECT_CODE(Restore(step, {"small.txt"}), Code::kConflict);
  EXPECT_EQ(Content("small.txt"), "a person's");
  EXPECT_OK(Restore(step, {"small.txt"}, Force::kYes));
  EXPECT_EQ(Content("small.txt"), "hello world");
  RollBack();
  EXPECT_EQ(Content("small.txt"), "a person's")
      << "a restore is a step: even a forced one loses nothing";
}

TEST_F(UndoRestore, WhatTheOpenAmbientStepDidIsNobodysEdit) {
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "changed")); });
  EXPECT_OK(ops().WriteAt("small.txt", 0, "ambient", WriteVisibility::kUnseen));
  ASSERT_TRUE(log().open_step().has_value());
  EXPECT_OK(Restore(step, {"small.txt"}));
  EXPECT_EQ(Content("small.txt"), "hello world");
  RollBack();
  EXPECT_EQ(Content("small.txt"), "ambient");
}

TEST_F(UndoRestore, WhatTheOpenAmbientStepMovedIsFollowedByForceToo) {
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "changed")); });
  EXPECT_OK(ops().Rename("small.txt", "moved.txt"));
  EXPECT_OK(ops().WriteNew("small.txt", "another one"));
  EXPECT_OK(Restore(step, {"small.txt"}, Force::kYes));
  EXPECT_EQ(Content("small.txt"), "hello world");
  EXPECT_EQ(Content("moved.txt"), "changed");
}

TEST_F(UndoRestore, ADenialIsReportedAsOneAndTakesTheRestoreBack) {
  options_.safeguards.overwrite_bytes = 1;
  options_.safeguards.truncate_bytes = 1;
  ScriptedHandler allow(Decision::kAllow), deny(Decision::kDeny);
  options_.safeguard_handler = &allow;
  OpenLog();
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Unlink("medium.txt"));
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
  });
  options_.safeguard_handler = &deny;
  OpenLog();
  const TreeSnapshot after = Snapshot();
  EXPECT_CODE(Restore(step, {"medium.txt", "small.txt"}), Code::kDenied);
  EXPECT_THAT(deny.kinds(), SizeIs(1));
  EXPECT_FALSE(log().open_step().has_value());
  ExpectTree(after);
}

// Writes a file at the first edit that it hears of, as a world would that goes on meanwhile.
class WritingObserver final : public UndoObserver {
 public:
  void OnExternalModification(const Barrier&) override {
    if (ops != nullptr) EXPECT_OK(std::exchange(ops, nullptr)->WriteNew("meanwhile.txt", "kept"));
  }
  ProjectOps* ops = nullptr;
};

TEST_F(UndoRestore, ADenialLeavesTheAmbientStepAloneThatOpenedMeanwhile) {
  ScriptedHandler deny(Decision::kDeny);
  WritingObserver observer;
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Unlink("medium.txt"));
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
    EXPECT_OK(ops().Unlink("run.sh"));
    EXPECT_OK(ops().WriteNew("new.txt", "new"));
  });
  options_.safeguards.truncate_bytes = 1;
  options_.safeguard_handler = &deny;
  options_.observer = &observer;
  OpenLog();
  workspace().WriteFile("new.txt", "a person's");
  observer.ops = &ops();
  // The edit is noticed when the denied step is taken back; the observer hears of it right after that.
  EXPECT_CODE(Restore(step, {"medium.txt", "new.txt", "small.txt"}, Force::kYes), Code::kDenied);
  EXPECT_EQ(Content("meanwhile.txt"), "kept");
  EXPECT_TRUE(log().open_step().has_value());
  EXPECT_EQ(Content("new.txt"), "a person's");
}

TEST_F(UndoRestore, FilesThatExchangedTheirNamesComeBackBoth) {
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Rename("small.txt", "medium.txt", RenameMode::kExchange));
    EXPECT_OK(ops().WriteAt("medium.txt", 0, "J", WriteVisibility::kAnnounced));
    EXPECT_OK(ops().Overwrite("small.txt", "was medium"));
  });
  const TreeSnapshot after = Snapshot();
  EXPECT_OK(Restore(step, {"medium.txt", "small.txt"}));
  EXPECT_EQ(Content("small.txt"), "hello world");
  EXPECT_EQ(Content("medium.txt"), std::string(4096, 'x'));
  EXPECT_THAT(NamesIn(StepFolder(workspace(), Steps().back().id)), Not(Contains("aside")));
  RollBack();
  ExpectTree(after);
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoRestore, AFolderAndWhereItWentAreRestoredTogether) {
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Rename("src", "lib"));
    EXPECT_OK(ops().Overwrite("lib/main.rs", "changed"));
  });
  EXPECT_OK(Restore(step, {"src", "lib"}));
  EXPECT_EQ(Content("src/main.rs"), "fn main() {}");
  EXPECT_EQ(Content("src/components/app.rs"), "pub struct App;");
  EXPECT_FALSE(workspace().Exists("lib"));
}

TEST_F(UndoRestore, ASparseFileComesBackSparse) {
  constexpr uint64_t kSize = 64 << 20;
  const std::string path = workspace().Path("small.txt");
  ASSERT_EQ(::truncate(path.c_str(), kSize), 0);
  CloseLog();
  OpenLog();
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "changed")); });
  EXPECT_OK(Restore(step, {"small.txt"}));
  EXPECT_EQ(FileSize(path), kSize);
  EXPECT_TRUE(Content("small.txt").starts_with("hello world"));
  EXPECT_LT(static_cast<uint64_t>(StatOf("small.txt").st_blocks) * 512, kSize / 16);
}

TEST_F(UndoRestore, ASocketIsRecordedAsASocket) {
  EXPECT_OK(ops().Mknod("s", NodeType::kSocket, 0600));
  const StepId step = InStep([&] { EXPECT_OK(ops().Unlink("s")); });
  EXPECT_OK(Restore(step, {"s"}));
  EXPECT_TRUE(S_ISSOCK(StatOf("s").st_mode));
  const StoreReader reader = Must(StoreReader::Open(paths()));
  EXPECT_THAT(Must(reader.Show(Steps().back().id)), HasSubstr("\"socket\""));
}

// A sanitizer keeps what was freed for a while, and its own notes.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kMemoryIsOurs = false;
#else
constexpr bool kMemoryIsOurs = true;
#endif

// The most memory that this process held meanwhile, beyond what it held before.
uint64_t PeakSince(const std::function<void()>& body) {
  const auto read = [](std::string_view what) -> uint64_t {
    const Fd proc(::open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::string status = Must(ReadFileAt(proc.get(), "status", 64 << 10));
    return std::strtoull(status.c_str() + status.find(what) + what.size(), nullptr, 10) << 10;
  };
  const Fd refs(::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC));
  if (::write(refs.get(), "5", 1) != 1) return 0;
  const uint64_t before = read("VmRSS:");
  body();
  const uint64_t peak = read("VmHWM:");
  return peak > before ? peak - before : 0;
}

TEST_F(UndoRestore, ContentsAreHeldOneAtATime) {
  constexpr size_t kBytes = 8 << 20;
  std::vector<std::string> names;
  for (int i = 0; i < 16; ++i) {
    names.push_back(fmt::format("large{}", i));
    EXPECT_OK(ops().WriteNew(names.back(), Noise(kBytes, static_cast<uint64_t>(i) + 1)));
  }
  const StepId step = InStep([&] {
    for (const std::string& name : names) EXPECT_OK(ops().Unlink(name));
  });
  const uint64_t peak = PeakSince([&] { EXPECT_OK(Restore(step, names)); });
  if (kMemoryIsOurs) EXPECT_LT(peak, 6 * kBytes);
  EXPECT_EQ(Content("large7"), Noise(kBytes, 8));
}

TEST_F(UndoRestore, AFolderThatCameFromElsewhereGoesWithAllThatCameAlong) {
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Rename("src", "lib"));
    EXPECT_OK(ops().WriteNew("lib/components/new.rs", "step"));
  });
  EXPECT_OK(Restore(step, {"lib"}));
  EXPECT_FALSE(workspace().Exists("lib"));
  RollBack();
  EXPECT_EQ(Content("lib/components/app.rs"), "pub struct App;");
}

TEST_F(UndoRestore, AFolderComesBackUnderANameThatItReachedAgainOneLevelDeeper) {
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Mkdir("outer"));
    EXPECT_OK(ops().Rename("src", "outer/components"));
  });
  InStep([&] { EXPECT_OK(ops().Rename("outer", "src")); });
  EXPECT_OK(Restore(step, {"src"}));
  EXPECT_THAT(NamesIn(workspace().Path("src")), ElementsAre("components", "main.rs"));
  EXPECT_THAT(NamesIn(workspace().Path("src/components")), ElementsAre("app.rs"));
  EXPECT_EQ(Content("src/main.rs"), "fn main() {}");
  EXPECT_EQ(Content("src/components/app.rs"), "pub struct App;");
}

TEST_F(UndoRestore, WhatWasMadeInAFolderThatIsGoneIsNoObstacle) {
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().WriteNew("src/components/new.rs", "step")); });
  InStep([&] { EXPECT_OK(ops().RemoveTree("src/components")); });
  EXPECT_OK(Restore(step, {"src"}));
  ExpectTree(before);
}

TEST_F(UndoRestore, AFileComesBackAsItWasAlthoughItChangedLaterUnderAnotherName) {
  InStep([&] { EXPECT_OK(ops().Link("small.txt", "other.txt")); });
  const StepId step = InStep([&] { EXPECT_OK(ops().Unlink("small.txt")); });
  InStep([&] { EXPECT_OK(ops().Overwrite("other.txt", "changed later")); });
  EXPECT_OK(Restore(step, {"small.txt"}));
  EXPECT_EQ(Content("small.txt"), "hello world");
}

TEST_F(UndoRestore, WhatHasTheNameNowKeepsItsContentUnderItsOtherNames) {
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Unlink("medium.txt"));
    EXPECT_OK(ops().Link("small.txt", "medium.txt"));
  });
  EXPECT_OK(Restore(step, {"medium.txt"}));
  EXPECT_EQ(Content("medium.txt"), std::string(4096, 'x'));
  EXPECT_EQ(Content("small.txt"), "hello world");
}

TEST_F(UndoRestore, ASymlinkInheritsNoFlagsFromItsFolder) {
  const std::string folder = workspace().Path("src");
  ASSERT_EQ(::symlink("main.rs", (folder + "/link").c_str()), 0);
  int flags = FS_NODUMP_FL;
  const Fd dir(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (::ioctl(dir.get(), FS_IOC_SETFLAGS, &flags) != 0)
    GTEST_SKIP() << FileSystemName(folder) << " has no inode flags";
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().Unlink("src/link")); });
  EXPECT_OK(Restore(step, {"src"}));
  ExpectTree(before);
}

// What another hand put there.

class UndoRestoreOverOthers : public UndoRestore {
 protected:
  // As editors save: a new file, renamed over the old one.
  void SaveAtomically(const std::string& path, const std::string& content) {
    workspace().WriteFile("saved.tmp", content);
    MustCall(::rename(workspace().Path("saved.tmp").c_str(), workspace().Path(path).c_str()),
             "rename");
  }
  void ExpectRefused(StepId step, const std::string& path, ConflictKind kind,
                     Force force = Force::kNo) {
    const TreeSnapshot now = Snapshot();
    EXPECT_CODE(Restore(step, {path}, force), Code::kConflict);
    ExpectTree(now);
    const RewindReport plan = Must(log().PlanRestore(step, std::vector<std::string>{path}));
    EXPECT_TRUE(HasConflict(plan.conflicts, kind, path))
        << ::testing::PrintToString(Lines(plan.conflicts));
  }
};

TEST_F(UndoRestoreOverOthers, AFileThatAnEditorSavedAnewIsAConflictAndForceKeepsItUndoable) {
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "changed")); });
  SaveAtomically("small.txt", "a person's");
  ExpectRefused(step, "small.txt", ConflictKind::kReplaced);
  EXPECT_OK(Restore(step, {"small.txt"}, Force::kYes));
  EXPECT_EQ(Content("small.txt"), "hello world");
  RollBack();
  EXPECT_EQ(Content("small.txt"), "a person's");
}

TEST_F(UndoRestoreOverOthers, AFileSavedAnewThatTheStepHadMadeIsNotDeleted) {
  const StepId step = InStep([&] { EXPECT_OK(ops().WriteNew("new.txt", "new")); });
  SaveAtomically("new.txt", "a person's");
  ExpectRefused(step, "new.txt", ConflictKind::kReplaced);
  EXPECT_OK(Restore(step, {"new.txt"}, Force::kYes));
  EXPECT_FALSE(workspace().Exists("new.txt"));
  RollBack();
  EXPECT_EQ(Content("new.txt"), "a person's");
}

TEST_F(UndoRestoreOverOthers, AFileUnderANameThatTheStepLeftFreeIsAConflict) {
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Unlink("small.txt"));
    EXPECT_OK(ops().WriteNew("passing.txt", "x"));
    EXPECT_OK(ops().Unlink("passing.txt"));
  });
  workspace().WriteFile("small.txt", "a person's");
  workspace().WriteFile("passing.txt", "a person's");
  ExpectRefused(step, "small.txt", ConflictKind::kOccupied);
  ExpectRefused(step, "passing.txt", ConflictKind::kOccupied);
  EXPECT_OK(Restore(step, {"small.txt"}, Force::kYes));
  EXPECT_EQ(Content("small.txt"), "hello world");
  RollBack();
  EXPECT_EQ(Content("small.txt"), "a person's");
}

TEST_F(UndoRestoreOverOthers, AFileSavedAnewBetweenTwoStepsIsNotTakenForTheOneBefore) {
  const StepId first = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "changed")); });
  SaveAtomically("small.txt", "a person's");
  const StepId second = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "again")); });
  ExpectRefused(first, "small.txt", ConflictKind::kReplaced);
  EXPECT_OK(Restore(second, {"small.txt"}));
  EXPECT_EQ(Content("small.txt"), "a person's");
  EXPECT_OK(Restore(first, {"small.txt"}, Force::kYes));
  EXPECT_EQ(Content("small.txt"), "hello world");
}

TEST_F(UndoRestoreOverOthers, AFileSavedAnewAndThenDeletedByAStepIsNotTakenForTheOneBefore) {
  const StepId first = InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
    EXPECT_OK(ops().WriteAt("large.bin", 0, "J", WriteVisibility::kAnnounced));
  });
  SaveAtomically("small.txt", "a person's");
  SaveAtomically("large.bin", Noise(700'000, 5));
  const StepId second = InStep([&] {
    EXPECT_OK(ops().Unlink("small.txt"));
    EXPECT_OK(ops().Unlink("large.bin"));
  });
  EXPECT_OK(Restore(first, {"small.txt"}));
  EXPECT_EQ(Content("small.txt"), "hello world");
  EXPECT_CODE(Restore(first, {"large.bin"}, Force::kYes), Code::kConflict);
  EXPECT_OK(Restore(second, {"large.bin"}));
  EXPECT_EQ(Content("large.bin"), Noise(700'000, 5));
}

TEST_F(UndoRestoreOverOthers, NoMixtureOfTwoFilesIsWrittenNotEvenByForce) {
  const StepId step = InStep([&] {
    EXPECT_OK(
        ops().WriteAt("large.bin", 8192, std::string(4096, 'J'), WriteVisibility::kAnnounced));
  });
  SaveAtomically("large.bin", Noise(700'000, 5));
  ExpectRefused(step, "large.bin", ConflictKind::kReplaced);
  ExpectRefused(step, "large.bin", ConflictKind::kReplaced, Force::kYes);
  EXPECT_EQ(Content("large.bin"), Noise(700'000, 5));
  EXPECT_THAT(Must(log().Diff(step)), HasSubstr("# large.bin: "));
  // Nor when there is nothing to mix with.
  MustCall(::unlink(workspace().Path("large.bin").c_str()), "unlink");
  EXPECT_CODE(Restore(step, {"large.bin"}, Force::kYes), Code::kConflict);
  EXPECT_FALSE(workspace().Exists("large.bin"));
}

TEST_F(UndoRestoreOverOthers, AFileThatAPersonDeletedComesBackFromWhatTheStepKept) {
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "changed")); });
  MustCall(::unlink(workspace().Path("small.txt").c_str()), "unlink");
  EXPECT_OK(Restore(step, {"small.txt"}));
  ASSERT_TRUE(workspace().Exists("small.txt"));
  EXPECT_EQ(Content("small.txt"), "hello world");
  EXPECT_EQ(Snapshot().Find("small.txt")->mtime, before.Find("small.txt")->mtime);
}

TEST_F(UndoRestoreOverOthers, ABarrierStopsTheRestoreOfThePathThatItNames) {
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
    EXPECT_OK(ops().Overwrite("medium.txt", "changed"));
  });
  EXPECT_OK(log().NoteExternalModification(std::vector<std::string>{"small.txt"}));
  ExpectRefused(step, "small.txt", ConflictKind::kBarrier);
  EXPECT_OK(Restore(step, {"medium.txt"}));
  const StepId later = InStep([&] { EXPECT_OK(ops().Rename("small.txt", "moved.txt")); });
  ExpectRefused(step, "moved.txt", ConflictKind::kBarrier);
  EXPECT_OK(Restore(later, {"moved.txt"})) << "the barrier lies before that step";
  EXPECT_OK(Restore(step, {"small.txt"}, Force::kYes));
  EXPECT_EQ(Content("small.txt"), "hello world");
}

// Of a step that keeps large.bin as a blob.
class UndoRestoreOfABlob : public UndoRestore {
 protected:
  void SetUp() override {
    UndoRestore::SetUp();
    step_ =
        InStep([&] { EXPECT_OK(ops().WriteAt("large.bin", 0, "J", WriteVisibility::kUnseen)); });
    blob_ = StepFolder(workspace(), step_) + "/blobs/0";
    ASSERT_EQ(FileSize(blob_), 1'000'000u);
  }
  void ExpectDamage(std::string_view why) {
    const TreeSnapshot after = Snapshot();
    const auto restored = Restore(step_, {"large.bin"}, Force::kYes);
    ASSERT_CODE(restored, Code::kCorrupt);
    EXPECT_THAT(restored.error().message(), HasSubstr(why));
    ExpectTree(after);
    EXPECT_THAT(Must(log().Diff(step_)), HasSubstr(why));
  }

  StepId step_;
  std::string blob_;
};

TEST_F(UndoRestoreOfABlob, AnotherSizeIsDamage) {
  MustCall(::truncate(blob_.c_str(), 999'999), "truncate");
  ExpectDamage("another size");
}

TEST_F(UndoRestoreOfABlob, OtherBytesAreDamage) {
  if (log().abilities().reflinks) return;  // a clone has no checksum
  const Fd file(MustCall(::open(blob_.c_str(), O_WRONLY | O_CLOEXEC), "open"));
  ASSERT_EQ(::pwrite(file.get(), "damage", 6, 500'000), 6);
  ExpectDamage("fail their checksum");
}

TEST_F(UndoRestoreOfABlob, AFifoInItsPlaceIsDamageAndKeepsNobodyWaiting) {
  MustCall(::unlink(blob_.c_str()), "unlink");
  MustCall(::mkfifo(blob_.c_str(), 0600), "mkfifo");
  ExpectDamage("missing from the store");
  EXPECT_CODE(log().Rollback(1), Code::kCorrupt);
  EXPECT_TRUE(HasConflict(RollBack(1, Force::kYes).conflicts, ConflictKind::kCorrupt, "large.bin"));
}

TEST_F(UndoRestore, BadRequestsAreRefused) {
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "changed")); });
  const TreeSnapshot after = Snapshot();
  EXPECT_CODE(Restore(StepId{77}, {"small.txt"}), Code::kNotFound);
  EXPECT_CODE(Restore(step, {"/etc/passwd"}), Code::kOutsideRoot);
  EXPECT_CODE(Restore(step, {"../store/version"}), Code::kOutsideRoot);
  ASSERT_OK(log().OpenStep({}));
  EXPECT_CODE(Restore(step, {"small.txt"}), Code::kBusy);
  EXPECT_OK(log().CloseStep());
  ExpectTree(after);
}

// Dry runs.

class UndoDryRun : public UndoRedo {};

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

class UndoShow : public UndoRedo {};

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

TEST_F(UndoShow, TheDiffIsUnified) {
  workspace().WriteFile("poem.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Overwrite("poem.txt", "one\ntwo\nthree\nFOUR\nfive\nsix\nseven\n"));
    EXPECT_OK(ops().WriteNew("added.txt", "hello\n"));
    EXPECT_OK(ops().Unlink("src/main.rs"));
    EXPECT_OK(ops().WriteAt("large.bin", 0, "\x00\x01\x02", WriteVisibility::kUnseen));
  });
  Result<std::string> diff = log().Diff(step);
  ASSERT_OK(diff);
  EXPECT_THAT(*diff, HasSubstr("--- a/poem.txt\n+++ b/poem.txt\n@@ -1,7 +1,7 @@\n one\n two\n "
                               "three\n-four\n+FOUR\n five\n"));
  EXPECT_THAT(*diff, HasSubstr("+hello"));
  EXPECT_THAT(*diff, HasSubstr("-fn main() {}"));
  EXPECT_THAT(*diff, Not(HasSubstr("\x01"))) << "no binary in a diff";
}

TEST_F(UndoShow, TheDiffOfAnOlderStepShowsThatStepAlone) {
  workspace().WriteFile("poem.txt", "one\n");
  const StepId first = InStep([&] { EXPECT_OK(ops().Overwrite("poem.txt", "two\n")); });
  InStep([&] { EXPECT_OK(ops().Overwrite("poem.txt", "three\n")); });
  Result<std::string> diff = log().Diff(first);
  ASSERT_OK(diff);
  EXPECT_THAT(*diff, HasSubstr("-one\n+two"));
  EXPECT_THAT(*diff, Not(HasSubstr("three")));
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
    Result<std::string> diff = reader->Diff(step);
    ASSERT_OK(diff);
    EXPECT_THAT(*diff, HasSubstr("+changed"));
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

TEST_F(UndoShow, AReaderOfNoStoreSaysSo) {
  EXPECT_CODE(
      StoreReader::Open({.project = workspace().project(), .store = workspace().root() + "/none"}),
      Code::kNotFound);
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

TEST_F(UndoRestore, APathBelowWhatWasASymlinkThenWasNothing) {
  InStep([&] { EXPECT_OK(ops().Symlink("src", "link")); });
  const StepId moved = InStep([&] {
    EXPECT_OK(ops().Rename("link", "src/link"));
    EXPECT_OK(ops().Rename("src", "link"));
  });
  workspace().WriteFile("link/new.txt", "a person's");
  EXPECT_OK(log().Restore(moved, std::vector<std::string>{"link/main.rs"}));
  EXPECT_EQ(Content("link/new.txt"), "a person's");
}

}  // namespace
}  // namespace sandglass::undo
