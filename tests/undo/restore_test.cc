// Restore of single paths: exactness, conflicts, and what keeps it from being told.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/io.h"
#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/history_fixture.h"

namespace sandglass::undo {
namespace {

using test::Must;
using test::MustCall;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class UndoRestore : public UndoHistoryTest {
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

// Nothing of the folder between them was changed, but a symlink is restored by making it anew, which moves the folder's times.
TEST_F(UndoRestore, AFolderBetweenKeepsItsTimes) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives a symlink away";
  MustCall(::mkdir(workspace().Path("top").c_str(), 0755), "mkdir");
  MustCall(::mkdir(workspace().Path("top/between").c_str(), 0755), "mkdir");
  MustCall(::symlink("nowhere", workspace().Path("top/between/link").c_str()), "symlink");
  const TreeSnapshot before = Snapshot();
  const StepId step = InStep([&] { EXPECT_OK(ops().Chown("top/between/link", 1, 1)); });
  EXPECT_OK(Restore(step, {"top"}));
  ExpectTree(before);
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

// A restore that somebody is asked about, and another thread of the world that writes until then.
class UndoRestoreBesideOthers : public UndoRestore {
 protected:
  void SetUp() override {
    UndoRestore::SetUp();
    options_.safeguards.truncate_bytes = 1;
  }
  void TearDown() override {
    if (other_.joinable()) other_.join();
    UndoRestore::TearDown();
  }

  // Restores small.txt and medium.txt; `meanwhile` runs when the first of them is back.
  Result<RewindReport> RestoreAsked(Decision decision, const std::function<void()>& meanwhile) {
    const StepId step = InStep([&] {
      EXPECT_OK(ops().Unlink("medium.txt"));
      EXPECT_OK(ops().Rename("run.sh", "small.txt"));
    });
    ScriptedHandler handler(decision, [&](const SafeguardQuestion&) { meanwhile(); });
    options_.safeguard_handler = &handler;
    OpenLog();
    auto report = Restore(step, {"medium.txt", "small.txt"});
    EXPECT_THAT(handler.kinds(), SizeIs(1));
    if (other_.joinable()) other_.join();
    return report;
  }

  // Gives the other thread the time to get as far as it can.
  void WriteBeside() {
    other_ = std::thread([this] { EXPECT_OK(ops().WriteNew("meanwhile.txt", "kept")); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }

 private:
  std::thread other_;
};

TEST_F(UndoRestoreBesideOthers, ARestoreThatFailsTakesNobodyElsesWritesBack) {
  EXPECT_CODE(RestoreAsked(Decision::kDeny, [&] { WriteBeside(); }), Code::kDenied);
  EXPECT_EQ(Content("meanwhile.txt"), "kept");
}

TEST_F(UndoRestoreBesideOthers, ARestoreIsNotSaidToHaveWrittenWhatOthersWrote) {
  const auto report = RestoreAsked(Decision::kAllow, [&] { WriteBeside(); });
  ASSERT_OK(report);
  EXPECT_THAT(Lines(report->changes), Not(Contains("created meanwhile.txt")));
  EXPECT_EQ(Content("meanwhile.txt"), "kept");
  EXPECT_TRUE(log().open_step().has_value()) << "in an ambient step of its own";
  RollBack(2);
  EXPECT_EQ(Content("meanwhile.txt"), "(missing)");
  EXPECT_EQ(Content("medium.txt"), "(missing)");
}

TEST_F(UndoRestoreBesideOthers, NobodyElseEndsItsStepNorWaitsForItself) {
  EXPECT_OK(RestoreAsked(Decision::kAllow, [&] {
    EXPECT_CODE(log().CloseStep(), Code::kBusy);
    EXPECT_CODE(log().AbortStep(), Code::kBusy);
    EXPECT_CODE(log().Rollback(1), Code::kBusy);
    EXPECT_CODE(ops().WriteNew("from_the_handler.txt", "x"), Code::kBusy);
    EXPECT_OK(log().History());
  }));
  EXPECT_EQ(Content("small.txt"), "hello world");
}

TEST_F(UndoRestore, AnObserverThatWritesIsToldWhenTheRestoreIsOver) {
  WritingObserver observer;
  options_.observer = &observer;
  OpenLog();
  const StepId step = InStep([&] { EXPECT_OK(ops().Unlink("medium.txt")); });
  InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "changed")); });
  workspace().WriteFile("small.txt", "a person's");
  EXPECT_OK(ops().Overwrite("small.txt", "in an ambient step"));  // which the restore closes
  observer.ops = &ops();
  const auto report = Restore(step, {"medium.txt"});
  ASSERT_OK(report);
  EXPECT_THAT(Lines(report->changes), ElementsAre("created medium.txt"));
  EXPECT_EQ(Content("meanwhile.txt"), "kept");
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
  if (kPlainBuild) EXPECT_LT(peak, 6 * kBytes);
  EXPECT_EQ(Content("large7"), Noise(kBytes, 8));
}

class UndoRestoreOfTheLarge : public UndoTest {
 protected:
  static constexpr size_t kBytes = 3 << 20;

  // No step may copy as much as the file holds.
  void StartWithLarge() {
    options_.limits.max_step_copied_bytes = 1 << 20;
    StartWith([&](const std::string&) { workspace().WriteFile("large", Noise(kBytes)); });
  }
  void StartWithSparse(off_t bytes) {
    StartWith([&](const std::string&) {
      workspace().WriteFile("large", "head");
      MustCall(::truncate(workspace().Path("large").c_str(), bytes), "truncate");
    });
  }
  Result<RewindReport> RestoreLarge(StepId step) {
    const std::vector<std::string> paths = {"large"};
    return log().Restore(step, paths);
  }
};

TEST_F(UndoRestoreOfTheLarge, AFileThatIsStillItselfGetsOnlyWhatTheStepKept) {
  StartWithLarge();
  const StepId step = InStep(
      [&] { EXPECT_OK(ops().WriteAt("large", 4096, "changed", WriteVisibility::kAnnounced)); });
  const TreeSnapshot changed = Snapshot();
  const ino_t inode = StatOf("large").st_ino;
  ASSERT_OK(RestoreLarge(step));
  EXPECT_EQ(Content("large"), Noise(kBytes));
  EXPECT_EQ(StatOf("large").st_ino, inode);
  RollBack();
  ExpectTree(changed);
}

TEST_F(UndoRestoreOfTheLarge, AFileThatTookItsPlaceIsKeptWithoutACopy) {
  StartWithLarge();
  const StepId step = InStep([&] {
    EXPECT_OK(ops().Unlink("large"));
    EXPECT_OK(ops().WriteNew("large", Noise(kBytes, 7)));
  });
  const TreeSnapshot changed = Snapshot();
  ASSERT_OK(RestoreLarge(step));
  EXPECT_EQ(Content("large"), Noise(kBytes));
  RollBack();
  ExpectTree(changed);
}

TEST_F(UndoRestoreOfTheLarge, WritesAndTruncationsOfManyStepsAreTurnedBackInOrder) {
  StartWith([&](const std::string&) { workspace().WriteFile("large", Noise(kBytes)); });
  std::vector<std::pair<StepId, std::string>> before;
  const auto note = [&](const std::function<void()>& change) {
    const std::string content = Content("large");
    before.emplace_back(InStep(change), content);
  };
  const auto write = [&](uint64_t offset, size_t bytes, uint64_t seed) {
    EXPECT_OK(ops().WriteAt("large", offset, Noise(bytes, seed), WriteVisibility::kAnnounced));
  };
  note([&] { write(100'000, 300'000, 2); });
  note([&] { EXPECT_OK(ops().TruncateTo("large", 1'000'000)); });
  note([&] { write(999'000, 200'000, 3); });
  note([&] {
    EXPECT_OK(ops().TruncateTo("large", 700'001));
    EXPECT_OK(ops().TruncateTo("large", 2'000'000));
    write(50'000, 100'000, 4);
  });
  note([&] { write(650'000, 70'000, 5); });
  note([&] { EXPECT_OK(ops().Overwrite("large", Noise(400'000, 6))); });
  note([&] { write(0, 10, 7); });
  for (const auto& [step, content] : before) {
    ASSERT_OK(RestoreLarge(step));
    EXPECT_TRUE(Content("large") == content) << "before step " << step.value;
  }
}

TEST_F(UndoRestoreOfTheLarge, FiveGigabytesComeBack) {
  StartWithSparse(5ll << 30);
  const StepId step = InStep([&] { EXPECT_OK(ops().Unlink("large")); });
  ASSERT_OK(RestoreLarge(step));
  EXPECT_EQ(StatOf("large").st_size, 5ll << 30);
  EXPECT_LT(StatOf("large").st_blocks, 1 << 10);
}

TEST_F(UndoRestoreOfTheLarge, TheSizeOfAFileIsNotTakenInMemory) {
  StartWithSparse(1ll << 30);
  const StepId step = InStep([&] { EXPECT_OK(ops().Unlink("large")); });
  const uint64_t peak = PeakSince([&] { EXPECT_OK(RestoreLarge(step)); });
  if (kPlainBuild) EXPECT_LT(peak, 32u << 20);
  EXPECT_EQ(StatOf("large").st_size, 1ll << 30);
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

// What another hand put there.

// An ordinary user's own files, which the mode bits keep even them out of.
class UndoRestoreOfTheClosed : public UndoTest {
 protected:
  void RunAsOwner(const std::function<void()>& body) {
    GiveToOrdinaryUser(workspace());
    RunForked(
        [&] {
          OpenLog();
          body();
        },
        Who::kOrdinaryUser);
  }
  void Restore(StepId step, std::string path) {
    EXPECT_OK(log().Restore(step, std::vector<std::string>{std::move(path)}));
  }
};

TEST_F(UndoRestoreOfTheClosed, AReadOnlyFileComesBack) {
  const TreeBuilder tree(workspace().project());
  tree.File("replaced", "old", 0444);
  tree.File("written", "old", 0644);
  RunAsOwner([&] {
    const StepId step = InStep([&] {
      EXPECT_OK(ops().WriteNew("new", "new", 0444));
      EXPECT_OK(ops().Rename("new", "replaced"));
      EXPECT_OK(ops().Overwrite("written", "new"));
      EXPECT_OK(ops().Chmod("written", 0));
    });
    const TreeSnapshot after = Snapshot();
    Restore(step, "replaced");
    Restore(step, "written");
    EXPECT_EQ(Content("replaced"), "old");
    EXPECT_EQ(StatOf("replaced").st_mode & 07777, 0444u);
    EXPECT_EQ(Content("written"), "old");
    EXPECT_EQ(StatOf("written").st_mode & 07777, 0644u);
    RollBack(2);
    EXPECT_EQ(StatOf("written").st_mode & 07777, 0u);
    EXPECT_EQ(Content("replaced"), "new");
  });
}

TEST_F(UndoRestoreOfTheClosed, AFileComesBackIntoAReadOnlyFolderWhichStaysSo) {
  const TreeBuilder tree(workspace().project());
  tree.Dir("dir", 0755);
  tree.File("dir/file", "old", 0644);
  RunAsOwner([&] {
    const StepId step = InStep([&] {
      EXPECT_OK(ops().Unlink("dir/file"));
      EXPECT_OK(ops().WriteNew("dir/new", "new"));
    });
    InStep([&] { EXPECT_OK(ops().Chmod("dir", 0555)); });
    Restore(step, "dir/file");
    Restore(step, "dir/new");
    EXPECT_EQ(Content("dir/file"), "old");
    EXPECT_EQ(Content("dir/new"), "(missing)");
    EXPECT_EQ(StatOf("dir").st_mode & 07777, 0555u);
    RollBack(2);
    EXPECT_EQ(Content("dir/file"), "(missing)");
    EXPECT_EQ(Content("dir/new"), "new");
    EXPECT_EQ(StatOf("dir").st_mode & 07777, 0555u);
  });
}

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
  EXPECT_TRUE(HasConflict(Must(log().Diff(step)).missing, ConflictKind::kEdited, "large.bin"));
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
    EXPECT_THAT(restored.error().message(), HasSubstr("large.bin"));
    ExpectTree(after);
    const StepDiff diff = Must(log().Diff(step_));
    ASSERT_TRUE(HasConflict(diff.missing, ConflictKind::kCorrupt, "large.bin"));
    EXPECT_THAT(diff.missing.front().detail, HasSubstr(why));
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

TEST_F(UndoRestore, WhatIsSoAlreadyNeedsNoStep) {
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "changed")); });
  EXPECT_OK(Restore(step, {"small.txt"}));
  const size_t steps = Steps().size();
  const auto again = Restore(step, {"small.txt", "medium.txt"});
  ASSERT_OK(again);
  EXPECT_TRUE(again->steps.empty());
  EXPECT_TRUE(again->changes.empty());
  EXPECT_EQ(Steps().size(), steps);
}

// Size and times alone do not tell.
TEST_F(UndoRestore, OtherContentOfTheSameLookIsRestored) {
  const timespec times[2] = {{1, 0}, {1, 0}};
  const std::string path = workspace().Path("small.txt");
  MustCall(::utimensat(AT_FDCWD, path.c_str(), times, 0), "utimensat");
  const StepId step = InStep([&] { EXPECT_OK(ops().Overwrite("small.txt", "HELLO WORLD")); });
  MustCall(::utimensat(AT_FDCWD, path.c_str(), times, 0), "utimensat");
  const RewindReport plan = Must(log().PlanRestore(step, std::vector<std::string>{"small.txt"}));
  EXPECT_THAT(plan.changes, ::testing::SizeIs(1));
  EXPECT_OK(Restore(step, {"small.txt"}, Force::kYes));
  EXPECT_EQ(Content("small.txt"), "hello world");
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

}  // namespace
}  // namespace sandglass::undo
