// A full disk: every operation works or is refused, the log stays valid, and nothing is lost.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>

#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using test::Must;
using test::MustCall;

void MountTmpfs(const std::string& at, const std::string& options) {
  MustCall(::mount("none", at.c_str(), "tmpfs", 0, options.c_str()), "mount tmpfs on " + at);
}

// Project and store share a small file system, so that every write of either can fail.
class UndoFullDisk : public UndoTest {
 protected:
  // Leaves about `free_kib` free.
  static void FillUp(const std::string& filler, uint64_t free_kib) {
    const Fd file(MustCall(::open(filler.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
                           "open filler"));
    struct statvfs info;
    MustCall(::fstatvfs(file.get(), &info), "statvfs");
    const uint64_t available = info.f_bavail * info.f_frsize;
    if (available <= free_kib * 1024) return;
    const std::string chunk(64 * 1024, 'f');
    uint64_t left = available - free_kib * 1024;
    while (left > 0) {
      const ssize_t written =
          ::write(file.get(), chunk.data(), std::min<uint64_t>(left, chunk.size()));
      if (written <= 0) return;
      left -= static_cast<uint64_t>(written);
    }
  }
  // Every operation works or is refused with kNoSpace; the step closes at the latest when there is room again, and its
  // rollback is exact.
  void ExpectNothingLost(uint64_t free_kib) {
    SCOPED_TRACE(fmt::format("{} KiB free", free_kib));
    const std::string filler = workspace().root() + "/small/filler";
    const TreeSnapshot before = Must(TreeSnapshot::Capture(project_));
    const Result<StepId> step = log().OpenStep({});
    ASSERT_OK(step);
    FillUp(filler, free_kib);
    const std::function<Status()> operations[] = {
        [&] { return ops().Overwrite("small.txt", "new"); },
        [&] { return ops().WriteAt("large.bin", 5000, "new", WriteVisibility::kUnseen); },
        [&] { return ops().WriteAt("medium.txt", 0, "new", WriteVisibility::kAnnounced); },
        [&] { return ops().Unlink("run.sh"); },
        [&] { return ops().Rename("src/main.rs", "empty.txt"); },
        [&] { return ops().Mkdir("made"); },
        [&] { return ops().WriteNew("created.txt", "x"); },
        [&] { return ops().Chmod("src", 0700); },
        [&] { return ops().RemoveTree("src/components"); },
    };
    for (const auto& operation : operations) {
      const Status done = operation();
      if (!done.ok()) EXPECT_CODE(done, Code::kNoSpace);
    }
    if (const auto closed = log().CloseStep(); !closed.ok()) {
      EXPECT_CODE(closed, Code::kNoSpace);
      MustCall(::truncate(filler.c_str(), 0), "truncate");
      EXPECT_OK(log().CloseStep());
    }
    MustCall(::truncate(filler.c_str(), 0), "truncate");
    if (!Steps().empty() && Steps().back().counts.total() > 0) RollBack();
    EXPECT_TREE_EQ(before, Must(TreeSnapshot::Capture(project_)));
  }
  void OpenOnSmallDisk(const std::string& size) {
    const std::string small = workspace().root() + "/small";
    MustCall(::mkdir(small.c_str(), 0755), "mkdir");
    MountTmpfs(small, "size=" + size);
    project_ = small + "/project";
    store_ = small + "/store";
    MustCall(::mkdir(project_.c_str(), 0755), "mkdir");
    test::SmallTree(project_);
    log_ = Must(UndoLog::Open({.project = project_, .store = store_}, options_));
    ops_ = std::make_unique<ProjectOps>(*log_, project_);
  }

  std::string project_, store_;
};

TEST_F(UndoFullDisk, EveryWriteMayFailAndNothingIsLost) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  RunWithPrivateMounts([&] {
    OpenOnSmallDisk("64m");
    for (const uint64_t free_kib : {0, 4, 8, 16, 32, 64, 128, 512, 1024, 1100, 2048})
      ExpectNothingLost(free_kib);
    CloseLog();
  });
}

TEST_F(UndoFullDisk, TheNextOpenWorksAfterACrashOnAFullDisk) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  RunWithPrivateMounts([&] {
    OpenOnSmallDisk("64m");
    CloseLog();
    const std::string filler = workspace().root() + "/small/filler";
    const TreeSnapshot before = Must(TreeSnapshot::Capture(project_));
    RunUntilDeath([&] {
      log_ = Must(UndoLog::Open({.project = project_, .store = store_}, options_));
      ops_ = std::make_unique<ProjectOps>(*log_, project_);
      ASSERT_OK(log().OpenStep({}));
      EXPECT_OK(ops().WriteAt("large.bin", 1000, "changed", WriteVisibility::kAnnounced));
      EXPECT_OK(ops().Unlink("medium.txt"));
      EXPECT_OK(ops().Overwrite("small.txt", "changed"));
      FillUp(filler, 0);
      (void)ops().WriteAt("large.bin", 500'000, "changed", WriteVisibility::kAnnounced);
      (void)ops().Unlink("run.sh");
      DieNow();
    });
    // Either there is room enough for recovery, or it says so and works once there is.
    Result<std::unique_ptr<UndoLog>> opened =
        UndoLog::Open({.project = project_, .store = store_}, options_);
    if (!opened.ok()) {
      EXPECT_CODE(opened, Code::kNoSpace);
      MustCall(::truncate(filler.c_str(), 0), "truncate");
      opened = UndoLog::Open({.project = project_, .store = store_}, options_);
      ASSERT_OK(opened);
    }
    EXPECT_TREE_EQ(before, Must(TreeSnapshot::Capture(project_)));
  });
}

TEST_F(UndoFullDisk, ARollbackWithoutRoomIsRefusedOrDoneButNeverHalfDone) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  RunWithPrivateMounts([&] {
    OpenOnSmallDisk("32m");
    const std::string filler = workspace().root() + "/small/filler";
    const TreeSnapshot before = Must(TreeSnapshot::Capture(project_));
    InStep([&] {
      EXPECT_OK(ops().TruncateTo("large.bin", 10));
      EXPECT_OK(ops().Overwrite("medium.txt", ""));
      EXPECT_OK(ops().RemoveTree("src"));
    });
    const TreeSnapshot after = Must(TreeSnapshot::Capture(project_));
    for (const uint64_t free_kib : {0, 64, 600}) {
      SCOPED_TRACE(free_kib);
      FillUp(filler, free_kib);
      const Result<RewindReport> rolled_back = log().Rollback(1);
      MustCall(::truncate(filler.c_str(), 0), "truncate");
      if (rolled_back.ok()) {
        EXPECT_TREE_EQ(before, Must(TreeSnapshot::Capture(project_)));
        EXPECT_OK(log().Redo(1));
      } else {
        EXPECT_CODE(rolled_back, Code::kNoSpace);
      }
      EXPECT_TREE_EQ(after, Must(TreeSnapshot::Capture(project_)));
    }
    RollBack();
    EXPECT_TREE_EQ(before, Must(TreeSnapshot::Capture(project_)));
    CloseLog();
  });
}

class UndoFullDiskWithRedo : public UndoFullDisk {
 protected:
  // One step to take back, which needs 6 MiB, and one to redo, which holds `redo_bytes`.
  void OpenWithRedo(size_t redo_bytes) {
    OpenOnSmallDisk("32m");
    InStep([&] {
      EXPECT_OK(ops().WriteNew("huge.bin", Noise(6 << 20)));
      EXPECT_OK(ops().WriteNew("other.bin", "x"));
    });
    before_ = Must(TreeSnapshot::Capture(project_));
    InStep([&] { EXPECT_OK(ops().WriteAt("huge.bin", 0, "changed", WriteVisibility::kUnseen)); });
    InStep([&] { EXPECT_OK(ops().Overwrite("other.bin", Noise(redo_bytes))); });
    RollBack();
    ASSERT_EQ(log().redo_depth(), 1u);
    log().WaitForBackground();
  }
  std::string Filler() const { return workspace().root() + "/small/filler"; }

  TreeSnapshot before_;  // the step that is to be taken back
};

TEST_F(UndoFullDiskWithRedo, ARollbackThatIsRefusedAllTheSameCostsNoRedo) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  RunWithPrivateMounts([&] {
    OpenWithRedo(1);
    FillUp(Filler(), 2048);
    EXPECT_CODE(log().Rollback(1), Code::kNoSpace);
    EXPECT_EQ(log().redo_depth(), 1u);
    MustCall(::truncate(Filler().c_str(), 0), "truncate");
    RedoSteps();
    CloseLog();
  });
}

TEST_F(UndoFullDiskWithRedo, RedoIsGivenUpWhereThatMakesRoom) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  RunWithPrivateMounts([&] {
    OpenWithRedo(4 << 20);
    FillUp(Filler(), 5 << 10);
    EXPECT_OK(log().Rollback(1));
    EXPECT_EQ(log().redo_depth(), 1u) << "only the newest";
    EXPECT_TREE_EQ(before_, Must(TreeSnapshot::Capture(project_)));
    CloseLog();
  });
}

TEST_F(UndoFullDisk, OpeningOnAFullDiskIsRefusedClearly) {
  if (const auto why = WhyNoPrivateMounts()) GTEST_SKIP() << *why;
  RunWithPrivateMounts([&] {
    const std::string small = workspace().root() + "/small";
    MustCall(::mkdir(small.c_str(), 0755), "mkdir");
    MountTmpfs(small, "size=8m");
    MustCall(::mkdir((small + "/project").c_str(), 0755), "mkdir");
    FillUp(small + "/filler", 0);
    const UndoPaths where{.project = small + "/project", .store = small + "/store"};
    if (const auto opened = UndoLog::Open(where, options_); !opened.ok())
      EXPECT_CODE(opened, Code::kNoSpace);
    MustCall(::truncate((small + "/filler").c_str(), 0), "truncate");
    EXPECT_OK(UndoLog::Open(where, options_));
  });
}

}  // namespace
}  // namespace sandglass::undo
