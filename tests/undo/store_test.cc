// The store on disk (UL-01..09): what is written, when it counts, and what happens when it is damaged.
#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
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

// The registry of projects.

class RecordingSink final : public LogSink {
 public:
  void WriteLine(std::string_view line) override { text += line; }
  std::string text;
};

// Projects "outer", "outer/inner" and "outer-2", each with a store, and a registry.
class UndoRegistry : public UndoTest {
 protected:
  void SetUp() override {
    for (const char* name : {"outer", "outer/inner", "outer-2"})
      MustCall(::mkdir(ProjectAt(name).c_str(), 0755), "mkdir");
  }

  std::string ProjectAt(const std::string& name) const { return workspace().root() + "/" + name; }
  std::string StoreOf(const std::string& name) const {
    return fmt::format("{}/store of {}", workspace().root(), NameOf(name));
  }
  std::string Registry() const { return workspace().root() + "/state/projects"; }
  UndoPaths PathsOf(const std::string& name) const {
    return {.project = ProjectAt(name), .store = StoreOf(name), .registry = Registry()};
  }
  Result<std::unique_ptr<UndoLog>> Open(const std::string& name) {
    return UndoLog::Open(PathsOf(name), options_);
  }
  // As an open and a close; the store stays.
  void Use(const std::string& name) { EXPECT_OK(Open(name)) << name; }

  void ExpectRefused(const std::string& name, const std::string& because_of) {
    const auto opened = Open(name);
    ASSERT_CODE(opened, Code::kForeign);
    const std::string& message = opened.error().message();
    EXPECT_THAT(message, HasSubstr(ProjectAt(because_of)));
    EXPECT_THAT(message, HasSubstr(StoreOf(because_of)));
    EXPECT_THAT(message, HasSubstr("sandglass discard --project " + ProjectAt(because_of)));
  }
  // Without the lock.
  std::vector<std::string> Entries() const {
    std::vector<std::string> names = NamesIn(Registry());
    std::erase(names, "lock");
    return names;
  }
  void WriteEntry(const std::string& name, std::string_view content) const {
    const Fd registry(MustCall(::open(Registry().c_str(), O_PATH | O_DIRECTORY), "open registry"));
    Must(ReplaceFileAt(registry.get(), name.c_str(), content));
  }

 private:
  static std::string NameOf(std::string name) {
    std::replace(name.begin(), name.end(), '/', ' ');
    return name;
  }
};

TEST_F(UndoRegistry, AProjectInsideAnotherIsRefused) {
  Use("outer");
  ExpectRefused("outer/inner", "outer");
  EXPECT_THAT(NamesIn(StoreOf("outer/inner")), IsEmpty()) << "nothing was made for it";
  EXPECT_THAT(Entries(), SizeIs(1));
  Use("outer");
}

TEST_F(UndoRegistry, AProjectAroundAnotherIsRefused) {
  Use("outer/inner");
  ExpectRefused("outer", "outer/inner");
  EXPECT_THAT(Entries(), SizeIs(1));
  Use("outer/inner");
}

TEST_F(UndoRegistry, AProjectIsRefusedWhileTheOtherOneIsOpen) {
  const auto outer = Open("outer");
  ASSERT_OK(outer);
  ExpectRefused("outer/inner", "outer");
}

TEST_F(UndoRegistry, ASymlinkDoesNotHideWhereAProjectLies) {
  Use("outer");
  const std::string link = workspace().root() + "/link";
  MustCall(::symlink(ProjectAt("outer/inner").c_str(), link.c_str()), "symlink");
  EXPECT_CODE(
      UndoLog::Open({.project = link, .store = workspace().store(), .registry = Registry()}),
      Code::kForeign);
}

TEST_F(UndoRegistry, SiblingsDoNotDisturbEachOtherEvenIfOneNameBeginsLikeTheOther) {
  const auto outer = Open("outer"), sibling = Open("outer-2");
  EXPECT_OK(outer);
  EXPECT_OK(sibling);
  EXPECT_THAT(Entries(), SizeIs(2));
}

TEST_F(UndoRegistry, TheSameProjectTwiceIsLockedAsWithoutARegistry) {
  const auto first = Open("outer");
  ASSERT_OK(first);
  EXPECT_CODE(Open("outer"), Code::kLocked);
  EXPECT_THAT(Entries(), SizeIs(1));
}

TEST_F(UndoRegistry, AnEntryWhoseProjectIsGoneIsForgotten) {
  Use("outer/inner");
  MustCall(::rename(ProjectAt("outer/inner").c_str(), ProjectAt("moved away").c_str()), "rename");
  Use("outer");
  EXPECT_THAT(Entries(), SizeIs(1));
}

TEST_F(UndoRegistry, AnEntryWhoseStoreIsGoneIsForgotten) {
  Use("outer/inner");
  Must(test::RemoveTree(StoreOf("outer/inner")));
  Use("outer");
  EXPECT_THAT(Entries(), SizeIs(1));
  ExpectRefused("outer/inner", "outer");
}

TEST_F(UndoRegistry, DiscardForgetsTheProject) {
  Use("outer");
  EXPECT_OK(UndoLog::Discard(PathsOf("outer")));
  EXPECT_THAT(Entries(), IsEmpty());
  Use("outer/inner");
  ExpectRefused("outer", "outer/inner");
}

TEST_F(UndoRegistry, AStoreThatWasDiscardedWithoutTheRegistryDoesNotCount) {
  Use("outer");
  EXPECT_OK(UndoLog::Discard({.project = ProjectAt("outer"), .store = StoreOf("outer")}));
  EXPECT_THAT(Entries(), SizeIs(1));
  Use("outer/inner");
  EXPECT_THAT(Entries(), SizeIs(1));
}

TEST_F(UndoRegistry, DiscardOfAnotherStoreOfTheProjectForgetsNothing) {
  Use("outer");
  EXPECT_OK(UndoLog::Discard(
      {.project = ProjectAt("outer"), .store = workspace().store(), .registry = Registry()}));
  ExpectRefused("outer/inner", "outer");
}

TEST_F(UndoRegistry, AnEntryThatCannotBeReadIsPassedOverWithAWarning) {
  Use("outer");
  const std::string entry = Entries().at(0);
  FakeClock clock;
  for (const std::string& damaged :
       {std::string("garbage"), std::string(), std::string(100'000, 'x'), std::string("[]"),
        std::string(R"({"project":"relative","store":"/s"})"), std::string(R"({"project":"/p"})"),
        fmt::format(R"({{"project":"{}","store":"/s"}})", ProjectAt("outer/inner"))}) {
    SCOPED_TRACE(damaged.substr(0, 80));
    RecordingSink sink;
    options_.log = Logger(sink, clock);
    WriteEntry(entry, damaged);
    Use("outer/inner");
    EXPECT_THAT(sink.text, HasSubstr(entry));
    EXPECT_THAT(Entries(), Contains(entry)) << "it may mean something to somebody";
    EXPECT_OK(UndoLog::Discard(PathsOf("outer/inner")));
    Use("outer");
    ExpectRefused("outer/inner", "outer");
  }
}

TEST_F(UndoRegistry, WhatIsNoEntryIsLeftAlone) {
  Use("outer-2");
  WriteEntry("0123456789abcdef.tmp", "an interrupted write");
  WriteEntry("notes.txt", "a person's");
  RecordingSink sink;
  FakeClock clock;
  options_.log = Logger(sink, clock);
  Use("outer");
  EXPECT_EQ(sink.text, "");
  EXPECT_THAT(Entries(), SizeIs(4));
}

TEST_F(UndoRegistry, ARegistryThatCannotBeMadeOrLockedIsAnError) {
  GiveToOrdinaryUser(workspace());
  const std::string state = workspace().root() + "/state";
  const auto expect_denied = [&] {
    RunForked(
        [&] {
          const auto opened = Open("outer");
          ASSERT_CODE(opened, Code::kDenied);
          EXPECT_THAT(opened.error().message(), HasSubstr(Registry()));
          EXPECT_THAT(NamesIn(StoreOf("outer")), IsEmpty());
        },
        Who::kOrdinaryUser);
  };
  MustCall(::mkdir(state.c_str(), 0755), "mkdir");
  MustCall(::chmod(state.c_str(), 0555), "chmod");
  expect_denied();
  MustCall(::mkdir(Registry().c_str(), 0755), "mkdir");
  MustCall(::chmod(Registry().c_str(), 0555), "chmod");
  expect_denied();
}

TEST_F(UndoRegistry, OfTwoThatOpenAtOnceOnlyOneWins) {
  for (int round = 0; round < 20; ++round) {
    std::latch start(2);
    const auto open = [&](const std::string& name, Result<std::unique_ptr<UndoLog>>& result) {
      start.arrive_and_wait();
      result = Open(name);
    };
    Result<std::unique_ptr<UndoLog>> outer = Error(Code::kIo, ""), inner = Error(Code::kIo, "");
    std::thread one([&] { open("outer", outer); });
    std::thread two([&] { open("outer/inner", inner); });
    one.join();
    two.join();
    ASSERT_NE(outer.ok(), inner.ok());
    EXPECT_CODE(outer.ok() ? inner : outer, Code::kForeign);
    outer = Error(Code::kIo, "closed");
    inner = Error(Code::kIo, "closed");
    EXPECT_OK(UndoLog::Discard(PathsOf("outer")));
    EXPECT_OK(UndoLog::Discard(PathsOf("outer/inner")));
  }
}

TEST_F(UndoRegistry, AStoreAtTheUsualPlaceIsRegisteredAndANamedOneIsNot) {
  const std::string state = workspace().root() + "/state";
  RunForked([&] {
    MustCall(::setenv("SANDGLASS_HOME", state.c_str(), 1), "setenv");
    EXPECT_EQ(Must(RegistryLocation()), Registry());
    EXPECT_OK(UndoLog::Open({.project = ProjectAt("outer"), .store = StoreOf("outer")}));
    EXPECT_THAT(NamesIn(state), IsEmpty());
    EXPECT_OK(UndoLog::Open({.project = ProjectAt("outer"), .store = ""}));
    EXPECT_THAT(Entries(), SizeIs(1));
    EXPECT_CODE(UndoLog::Open({.project = ProjectAt("outer/inner"), .store = ""}), Code::kForeign);
    EXPECT_OK(StoreReader::Open({.project = ProjectAt("outer"), .store = ""}));
  });
}

TEST_F(UndoRegistry, TheStateFolderIsWhereTheEnvironmentOrTheSystemSays) {
  RunForked([&] {
    for (const char* name : {"SANDGLASS_HOME", "XDG_STATE_HOME", "HOME"})
      MustCall(::unsetenv(name), "unsetenv");
    const passwd* user = ::getpwuid(::getuid());
    if (user != nullptr) {
      EXPECT_EQ(Must(RegistryLocation()),
                std::string(user->pw_dir) + "/.local/state/sandglass/projects");
    }
    MustCall(::setenv("SANDGLASS_HOME", "state", 1), "setenv");
    EXPECT_CODE(RegistryLocation(), Code::kInvalid);
    EXPECT_CODE(StoreLocationFor(ProjectAt("outer")), Code::kInvalid);
    MustCall(::unsetenv("SANDGLASS_HOME"), "unsetenv");
    if (::setuid(54321) == 0) EXPECT_CODE(RegistryLocation(), Code::kNotFound);
  });
}

}  // namespace
}  // namespace sandglass::undo
