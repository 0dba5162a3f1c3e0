// Steps as wholes when the store fails around a commit point: before it nothing has happened, after it everything has.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <unordered_set>

#include "base/io.h"
#include "tests/support/must.h"
#include "tests/support/tree_walk.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"
#include "undo/interceptor.h"
#include "undo/journal_view.h"
#include "undo/objects_table.h"
#include "undo/reading.h"

namespace sandglass::undo {
namespace {

using test::Must;
using test::MustCall;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace std::chrono_literals;

// While it lives, no file of this process grows beyond a size.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(uint64_t bytes) {
    MustCall(::getrlimit(RLIMIT_FSIZE, &before_), "getrlimit");
    signal_ = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    MustCall(::setrlimit(RLIMIT_FSIZE, &limit), "setrlimit");
  }
  ~FileSizeLimit() {
    MustCall(::setrlimit(RLIMIT_FSIZE, &before_), "setrlimit");
    ::signal(SIGXFSZ, signal_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  sighandler_t signal_ = SIG_DFL;
};

enum class Lock { kOff, kOn };

// No name enters or leaves a folder that is immutable. False: this file system, or this user, cannot do that.
bool SetImmutable(const std::string& folder, Lock lock) {
  const Fd dir(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int flags = 0;
  if (!dir.valid() || ::ioctl(dir.get(), FS_IOC_GETFLAGS, &flags) != 0) return false;
  flags = lock == Lock::kOn ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
  return ::ioctl(dir.get(), FS_IOC_SETFLAGS, &flags) == 0;
}

class UndoLifecycle : public UndoTest {
 protected:
  void SetUp() override { options_.compression = Compression::kOff; }
  void TearDown() override { (void)SetImmutable(InStore("trash"), Lock::kOff); }

  std::string InStore(std::string_view name) const {
    return fmt::format("{}/{}", workspace().store(), name);
  }
  // Nothing can be dropped from the store any more.
  bool LockTrash() const { return SetImmutable(InStore("trash"), Lock::kOn); }
  void UnlockTrash() const { ASSERT_TRUE(SetImmutable(InStore("trash"), Lock::kOff)); }
  std::string WhyNoLock() const {
    return fmt::format("inode flags: not supported by {}", FileSystemName(workspace().root()));
  }

  // The table of objects cannot grow beyond its size while a FileSizeLimit of `kObjectsBytes` lives; other files are smaller.
  static constexpr uint64_t kObjectsBytes = 8 << 20;
  void StartWithALongTableOfObjects() {
    StartWith(test::SmallTree);
    CloseLog();
    MustCall(::truncate(InStore("objects").c_str(), kObjectsBytes), "truncate");
    OpenLog();
  }
  // A replacement of `file` in the store fails while a folder has the name of the temporary file.
  void BlockReplacing(std::string_view file) const {
    MustCall(::mkdir(InStore(fmt::format("{}.tmp", file)).c_str(), 0700), "mkdir");
  }
  void UnblockReplacing(std::string_view file) const {
    MustCall(::rmdir(InStore(fmt::format("{}.tmp", file)).c_str()), "rmdir");
  }

  void Change() {
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
    EXPECT_OK(ops().Unlink("medium.txt"));
    EXPECT_OK(ops().Rename("src/main.rs", "empty.txt"));
    EXPECT_OK(ops().WriteNew("created.txt", "new"));
  }
};

// --- Abort.

TEST_F(UndoLifecycle, AnAbortThatHappenedIsFinishedForwardsWhenItsStepCannotBeDropped) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  Change();
  if (!LockTrash()) GTEST_SKIP() << WhyNoLock();
  const Result<RewindReport> aborted = log().AbortStep();
  ASSERT_OK(aborted);
  EXPECT_THAT(aborted->warnings, Not(IsEmpty()));
  ExpectTree(before);
  EXPECT_EQ(log().open_step(), std::nullopt);
  EXPECT_FALSE(log().OpenStep({}).ok());
  ExpectTree(before);
  UnlockTrash();
  ExpectUndone([&] { Change(); });
  EXPECT_EQ(NamesIn(InStore("wal")), std::vector<std::string>{});
}

TEST_F(UndoLifecycle, AnAbortThatHappenedIsFinishedForwardsAfterACrash) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  OpenLog();
  CloseLog();
  if (!LockTrash()) GTEST_SKIP() << WhyNoLock();
  UnlockTrash();
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    Change();
    ASSERT_TRUE(LockTrash());
    EXPECT_OK(log().AbortStep());
    UnlockTrash();
    DieNow();
  });
  OpenLog();
  ExpectTree(before);
  EXPECT_FALSE(log().recovery().recovered);
  EXPECT_EQ(log().redo_depth(), 0u);
  EXPECT_THAT(Steps(), IsEmpty());
  EXPECT_EQ(NamesIn(InStore("wal")), std::vector<std::string>{});
}

// A rewind that fails, and that cannot be settled afterwards either.
TEST_F(UndoLifecycle, AStepWhoseAbortFailedIsClosedOnlyOnceItIsWholeAgain) {
  workspace().WriteFile("big.bin", Noise(3 << 20));
  workspace().WriteFile("a.txt", "a");
  OpenLog();
  const TreeSnapshot before = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().WriteAt("big.bin", 0, Noise(2 << 20, 7), WriteVisibility::kAnnounced));
  EXPECT_OK(ops().Overwrite("a.txt", "changed"));
  const TreeSnapshot after = Snapshot();
  if (!LockTrash()) GTEST_SKIP() << WhyNoLock();
  {
    const FileSizeLimit limit(1 << 20);
    EXPECT_FALSE(log().AbortStep().ok());
    EXPECT_FALSE(log().CloseStep().ok());
  }
  EXPECT_NE(log().open_step(), std::nullopt);
  UnlockTrash();
  EXPECT_OK(log().CloseStep());
  ExpectTree(after);
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoLifecycle, AFolderThatIsInTheWayOfANewStepIsNotDeleted) {
  StartWith(test::SmallTree);
  MustCall(::mkdir(InStore("wal/in_progress").c_str(), 0700), "mkdir");
  MustCall(::mkdir(InStore("wal/in_progress/blobs").c_str(), 0700), "mkdir");
  EXPECT_CODE(log().OpenStep({}), Code::kExists);
  EXPECT_EQ(NamesIn(InStore("wal/in_progress")), std::vector<std::string>{"blobs"});
}

// --- Close.

TEST_F(UndoLifecycle, AWriteAfterACloseThatFailedIsKeptAlthoughTheCopyBeforeItWasDropped) {
  workspace().WriteFile("big.bin", Noise(1 << 20));
  workspace().WriteFile("a.txt", "a");
  test::AgeTree(workspace().project());
  OpenLog();
  InStep([&] { EXPECT_OK(ops().Overwrite("a.txt", "b")); });
  workspace().WriteFile("a.txt", "a person's");  // makes the close write a barrier
  const TreeSnapshot before = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().WriteAt("big.bin", 0, Noise(100), WriteVisibility::kUnseen));  // the same bytes
  EXPECT_OK(ops().Overwrite("a.txt", "c"));
  BlockReplacing("barriers");
  EXPECT_FALSE(log().CloseStep().ok());
  UnblockReplacing("barriers");
  EXPECT_OK(ops().WriteAt("big.bin", 500, "changed", WriteVisibility::kUnseen));
  EXPECT_OK(log().CloseStep());
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoLifecycle, AnInterruptedAmbientStepOfManyFilesIsPromotedInOneGo) {
  constexpr int kFiles = 4000;
  for (int i = 0; i < kFiles; ++i) workspace().WriteFile(fmt::format("f{}", i), "old");
  test::AgeTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  RunUntilDeath([&] {
    OpenLog();
    for (int i = 0; i < kFiles; ++i) EXPECT_OK(ops().Overwrite(fmt::format("f{}", i), "new"));
    DieNow();
  });
  OpenLog();
  ASSERT_EQ(Steps().size(), 1u);
  EXPECT_EQ(Steps()[0].counts.modified, static_cast<uint32_t>(kFiles));
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoLifecycle, TheIdOfAnAbortedStepIsNotUsedAgain) {
  StartWith(test::SmallTree);
  const StepId aborted = Must(log().OpenStep({}));
  EXPECT_OK(log().AbortStep());
  EXPECT_EQ(Must(log().OpenStep({})), StepId{aborted.value + 1});
  EXPECT_OK(log().CloseStep());
  EXPECT_OK(ops().Overwrite("small.txt", "ambient"));
  const std::optional<StepId> ambient = log().open_step();
  ASSERT_TRUE(ambient.has_value());
  EXPECT_OK(log().AbortStep());
  EXPECT_OK(ops().Overwrite("small.txt", "ambient"));
  EXPECT_EQ(log().open_step(), StepId{ambient->value - 1});
}

TEST_F(UndoLifecycle, NoCallerCanChooseAnIdThatWasUsedOrIsNone) {
  StartWith(test::SmallTree);
  ASSERT_OK(log().OpenStep({.id = StepId{7}}));
  EXPECT_OK(log().AbortStep());
  EXPECT_CODE(log().OpenStep({.id = StepId{7}}), Code::kExists);
  const StepId next = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "x")); });
  EXPECT_EQ(next, StepId{8});
  RollBack();
  EXPECT_CODE(log().OpenStep({.id = next}), Code::kExists);
  EXPECT_EQ(log().redo_depth(), 1u) << "what is refused drops nothing";
  EXPECT_CODE(log().OpenStep({.id = StepId{0}}), Code::kInvalid);
  EXPECT_CODE(log().OpenStep({.id = StepId{-1}}), Code::kInvalid);
  EXPECT_OK(log().OpenStep({.id = StepId{5}}));
}

TEST_F(UndoLifecycle, AnInterruptedAmbientStepCountsWhatItKept) {
  workspace().WriteFile("a.txt", Noise(1000));
  workspace().WriteFile("b.bin", Noise(400'000));
  workspace().WriteFile("gone.bin", Noise(300'000));
  MustCall(::link(workspace().Path("a.txt").c_str(), workspace().Path("a2.txt").c_str()), "link");
  const auto change = [&] {
    OpenLog();
    EXPECT_OK(ops().Overwrite("a.txt", "new"));
    EXPECT_OK(ops().WriteAt("b.bin", 0, "new", WriteVisibility::kUnseen));
    EXPECT_OK(ops().Unlink("gone.bin"));
    EXPECT_OK(ops().Unlink("a2.txt"));
  };
  RunUntilDeath([&] {
    change();
    DieNow();
  });
  OpenLog();
  ASSERT_EQ(Steps().size(), 1u);
  const StepInfo interrupted = Steps()[0];
  EXPECT_GE(interrupted.copied_bytes, 1000u);
  if (log().abilities().links) EXPECT_GE(interrupted.retained_bytes, 300'000u);
  RollBack();
  change();
  EXPECT_OK(log().OpenStep({}));  // closes the ambient one
  ASSERT_EQ(Steps().size(), 1u);
  EXPECT_EQ(interrupted.copied_bytes, Steps()[0].copied_bytes);
  EXPECT_EQ(interrupted.retained_bytes, Steps()[0].retained_bytes);
}

TEST_F(UndoLifecycle, RecoveryTellsOfTheStepAndOfTheRollbackThatItCompletes) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] { Change(); });
    ASSERT_OK(log().OpenStep({}));
    EXPECT_OK(ops().Overwrite("run.sh", "killed"));
    DieNow();
  });
  const Fd target(MustCall(
      ::open(InStore("wal/target").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "open"));
  MustCall(::write(target.get(), "0 1 force\n", 10), "write");
  OpenLog();
  EXPECT_EQ(log().recovery().rewind.steps, (std::vector{StepId{2}, StepId{1}}));
  ExpectTree(before);
}

// --- Keeping house.

TEST_F(UndoLifecycle, ATableFullOfLiveSignaturesIsNotRewrittenAgainAndAgain) {
  const Fd dir = Must(test::OpenDirectory(workspace().root()));
  std::unordered_set<ObjectId> live;
  ObjectsTable table;
  ASSERT_OK(table.Load(dir.get(), FileSync::kNone));
  for (uint64_t i = 1; i <= 300'000; ++i) {
    live.insert({.lo = i, .hi = 1});
    table.Put({.lo = i, .hi = 1}, {});
  }
  table.MarkAdopted(7);
  table.MarkAdopted(8);
  EXPECT_OK(table.Flush());
  EXPECT_TRUE(table.Bloated());
  EXPECT_OK(table.Compact(live, {8}));
  EXPECT_FALSE(table.Bloated());
  ObjectsTable again;
  EXPECT_OK(again.LoadToRead(dir.get()));
  for (const ObjectId& id : live) ASSERT_TRUE(again.Find(id).has_value());
  EXPECT_FALSE(again.IsAdopted(7));
  EXPECT_TRUE(again.IsAdopted(8));
}

TEST_F(UndoLifecycle, WhatWasKeptForARemovalThatFailedCountsNowhere) {
  workspace().WriteFile("a.txt", "a");
  MustCall(::link(workspace().Path("a.txt").c_str(), workspace().Path("b.txt").c_str()), "link");
  OpenLog();
  const StepId step = InStep([&] {
    const Fd root = Must(test::OpenDirectory(workspace().project()));
    Result<Ticket> ticket = log().interceptor().BeginRemove({{root.get(), ""}, "a.txt"});
    ASSERT_OK(ticket);
    EXPECT_OK(ticket->Commit(Outcome::Failed(EIO)));
  });
  const Fd folder = Must(test::OpenDirectory(StepFolder(workspace(), step)));
  EXPECT_EQ(Must(ReadJournalSummary(folder.get(), "journal")).close.shared_anchors, 0u);
  const Fd steps = Must(test::OpenDirectory(InStore("steps")));
  EXPECT_TRUE(CollectAnchored({steps.get()})->empty());
}

TEST_F(UndoLifecycle, ACopyThatDidNotFitIsNotCounted) {
  workspace().WriteFile("a.bin", Noise(200 << 10));
  OpenLog();
  const StepId step = InStep([&] {
    const FileSizeLimit limit(100 << 10);
    EXPECT_FALSE(ops().Overwrite("a.bin", "new").ok());
  });
  EXPECT_EQ(InfoOf(step).copied_bytes, 0u);
}

TEST_F(UndoLifecycle, TrashOfTheLastUserGoesWhenTheLogIsOpened) {
  options_.compression = Compression::kBackground;
  StartWith(test::SmallTree);
  CloseLog();
  MustCall(::mkdir(InStore("trash/old").c_str(), 0700), "mkdir");
  OpenLog();
  log().WaitForBackground();
  EXPECT_THAT(NamesIn(InStore("trash")), IsEmpty());
}

// --- Damage.

TEST_F(UndoLifecycle, AStepThatCannotBeReadIsSetAsideByForceAndTheOlderOnesAreTakenBack) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  const mode_t mode = StatOf("run.sh").st_mode & 07777;
  InStep([&] { Change(); });
  const StepId damaged = InStep([&] { EXPECT_OK(ops().Chmod("run.sh", 0600)); });
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "again")); });
  CloseLog();
  FlipByte(StepFolder(workspace(), damaged) + "/journal", 20);
  OpenLog();
  const Result<RewindReport> plan = log().PlanRollback(3);
  ASSERT_OK(plan);
  EXPECT_EQ(Lines(plan->conflicts), std::vector<std::string>{"corrupt "});
  const TreeSnapshot after = Snapshot();
  EXPECT_CODE(log().Rollback(3), Code::kCorrupt);
  ExpectTree(after);
  const RewindReport report = RollBack(3, Force::kYes);
  EXPECT_TRUE(HasConflict(report.conflicts, ConflictKind::kCorrupt, ""));
  EXPECT_EQ(report.steps, (std::vector{StepId{3}, StepId{1}}));
  EXPECT_THAT(Steps(), IsEmpty());
  EXPECT_EQ(NamesIn(InStore("damaged")).size(), 1u);
  MustCall(::chmod(workspace().Path("run.sh").c_str(), mode), "chmod");
  ExpectTree(before);
  CloseLog();
  EXPECT_OK(UndoLog::Discard(paths()));
  EXPECT_THAT(NamesIn(InStore("damaged")), IsEmpty());
}

TEST_F(UndoLifecycle, ATravelThatFailsGoesBackToWhereItCanWhenAStepWasSetAside) {
  constexpr size_t kBytes = 200 << 10;
  const std::string files[] = {"f0", "f1", "f2"};
  for (const std::string& file : files) workspace().WriteFile(file, Noise(kBytes));
  workspace().WriteFile("a.txt", "a");
  OpenLog();
  InStep([&] {
    for (const std::string& file : files) EXPECT_OK(ops().Overwrite(file, Noise(kBytes, 7)));
  });
  const StepId damaged = InStep([&] { EXPECT_OK(ops().Chmod("a.txt", 0600)); });
  InStep([&] { EXPECT_OK(ops().Overwrite("a.txt", "b")); });
  CloseLog();
  FlipByte(StepFolder(workspace(), damaged) + "/journal", 20);
  OpenLog();
  const TreeSnapshot after = Snapshot();
  {
    const FileSizeLimit limit(2 * kBytes +
                              kBytes / 2);  // the pack of a rewind of all three is longer
    EXPECT_FALSE(log().Rollback(3, Force::kYes).ok());
  }
  ExpectTree(after);
  ASSERT_EQ(Steps().size(), 2u);
  EXPECT_EQ(log().redo_depth(), 0u);
}

// --- After the commit point.

TEST_F(UndoLifecycle, AStepClosesWhenTheTableOfObjectsCannotBeWritten) {
  StartWithALongTableOfObjects();
  const TreeSnapshot before = Snapshot();
  {
    const FileSizeLimit limit(kObjectsBytes);
    InStep([&] { Change(); });
    EXPECT_EQ(log().open_step(), std::nullopt);
    InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "again")); });
  }
  EXPECT_EQ(Steps().size(), 2u);
  InStep([&] { EXPECT_OK(ops().Overwrite("created.txt", "again")); });
  OpenLog();
  EXPECT_THAT(Barriers(), IsEmpty());
  RollBack(3);
  ExpectTree(before);
}

TEST_F(UndoLifecycle, AStepThatWasClosedWithoutItsSignaturesIsAdoptedByTheNextOpen) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  OpenLog();
  CloseLog();
  MustCall(::truncate(InStore("objects").c_str(), kObjectsBytes), "truncate");
  RunUntilDeath([&] {
    OpenLog();
    const FileSizeLimit limit(kObjectsBytes);
    InStep([&] { Change(); });
    DieNow();
  });
  OpenLog();
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoLifecycle, ARollbackThatHappenedIsASuccessWhenItsStepsCannotBeDropped) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  InStep([&] { Change(); });
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "again")); });
  const TreeSnapshot after = Snapshot();
  if (!LockTrash()) GTEST_SKIP() << WhyNoLock();
  EXPECT_THAT(RollBack(2).warnings, Not(IsEmpty()));
  ExpectTree(before);
  EXPECT_THAT(Steps(), IsEmpty());
  EXPECT_EQ(log().redo_depth(), 2u);
  EXPECT_FALSE(log().OpenStep({}).ok());
  EXPECT_FALSE(log().Redo(2).ok());
  ExpectTree(before);
  UnlockTrash();
  RedoSteps(2);
  ExpectTree(after);
  ASSERT_TRUE(LockTrash());
  RollBack(1);
  UnlockTrash();
  OpenLog();
  EXPECT_EQ(Steps().size(), 1u);
  EXPECT_EQ(log().redo_depth(), 1u);
  RollBack(1);
  ExpectTree(before);
}

TEST_F(UndoLifecycle, ARedoThatHappenedIsASuccessWhenItsSourceCannotBeDropped) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  InStep([&] { Change(); });
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "again")); });
  const TreeSnapshot after = Snapshot();
  RollBack(2);
  if (!LockTrash()) GTEST_SKIP() << WhyNoLock();
  EXPECT_THAT(RedoSteps(2).warnings, Not(IsEmpty()));
  ExpectTree(after);
  EXPECT_EQ(Steps().size(), 2u);
  EXPECT_EQ(log().redo_depth(), 0u);
  UnlockTrash();
  RollBack(2);
  ExpectTree(before);
}

TEST_F(UndoLifecycle, ARollbackThatHappenedIsASuccessWhenBarriersCannotBeSaved) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "one")); });
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "two")); });
  const std::string elsewhere[] = {"run.sh"};
  ASSERT_OK(log().NoteExternalModification(elsewhere));
  BlockReplacing("barriers");
  EXPECT_THAT(RollBack(2).warnings, Not(IsEmpty()));
  UnblockReplacing("barriers");
  ExpectTree(before);
  EXPECT_EQ(log().redo_depth(), 2u);
}

TEST_F(UndoLifecycle, AStepClosesWhenTheOldestCannotBeEvicted) {
  options_.limits.max_steps = 1;
  StartWith(test::SmallTree);
  InStep([&] { Change(); });
  const TreeSnapshot middle = Snapshot();
  if (!LockTrash()) GTEST_SKIP() << WhyNoLock();
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "again")); });
  EXPECT_EQ(log().open_step(), std::nullopt);
  UnlockTrash();
  EXPECT_EQ(Steps().size(), 1u);
  RollBack();
  ExpectTree(middle);
  EXPECT_THAT(NamesIn(InStore("steps")), IsEmpty());
}

// --- The heart.

std::string Contents(const std::string& path) {
  const Fd file(MustCall(::open(path.c_str(), O_RDONLY | O_CLOEXEC), "open"));
  const Bytes bytes = Must(ReadFully(file.get(), 1u << 20));
  return {bytes.begin(), bytes.end()};
}

// What the other threads of this process did since they began: each voluntary switch is a wake-up to come.
int64_t SwitchesOfOtherThreads() {
  int64_t sum = 0;
  for (const std::string& task : NamesIn("/proc/self/task")) {
    if (task == std::to_string(::gettid())) continue;
    const std::string status = Contents("/proc/self/task/" + task + "/status");
    constexpr std::string_view kKey = "\nvoluntary_ctxt_switches:";
    sum += std::stoll(status.substr(status.find(kKey) + kKey.size()));
  }
  return sum;
}

TEST_F(UndoLifecycle, AnIdleLogWakesNoThread) {
  options_.heartbeat = 10ms;
  StartWith(test::SmallTree);
  InStep([&] { Change(); });
  log().WaitForBackground();
  std::this_thread::sleep_for(100ms);
  const int64_t before = SwitchesOfOtherThreads();
  std::this_thread::sleep_for(300ms);
  EXPECT_LE(SwitchesOfOtherThreads() - before, kPlainBuild ? 1 : 10) << "30 beats would have been";
}

TEST_F(UndoLifecycle, AnOpenStepIsBeatenForAlsoWhenNothingIsRecorded) {
  options_.heartbeat = 10ms;
  StartWith(test::SmallTree);
  InStep([&] { Change(); });  // the heart has been at rest before
  std::this_thread::sleep_for(50ms);
  ASSERT_OK(log().OpenStep({}));
  const auto heartbeat = [&] {
    const std::string journal = Contents(OpenStepFolder(workspace_) + "/journal");
    return Must(DecodeJournalHeader(AsBytes(journal))).heartbeat_ns;
  };
  const int64_t first = heartbeat();
  for (int tries = 0; heartbeat() == first && tries < 500; ++tries)
    std::this_thread::sleep_for(10ms);
  EXPECT_GT(heartbeat(), first);
  EXPECT_OK(log().CloseStep({}));
}

}  // namespace
}  // namespace sandglass::undo
