// Places, disks and stores that are not as they should be: a clear error or a correct undo, and nothing lost.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/io.h"
#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"
#include "undo/place.h"

namespace {
// What the machine's own clock is set forth or back by, for what asks it and not an injected one: time stamps and the heartbeat.
std::atomic<time_t> clock_is_off_by{0};
}  // namespace

extern "C" int clock_gettime(clockid_t clock, struct timespec* now) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += clock_is_off_by;
  return result;
}

namespace sandglass::undo {
namespace {

using namespace std::chrono_literals;
using test::Must;
using test::MustCall;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void MountTmpfs(const std::string& at, const std::string& options) {
  MustCall(::mount("none", at.c_str(), "tmpfs", 0, options.c_str()), "mount tmpfs on " + at);
}
void Bind(const std::string& from, const std::string& to) {
  MustCall(::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr), "bind " + from);
}

class UndoBadPlace : public UndoTest {
 protected:
  // Something of everything, within a step.
  void ChangeMuch(ProjectOps& ops) {
    EXPECT_OK(ops.Overwrite("small.txt", "new content"));
    EXPECT_OK(ops.WriteAt("large.bin", 1000, "in the middle", WriteVisibility::kAnnounced));
    EXPECT_OK(ops.WriteAt("run.sh", 3, "xx", WriteVisibility::kUnseen));
    EXPECT_OK(ops.Unlink("medium.txt"));
    EXPECT_OK(ops.RemoveTree("src/components"));
    EXPECT_OK(ops.Rename("src", "lib"));
    EXPECT_OK(ops.WriteNew("lib/new.rs", "fn new() {}"));
    EXPECT_OK(ops.Chmod("empty.txt", 0600));
    EXPECT_OK(ops.Rename("lib/main.rs", "empty.txt"));
  }
  void ExpectUndoWorks() {
    ExpectUndone([&] { ChangeMuch(ops()); });
  }
  void ExpectOpenFails(Code code, const UndoPaths& where) {
    const Result<std::unique_ptr<UndoLog>> opened = UndoLog::Open(where, options_);
    EXPECT_CODE(opened, code);
    if (!opened.ok()) EXPECT_FALSE(opened.error().message().empty());
  }
};

// With too few descriptors the log does not open; it never opens with a part of its history, whose numbers it would give away again.
TEST_F(UndoBadPlace, AProcessShortOfDescriptorsForgetsNoStep) {
  test::SmallTree(workspace().project());
  OpenLog();
  for (const char* name : {"one", "two", "three"}) {
    InStep([&] { EXPECT_OK(ops().WriteNew(name, "new")); });
  }
  CloseLog();
  constexpr rlim_t kTooFew = 8, kEnough = 48;
  for (rlim_t limit = kTooFew; limit <= kEnough; ++limit) {
    RunForked([&] {
      const rlimit few{limit, limit};
      MustCall(::setrlimit(RLIMIT_NOFILE, &few), "setrlimit");
      const Result<std::unique_ptr<UndoLog>> opened = UndoLog::Open(paths(), options_);
      if (limit == kTooFew) EXPECT_FALSE(opened.ok());
      if (limit == kEnough) EXPECT_OK(opened);
      if (opened.ok()) EXPECT_THAT(Must((*opened)->History()), SizeIs(3)) << limit;
    });
  }
  OpenLog();
  EXPECT_THAT(Must(log().History()), SizeIs(3));
  RollBack(3);
}

TEST_F(UndoBadPlace, AStoreThatCannotBeWrittenToIsRefused) {
  test::SmallTree(workspace().project());
  GiveToOrdinaryUser(workspace());
  MustCall(::chmod(workspace().store().c_str(), 0555), "chmod");
  const TreeSnapshot before = Snapshot();
  RunForked(
      [&] {
        const Result<std::unique_ptr<UndoLog>> opened = UndoLog::Open(paths(), options_);
        ASSERT_CODE(opened, Code::kDenied);
        EXPECT_THAT(opened.error().message(), HasSubstr(workspace().store()));
      },
      Who::kOrdinaryUser);
  ExpectTree(before);
}

TEST_F(UndoBadPlace, AStoreThatCannotBeMadeIsRefused) {
  test::SmallTree(workspace().project());
  GiveToOrdinaryUser(workspace());
  MustCall(::rmdir(workspace().store().c_str()), "rmdir");
  MustCall(::chmod(workspace().root().c_str(), 0555), "chmod");
  RunForked([&] { EXPECT_CODE(UndoLog::Open(paths(), options_), Code::kDenied); },
            Who::kOrdinaryUser);
  MustCall(::chmod(workspace().root().c_str(), 0700), "chmod");
}

TEST_F(UndoBadPlace, AStoreThatBecomesReadOnlyRefusesTheOperation) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  test::SmallTree(workspace().project());
  RunWithPrivateMounts([&] {
    MountTmpfs(workspace().store(), "size=64m");
    OpenLog();
    InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "new")); });
    CloseLog();
    MustCall(
        ::mount(nullptr, workspace().store().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr),
        "remount");
    const TreeSnapshot after = Snapshot();
    EXPECT_FALSE(UndoLog::Open(paths(), options_).ok());
    ExpectTree(after);
    Result<StoreReader> reader = StoreReader::Open(paths());
    ASSERT_OK(reader);
    EXPECT_OK(reader->History());
  });
}

TEST_F(UndoBadPlace, AMissingProjectIsNotFound) {
  ExpectOpenFails(Code::kNotFound,
                  {.project = workspace().root() + "/none", .store = workspace().store()});
}

TEST_F(UndoBadPlace, AProjectThatIsNoFolderIsRefused) {
  workspace().WriteFile("file", "x");
  EXPECT_FALSE(
      UndoLog::Open({.project = workspace().Path("file"), .store = workspace().store()}, options_)
          .ok());
}

TEST_F(UndoBadPlace, AStoreInsideTheProjectIsRefused) {
  test::SmallTree(workspace().project());
  workspace().MakeDir("store");
  const TreeSnapshot before = Snapshot();
  EXPECT_FALSE(UndoLog::Open({.project = workspace().project(), .store = workspace().Path("store")},
                             options_)
                   .ok());
  ExpectTree(before);
}

TEST_F(UndoBadPlace, AStoreOnAnotherFileSystemCopiesAndIsExact) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  test::SmallTree(workspace().project());
  RunWithPrivateMounts([&] {
    MountTmpfs(workspace().store(), "size=256m");
    OpenLog();
    EXPECT_FALSE(log().abilities().links);
    EXPECT_FALSE(log().abilities().reflinks);
    ExpectUndoWorks();
    const StepId step = InStep([&] { EXPECT_OK(ops().Unlink("large.bin")); });
    EXPECT_GE(InfoOf(step).copied_bytes, 1'000'000u);
    RollBack();
  });
}

TEST_F(UndoBadPlace, OdditiesSurviveAStoreOnAnotherFileSystem) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  test::WeirdTree(workspace().project(), test::LockedFiles::kOmit);
  RunWithPrivateMounts([&] {
    MountTmpfs(workspace().store(), "size=256m");
    OpenLog();
    ExpectUndone([&] {
      for (const std::string& name : NamesIn(workspace().project()))
        EXPECT_OK(ops().RemoveTree(name)) << name;
    });
  });
}

// One file system, two mounts: link and rename between them are refused by the kernel all the same.
TEST_F(UndoBadPlace, AStoreBehindAnotherMountCopiesAndIsExact) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  test::SmallTree(workspace().project());
  RunWithPrivateMounts([&] {
    Bind(workspace().store(), workspace().store());
    OpenLog();
    EXPECT_FALSE(log().abilities().links);
    ExpectUndoWorks();
  });
}

TEST_F(UndoBadPlace, AProjectBehindAnotherMountCopiesAndIsExact) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  test::SmallTree(workspace().project());
  RunWithPrivateMounts([&] {
    Bind(workspace().project(), workspace().project());
    OpenLog();
    ExpectUndoWorks();
  });
}

TEST_F(UndoBadPlace, StepsMadeThroughOneMountCanBeRolledBackThroughAnother) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  OpenLog();
  InStep([&] { ChangeMuch(ops()); });
  CloseLog();
  RunWithPrivateMounts([&] {
    Bind(workspace().store(), workspace().store());
    OpenLog();
    RollBack();
    ExpectTree(before);
  });
  ExpectTree(before);
}

TEST_F(UndoBadPlace, AMovedProjectKeepsItsUndoOrIsRefused) {
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  InStep([&] { ChangeMuch(ops()); });
  CloseLog();
  const TreeSnapshot after = Snapshot();
  const std::string moved = workspace().root() + "/moved";
  MustCall(::rename(workspace().project().c_str(), moved.c_str()), "rename");
  ExpectOpenFails(Code::kNotFound, paths());
  Result<std::unique_ptr<UndoLog>> opened =
      UndoLog::Open({.project = moved, .store = workspace().store()}, options_);
  if (opened.ok()) {
    EXPECT_OK((*opened)->Rollback(1));
    EXPECT_TREE_EQ(before, Must(TreeSnapshot::Capture(moved)));
  } else {
    EXPECT_CODE(opened, Code::kForeign);
    EXPECT_TREE_EQ(after, Must(TreeSnapshot::Capture(moved)));
    MustCall(::rename(moved.c_str(), workspace().project().c_str()), "rename");
    OpenLog();
    RollBack();
    ExpectTree(before);
  }
}

TEST_F(UndoBadPlace, AProjectReplacedByAnotherFolderIsRefused) {
  StartWith(test::SmallTree);
  InStep([&] { ChangeMuch(ops()); });
  CloseLog();
  MustCall(::rename(workspace().project().c_str(), (workspace().root() + "/away").c_str()),
           "rename");
  MustCall(::mkdir(workspace().project().c_str(), 0755), "mkdir");
  test::SmallTree(workspace().project());
  const TreeSnapshot replaced = Snapshot();
  ExpectOpenFails(Code::kForeign, paths());
  ExpectTree(replaced);

  // The old folder comes back: so does its undo.
  MustCall(::rename(workspace().project().c_str(), (workspace().root() + "/impostor").c_str()),
           "rename");
  MustCall(::rename((workspace().root() + "/away").c_str(), workspace().project().c_str()),
           "rename");
  OpenLog();
  RollBack();
  EXPECT_TREE_EQ(replaced, Snapshot());
}

TEST_F(UndoBadPlace, ACrashedStepIsNotRolledBackIntoAnotherFolder) {
  test::SmallTree(workspace().project());
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    ChangeMuch(ops());
    DieNow();
  });
  MustCall(::rename(workspace().project().c_str(), (workspace().root() + "/away").c_str()),
           "rename");
  MustCall(::mkdir(workspace().project().c_str(), 0755), "mkdir");
  workspace().WriteFile("small.txt", "another project");
  const TreeSnapshot other = Snapshot();
  ExpectOpenFails(Code::kForeign, paths());
  ExpectTree(other);
}

TEST_F(UndoBadPlace, AnotherProjectsStoreIsRefused) {
  StartWith(test::SmallTree);
  InStep([&] { ChangeMuch(ops()); });
  CloseLog();
  const TempWorkspace other;
  test::SmallTree(other.project());
  const TreeSnapshot before = other.Snapshot();
  const TreeSnapshot store = Must(TreeSnapshot::Capture(workspace().store()));
  ExpectOpenFails(Code::kForeign, {.project = other.project(), .store = workspace().store()});
  EXPECT_TREE_EQ(before, other.Snapshot());
  EXPECT_TREE_EQ(store, Must(TreeSnapshot::Capture(workspace().store())));
  OpenLog();
  EXPECT_THAT(Steps(), SizeIs(1));
}

TEST_F(UndoBadPlace, AFutureVersionIsRefusedAndItsContentKept) {
  StartWith(test::SmallTree);
  InStep([&] { ChangeMuch(ops()); });
  CloseLog();
  const std::string version = workspace().store() + "/version";
  const Fd store(
      MustCall(::open(workspace().store().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC), "open"));
  const std::string current = Must(ReadFileAt(store.get(), "version", 100));
  Must(ReplaceFileAt(store.get(), "version", "4000000000"));
  Must(ReplaceFileAt(store.get(), "probe.a", "the future's own"));
  const TreeSnapshot before = Must(TreeSnapshot::Capture(workspace().store()));
  ExpectOpenFails(Code::kVersion, paths());
  EXPECT_CODE(StoreReader::Open(paths()), Code::kVersion);
  EXPECT_TREE_EQ(before, Must(TreeSnapshot::Capture(workspace().store())));
  Must(ReplaceFileAt(store.get(), "version", current));
  OpenLog();
  EXPECT_THAT(Steps(), SizeIs(1)) << "nothing was lost by looking";
}

TEST_F(UndoBadPlace, AFolderMadeForAStoreThatIsThenRefusedGoesAgain) {
  const UndoPaths fresh{.project = workspace().project(), .store = workspace().root() + "/fresh"};
  const auto exists = [&] { return ::access(fresh.store.c_str(), F_OK) == 0; };
  {
    auto place = OpenPlace(fresh, StoreAccess::kReadWrite);
    ASSERT_OK(place);
    EXPECT_TRUE(exists());
  }
  EXPECT_FALSE(exists());
  MustCall(::mkdir(fresh.store.c_str(), 0700), "mkdir");
  ASSERT_OK(OpenPlace(fresh, StoreAccess::kReadWrite));
  EXPECT_TRUE(exists()) << "it was there before";
}

TEST_F(UndoBadPlace, AFolderWithoutALockThatIsNotOursGetsNone) {
  test::SmallTree(workspace().project());
  const TreeBuilder folder(workspace().store());
  folder.File("version", "2\n");
  folder.Dir("steps");
  const TreeSnapshot before = Must(TreeSnapshot::Capture(workspace().store()));
  ExpectOpenFails(Code::kVersion, paths());
  EXPECT_TREE_EQ(before, Must(TreeSnapshot::Capture(workspace().store())));
}

// Time.

TEST_F(UndoBadPlace, AClockThatGoesBackwardsDisturbsNothing) {
  FakeClock clock;
  options_.clock = &clock;
  StartWith(test::SmallTree);
  std::vector<TreeSnapshot> states = {Snapshot()};
  for (int i = 1; i <= 4; ++i) {
    InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", fmt::format("{}", i))); });
    states.push_back(Snapshot());
    clock.Advance(-1h);
  }
  OpenLog();
  std::vector<int64_t> ids;
  for (const StepInfo& step : Steps()) ids.push_back(step.id.value);
  EXPECT_THAT(ids, ElementsAre(1, 2, 3, 4)) << "the order of steps is not that of clocks";
  for (size_t i = 4; i > 0; --i) {
    RollBack();
    EXPECT_TREE_EQ(states[i - 1], Snapshot());
  }
}

TEST_F(UndoBadPlace, AnAmbientStepSurvivesAClockThatGoesBackwards) {
  FakeClock clock;
  options_.clock = &clock;
  StartWith(test::SmallTree);
  const TreeSnapshot before = Snapshot();
  EXPECT_OK(ops().Overwrite("small.txt", "x"));
  clock.Advance(-24h);
  EXPECT_OK(log().Tick());
  EXPECT_OK(ops().Overwrite("small.txt", "y"));
  EXPECT_OK(log().Tick());
  clock.Advance(48h);
  EXPECT_OK(log().Tick());
  EXPECT_EQ(log().open_step(), std::nullopt);
  RollBack(static_cast<uint32_t>(Steps().size()));
  ExpectTree(before);
}

TEST_F(UndoBadPlace, RecoveryWorksWithAClockThatWentBackwards) {
  FakeClock clock;
  options_.clock = &clock;
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    ChangeMuch(ops());
    DieNow();
  });
  clock.Advance(-1000h);
  OpenLog();
  EXPECT_TRUE(log().recovery().recovered);
  ExpectTree(before);
}

// An earlier heartbeat would make what the step itself wrote before look like somebody's edit after the crash.
TEST_F(UndoBadPlace, AClockThatIsSetBackWithinAStepDoesNotStopTheHeart) {
  options_.heartbeat = 0ms;  // only records beat
  test::SmallTree(workspace().project());
  const TreeSnapshot before = Snapshot();
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    ChangeMuch(ops());
    clock_is_off_by = -10;
    EXPECT_OK(ops().WriteNew("late.txt", "by a clock that was set back"));
    DieNow();
  });
  OpenLog();
  EXPECT_TRUE(log().recovery().recovered);
  EXPECT_THAT(Lines(log().recovery().rewind.conflicts), IsEmpty());
  ExpectTree(before);
}

// Odd mounts.

TEST_F(UndoBadPlace, AProjectOnOverlayfsIsCopiedAndExact) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  const std::string base = workspace().root() + "/overlay";
  for (const char* dir : {"", "/lower", "/upper", "/work"})
    MustCall(::mkdir((base + dir).c_str(), 0755), "mkdir");
  test::SmallTree(base + "/lower");
  RunWithPrivateMounts([&] {
    const std::string options =
        fmt::format("lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work", base);
    MustCall(::mount("overlay", workspace().project().c_str(), "overlay", 0, options.c_str()),
             "mount overlay");
    OpenLog();
    EXPECT_EQ(log().abilities().file_system, "overlayfs");
    EXPECT_FALSE(log().abilities().links);
    const TreeSnapshot before = Snapshot();
    InStep([&] {
      EXPECT_OK(ops().Overwrite("small.txt", "new content"));
      EXPECT_OK(ops().WriteAt("large.bin", 1000, "in the middle", WriteVisibility::kUnseen));
      EXPECT_OK(ops().Unlink("medium.txt"));
      EXPECT_OK(ops().RemoveTree("src/components"));
      EXPECT_OK(ops().WriteNew("src/new.rs", "fn new() {}"));
      EXPECT_OK(ops().Chmod("run.sh", 0600));
    });
    RollBack();
    ExpectTree(before);
  });
}

TEST_F(UndoBadPlace, ASubmountInsideTheProjectIsNeitherCapturedNorChanged) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  test::SmallTree(workspace().project());
  workspace().MakeDir("mnt");
  RunWithPrivateMounts([&] {
    MountTmpfs(workspace().Path("mnt"), "size=16m");
    workspace().WriteFile("mnt/foreign.txt", "on another file system");
    OpenLog();
    const TreeSnapshot before = Snapshot();
    ASSERT_OK(log().OpenStep({}));
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));

    // The bridge would offer it; nobody could take it back.
    const Fd mount(MustCall(
        ::open(workspace().Path("mnt").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC), "open"));
    const Fd file(
        MustCall(::open(workspace().Path("mnt/foreign.txt").c_str(), O_PATH | O_CLOEXEC), "open"));
    Interceptor& interceptor = log().interceptor();
    const auto refused = AnyOf(Code::kUnsupported, Code::kOutsideRoot, Code::kNotRestorable);
    const auto expect_refused = [&](const Result<Ticket>& ticket) {
      ASSERT_FALSE(ticket.ok());
      EXPECT_THAT(ticket.error().code(), refused);
    };
    expect_refused(interceptor.BeginRemove({{mount.get(), "mnt"}, "foreign.txt"}));
    expect_refused(interceptor.BeginCreate({{mount.get(), "mnt"}, "new.txt"}, NodeType::kFile));
    expect_refused(
        interceptor.BeginContent({file.get(), "mnt/foreign.txt"}, ContentChange::Whole()));
    expect_refused(interceptor.BeginMetadata({file.get(), "mnt/foreign.txt"}));

    EXPECT_OK(log().CloseStep());
    RollBack();
    ExpectTree(before);
    EXPECT_EQ(Content("mnt/foreign.txt"), "on another file system");
  });
}

}  // namespace
}  // namespace sandglass::undo
