// The store on disk (UL-01..09): what is written, when it counts, and what happens when it is damaged.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/io.h"
#include "base/json.h"
#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using test::Must;
using test::MustCall;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class UndoStore : public UndoTest {
 protected:
  void WriteVersion(std::string_view version) const {
    const Fd store(
        MustCall(::open(workspace().store().c_str(), O_PATH | O_DIRECTORY), "open store"));
    Must(ReplaceFileAt(store.get(), "version", version));
  }

  // Three steps, each of which changes files of its own in place, so that content is kept as bytes and not as inodes.
  void MakeThreeSteps() {
    options_.compression = Compression::kOff;
    for (int i = 1; i <= 3; ++i) {
      for (const char* kind : {"a", "b"})
        workspace().WriteFile(fmt::format("{}{}.bin", kind, i), Noise(3000, i));
    }
    test::AgeTree(workspace().project());
    OpenLog();
    before_.push_back(Snapshot());
    for (int i = 1; i <= 3; ++i) {
      InStep([&] {
        EXPECT_OK(ops().WriteAt(fmt::format("a{}.bin", i), 0, "changed", WriteVisibility::kUnseen));
        EXPECT_OK(
            ops().WriteAt(fmt::format("b{}.bin", i), 100, "changed", WriteVisibility::kUnseen));
        EXPECT_OK(ops().WriteNew(fmt::format("new{}.txt", i), "new"));
      });
      before_.push_back(Snapshot());
    }
  }
  const TreeSnapshot& AfterStep(int i) const { return before_[static_cast<size_t>(i)]; }

  // Step 2 is damaged: step 3 can still be taken back, step 2 is refused with a reason, and nothing is touched by that.
  void ExpectOnlyStepTwoIsLost() {
    OpenLog();
    ExpectTree(AfterStep(3));
    RollBack(1);
    ExpectTree(AfterStep(2));
    EXPECT_CODE(log().Rollback(1), Code::kCorrupt);
    ExpectTree(AfterStep(2));
    EXPECT_CODE(log().Rollback(2), Code::kCorrupt);
    ExpectTree(AfterStep(2));
    EXPECT_OK(log().Changes(StepId{1}));
    ExpectUndone([&] { EXPECT_OK(ops().Overwrite("a1.bin", "undo still works")); });
  }

 private:
  std::vector<TreeSnapshot> before_;  // [i]: after step i
};

TEST_F(UndoStore, UL_01_TheManifestTellsWhatTheStepDid) {
  test::SmallTree(workspace().project());
  workspace().WriteFile("src/old name.txt", "renamed");
  OpenLog();
  const StepId step = InStep(
      [&] {
        EXPECT_OK(ops().WriteNew("created.txt", "four"));
        EXPECT_OK(ops().Mkdir("created_dir"));
        EXPECT_OK(ops().Symlink("small.txt", "created_link"));
        EXPECT_OK(ops().Overwrite("small.txt", "smaller"));
        EXPECT_OK(ops().Chmod("run.sh", 0600));
        EXPECT_OK(ops().Unlink("medium.txt"));
        EXPECT_OK(ops().RemoveTree("src/components"));
        EXPECT_OK(ops().Rename("src/old name.txt", "src/new name.txt"));
      },
      "a command with \"quotes\"");
  const std::vector<std::string> wanted = {
      "created created.txt",
      "created created_dir",
      "created created_link",
      "deleted medium.txt",
      "deleted src/components",
      "deleted src/components/app.rs",
      "modified run.sh",
      "modified small.txt",
      "renamed src/old name.txt -> src/new name.txt",
  };
  EXPECT_EQ(ChangeLines(step), wanted);
  const StepInfo info = InfoOf(step);
  EXPECT_EQ(info.counts.created, 3u);
  EXPECT_EQ(info.counts.deleted, 3u);
  EXPECT_EQ(info.counts.modified, 2u);
  EXPECT_EQ(info.counts.renamed, 1u);
  for (const Change& change : Must(log().Changes(step))) {
    if (change.path == "created.txt") EXPECT_EQ(change.new_size, 4u);
    if (change.path == "medium.txt") EXPECT_EQ(change.old_size, 4096u);
    if (change.path == "small.txt")
      EXPECT_EQ(std::pair(change.old_size, change.new_size), std::pair(uint64_t{11}, uint64_t{7}));
  }

  OpenLog();
  EXPECT_EQ(ChangeLines(step), wanted) << "the same after reopening";
  EXPECT_EQ(InfoOf(step).label, "a command with \"quotes\"");
  EXPECT_EQ(InfoOf(step).kind, StepKind::kCommand);
  EXPECT_EQ(InfoOf(step).counts.total(), info.counts.total());
  EXPECT_EQ(InfoOf(step).opened, info.opened);
  EXPECT_EQ(InfoOf(step).closed, info.closed);
}

TEST_F(UndoStore, UL_01_AStepCanBeShownAsJson) {
  StartWith(test::SmallTree);
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
    EXPECT_OK(ops().WriteNew("invalid\xff.txt", "a name that is no UTF-8"));
    EXPECT_OK(ops().Unlink("medium.txt"));
  });
  Result<StoreReader> reader = StoreReader::Open(paths());
  ASSERT_OK(reader);
  Result<std::string> shown = reader->Show(step);
  ASSERT_OK(shown);
  EXPECT_OK(ParseJson(*shown));
  EXPECT_THAT(*shown, HasSubstr("small.txt"));
  EXPECT_THAT(*shown, HasSubstr("medium.txt"));
  EXPECT_CODE(reader->Show(StepId{99}), Code::kNotFound);
}

// The founding layout had one file per preimage, written aside and renamed. There is one journal and one pack now, and a
// record counts only as a whole: its length and checksum must be right. So the same promise reads: a torn tail is dropped.
TEST_F(UndoStore, UL_02_ARecordCountsOnlyAsAWhole) {
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    EXPECT_OK(ops().Overwrite("small.txt", "new"));
    EXPECT_OK(ops().Unlink("medium.txt"));
    DieNow();
  });
  const std::string journal = OpenStepFolder(workspace()) + "/journal";
  const Fd file(MustCall(::open(journal.c_str(), O_RDWR | O_CLOEXEC), "open " + journal));
  const Bytes bytes = Must(ReadFully(file.get(), size_t{1} << 30));
  const auto last =
      std::find_if(bytes.rbegin(), bytes.rend(), [](uint8_t byte) { return byte != 0; });
  const auto end = static_cast<size_t>(last.base() - bytes.begin());
  ASSERT_GT(end, 64u);
  // The beginning of a record that looks right and lacks its end: the first bytes of an earlier one.
  const size_t torn_at = (end + 7) / 8 * 8;
  MustCall(::pwrite(file.get(), bytes.data() + 16, 24, static_cast<off_t>(torn_at)), "write");

  OpenLog();
  EXPECT_TRUE(log().recovery().recovered);
  ExpectTree(before);
}

TEST_F(UndoStore, UL_02_ThePreimageIsCompleteBeforeTheOperationHappens) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  const Fd object(
      MustCall(::open(workspace().Path("small.txt").c_str(), O_PATH | O_CLOEXEC), "open"));
  Result<Ticket> ticket = log().interceptor().BeginOpenForWrite(
      {object.get(), "small.txt"}, Truncate::kNo, WriteVisibility::kUnseen);
  ASSERT_OK(ticket);
  bool kept = false;
  for (const std::string& file : FilesBelow(OpenStepFolder(workspace()))) {
    const Fd fd(MustCall(::open(file.c_str(), O_RDONLY | O_CLOEXEC), "open " + file));
    const Bytes bytes = Must(ReadFully(fd.get(), size_t{1} << 30));
    kept = kept || AsText(bytes).find("hello world") != std::string_view::npos;
  }
  EXPECT_TRUE(kept);
  EXPECT_OK(ticket->Commit(Outcome::Done()));
  EXPECT_OK(log().CloseStep());
  ExpectTree(before);
}

TEST_F(UndoStore, UL_03_AStepIsPromotedByOneRename) {
  StartWith(test::SmallTree);
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Overwrite("small.txt", "x"));
  struct stat open_step;
  ASSERT_EQ(::stat(OpenStepFolder(workspace()).c_str(), &open_step), 0);
  EXPECT_THAT(NamesIn(workspace().store() + "/steps"), IsEmpty());
  EXPECT_OK(log().CloseStep());
  struct stat closed_step;
  ASSERT_EQ(::stat(StepFolder(workspace(), StepId{1}).c_str(), &closed_step), 0);
  EXPECT_EQ(open_step.st_ino, closed_step.st_ino) << "the same folder under a new name";
  EXPECT_THAT(FilesBelow(OpenStepFolder(workspace())), IsEmpty());
}

TEST_F(UndoStore, UL_04_AnotherVersionIsRefusedAndLeftAlone) {
  StartWith(test::SmallTree);
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "x")); });
  CloseLog();
  const TreeSnapshot after = Snapshot();
  for (const char* version : {"9999", "9999\n", "garbage", ""}) {
    SCOPED_TRACE(version);
    WriteVersion(version);
    const TreeSnapshot store = Must(TreeSnapshot::Capture(workspace().store() + "/steps"));
    EXPECT_CODE(UndoLog::Open(paths(), options_), Code::kVersion);
    EXPECT_TREE_EQ(store, Must(TreeSnapshot::Capture(workspace().store() + "/steps")));
    ExpectTree(after);
  }
}

TEST_F(UndoStore, UL_05_DiscardAfterAMismatchMakesUndoWorkAgain) {
  StartWith(test::SmallTree);
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "x")); });
  CloseLog();
  const TreeSnapshot after = Snapshot();
  WriteVersion("9999");
  ASSERT_CODE(UndoLog::Open(paths(), options_), Code::kVersion);
  EXPECT_OK(UndoLog::Discard(paths()));
  ExpectTree(after);
  OpenLog();
  EXPECT_THAT(Steps(), IsEmpty());
  EXPECT_CODE(log().Rollback(1), Code::kNotFound);
  ExpectUndone([&] { EXPECT_OK(ops().RemoveTree("src")); });
}

TEST_F(UndoStore, UL_05_DiscardRefusesAStoreInUse) {
  StartWith(test::SmallTree);
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "x")); });
  EXPECT_CODE(UndoLog::Discard(paths()), Code::kLocked);
  RollBack();
  EXPECT_EQ(Content("small.txt"), "hello world");
}

TEST_F(UndoStore, UL_06_ATruncatedManifestIsAnErrorOfThatStepOnly) {
  MakeThreeSteps();
  CloseLog();
  const std::string journal = StepFolder(workspace(), StepId{2}) + "/journal";
  MustCall(::truncate(journal.c_str(), static_cast<off_t>(FileSize(journal) / 2)), "truncate");
  ExpectOnlyStepTwoIsLost();
}

TEST_F(UndoStore, UL_06_AnEmptyOrMissingManifestIsAnErrorOfThatStepOnly) {
  MakeThreeSteps();
  CloseLog();
  MustCall(::unlink((StepFolder(workspace(), StepId{2}) + "/journal").c_str()), "unlink");
  ExpectOnlyStepTwoIsLost();
}

TEST_F(UndoStore, UL_07_AMissingPreimageIsAnErrorOfThatStepOnly) {
  MakeThreeSteps();
  CloseLog();
  const std::vector<std::string> kept = KeptDataOf(workspace(), StepId{2});
  ASSERT_THAT(kept, Not(IsEmpty()));
  for (const std::string& file : kept) MustCall(::unlink(file.c_str()), "unlink");
  ExpectOnlyStepTwoIsLost();
}

TEST_F(UndoStore, UL_07_AMissingAnchorIsReportedForItsPath) {
  StartWith(test::SmallTree);
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Unlink("large.bin"));
    EXPECT_OK(ops().Unlink("medium.txt"));
  });
  CloseLog();
  const TreeSnapshot after = Snapshot();
  for (const std::string& file : KeptDataOf(workspace(), step))
    MustCall(::unlink(file.c_str()), "unlink");
  OpenLog();
  EXPECT_CODE(log().Rollback(1), Code::kCorrupt);
  ExpectTree(after);
  Result<RewindReport> plan = log().PlanRollback(1);
  ASSERT_OK(plan);
  EXPECT_TRUE(HasConflict(plan->conflicts, ConflictKind::kCorrupt, "large.bin"));
  EXPECT_TRUE(HasConflict(plan->conflicts, ConflictKind::kCorrupt, "medium.txt"));
}

TEST_F(UndoStore, UL_08_FlippedBytesOfAPreimageAreDetectedBeforeAnythingIsTouched) {
  MakeThreeSteps();
  CloseLog();
  const std::vector<std::string> kept = KeptDataOf(workspace(), StepId{2});
  ASSERT_THAT(kept, Not(IsEmpty()));
  for (const std::string& file : kept) {
    for (const uint64_t quarter : {1, 3}) FlipByte(file, FileSize(file) * quarter / 4);
  }
  ExpectOnlyStepTwoIsLost();
}

TEST_F(UndoStore, UL_08_DamageToOnePreimageIsReportedForThatPathAlone) {
  options_.compression = Compression::kOff;
  workspace().WriteFile("first.bin", Noise(2000, 1));
  workspace().WriteFile("second.bin", Noise(2000, 2));
  OpenLog();
  InStep([&] {
    EXPECT_OK(ops().WriteAt("first.bin", 0, "x", WriteVisibility::kUnseen));
    EXPECT_OK(ops().WriteAt("second.bin", 0, "x", WriteVisibility::kUnseen));
  });
  CloseLog();
  // Whatever the layout of the file, the bytes of the second preimage are in it as they were.
  const std::string needle = Noise(2000, 2);
  bool damaged = false;
  for (const std::string& file : KeptDataOf(workspace(), StepId{1})) {
    const Fd fd(MustCall(::open(file.c_str(), O_RDONLY | O_CLOEXEC), "open " + file));
    const Bytes bytes = Must(ReadFully(fd.get(), size_t{1} << 30));
    const size_t at = AsText(bytes).find(needle);
    if (at == std::string_view::npos) continue;
    FlipByte(file, at + 500);
    damaged = true;
  }
  ASSERT_TRUE(damaged);
  OpenLog();
  Result<RewindReport> plan = log().PlanRollback(1);
  ASSERT_OK(plan);
  EXPECT_THAT(Lines(plan->conflicts), ElementsAre("corrupt second.bin"));
  EXPECT_CODE(log().Rollback(1), Code::kCorrupt);
}

TEST_F(UndoStore, UL_08_AnAnchorThatSomeoneWroteToIsDetected) {
  StartWith(test::SmallTree);
  const StepId step = InStep([&] { EXPECT_OK(ops().Unlink("large.bin")); });
  log().WaitForBackground();
  CloseLog();
  const std::vector<std::string> kept = KeptDataOf(workspace(), step);
  ASSERT_THAT(kept, Not(IsEmpty()));
  for (const std::string& file : kept) FlipByte(file, FileSize(file) / 2);
  OpenLog();
  EXPECT_CODE(log().Rollback(1), Code::kCorrupt);
  EXPECT_FALSE(workspace().Exists("large.bin"));
}

TEST_F(UndoStore, UL_08_DamageToACompressedPackIsDetected) {
  workspace().WriteFile("text.txt", std::string(100'000, 't') + Noise(5000));
  OpenLog();
  InStep([&] { EXPECT_OK(ops().WriteAt("text.txt", 0, "x", WriteVisibility::kUnseen)); });
  log().WaitForBackground();
  CloseLog();
  const TreeSnapshot after = Snapshot();
  for (const std::string& file : KeptDataOf(workspace(), StepId{1}))
    FlipByte(file, FileSize(file) / 2);
  OpenLog();
  EXPECT_CODE(log().Rollback(1), Code::kCorrupt);
  ExpectTree(after);
}

// The founding test asked for FICLONE with a compressed copy as its fallback. The copy is raw now and compressed later, and
// whether the file system can reflink was asked once, at open.
TEST_F(UndoStore, UL_09_AReflinkIsUsedWhereItWorksAndACopyElsewhere) {
  constexpr size_t kSize = 8u << 20;
  options_.compression = Compression::kOff;
  workspace().WriteFile("big.bin", Noise(kSize));
  test::AgeTree(workspace().project());
  OpenLog();
  const TreeSnapshot before = Snapshot();
  const uint64_t usage = DiskUsage(workspace().store());
  const StepId step = InStep([&] {
    EXPECT_OK(ops().WriteAt("big.bin", 12345, "in the middle", WriteVisibility::kUnseen));
  });
  const std::string file_system = FileSystemName(workspace().project());
  EXPECT_EQ(log().abilities().reflinks, file_system == "btrfs" || file_system == "xfs");
  if (log().abilities().reflinks) {
    EXPECT_LT(InfoOf(step).copied_bytes, 1u << 20);
  } else {
    EXPECT_GE(InfoOf(step).copied_bytes, kSize);
    EXPECT_GE(DiskUsage(workspace().store()), usage + kSize);
  }
  RollBack();
  ExpectTree(before);
}

// Beyond the founding list.

TEST_F(UndoStore, ASecondOwnerIsRefused) {
  StartWith(test::SmallTree);
  const Result<std::unique_ptr<UndoLog>> second = UndoLog::Open(paths(), options_);
  EXPECT_CODE(second, Code::kLocked);
  EXPECT_THAT(second.error().message(), HasSubstr(workspace().store()));
  CloseLog();
  EXPECT_OK(UndoLog::Open(paths(), options_));
}

TEST_F(UndoStore, AnotherProcessIsRefusedWhileTheStoreIsOwned) {
  test::SmallTree(workspace().project());
  RunForked([&] {
    OpenLog();
    RunForked([&] { EXPECT_CODE(UndoLog::Open(paths(), options_), Code::kLocked); });
  });
}

TEST_F(UndoStore, CompressionMakesTheStoreSmallerAndRollbackStaysExact) {
  workspace().WriteFile("text.txt", std::string(200'000, 't'));
  for (int i = 0; i < 20; ++i)
    workspace().WriteFile(fmt::format("{}.txt", i), std::string(4000, 'x'));
  test::AgeTree(workspace().project());
  OpenLog();
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    EXPECT_OK(ops().WriteAt("text.txt", 5, "y", WriteVisibility::kUnseen));
    for (int i = 0; i < 20; ++i) EXPECT_OK(ops().Overwrite(fmt::format("{}.txt", i), "z"));
  });
  log().WaitForBackground();
  uint64_t kept = 0;
  for (const std::string& file : KeptDataOf(workspace(), StepId{1})) kept += FileSize(file);
  EXPECT_LT(kept, 100'000u);
  OpenLog();
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoStore, TheStoreIsPrivateToItsOwner) {
  StartWith(test::SmallTree);
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "x")); });
  struct stat st;
  ASSERT_EQ(::stat(workspace().store().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0077, 0u);
}

TEST_F(UndoStore, StepIdsGoOnAfterReopening) {
  StartWith(test::SmallTree);
  EXPECT_EQ(InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); }), StepId{1});
  OpenLog();
  EXPECT_EQ(InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "2")); }), StepId{2});
  Result<StepId> chosen = log().OpenStep({.id = StepId{40}});
  ASSERT_OK(chosen);
  EXPECT_EQ(*chosen, StepId{40});
  EXPECT_OK(log().CloseStep());
  EXPECT_EQ(InStep([] {}), StepId{41});
}

TEST_F(UndoStore, AnIdThatExistsCannotBeChosenAgain) {
  StartWith(test::SmallTree);
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "1")); });
  EXPECT_FALSE(log().OpenStep({.id = StepId{1}}).ok());
  EXPECT_EQ(log().open_step(), std::nullopt);
}

TEST_F(UndoStore, DurabilityForPowerLossWorksTheSame) {
  options_.durability = Durability::kPower;
  StartWith(test::SmallTree);
  ExpectUndone([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "x"));
    EXPECT_OK(ops().RemoveTree("src"));
    EXPECT_OK(ops().WriteNew("new.txt", "n"));
  });
}

TEST_F(UndoStore, WithoutAStoreTheLocationRuleDecides) {
  Result<std::string> location = StoreLocationFor(workspace().project());
  ASSERT_OK(location);
  EXPECT_THAT(*location, Not(::testing::StartsWith(workspace().project() + "/")))
      << "out of every world's reach";
  Result<std::string> again = StoreLocationFor(workspace().project());
  ASSERT_OK(again);
  EXPECT_EQ(*location, *again);
}

}  // namespace
}  // namespace sandglass::undo
