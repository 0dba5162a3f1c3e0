// What the store could not hold, has lost or cannot reach now is never taken for nothing: the operation is refused, or the rollback is.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace {
// FS_IOC_GETFSUUID came with Linux 6.9.
bool kernel_tells_no_uuid = false;
}  // namespace

extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list args;
  va_start(args, request);
  void* argument = va_arg(args, void*);
  va_end(args);
  const bool asks_uuid = ((request >> 8) & 0xff) == 0x15 && (request & 0xff) == 0;
  if (kernel_tells_no_uuid && asks_uuid) {
    errno = ENOTTY;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_ioctl, fd, request, argument));
}

namespace sandglass::undo {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class UndoDistrust : public UndoTest {
 protected:
  void SetUp() override { options_.compression = Compression::kOff; }
  void Start() {
    test::AgeTree(workspace().project());
    OpenLog();
  }
};

// --- What no reader would take is not written.

// A file with as many attributes as asked for, made by a person.
class UndoManyXattrs : public UndoDistrust {
 protected:
  static std::string Name(int n) { return fmt::format("user.x{}", n); }
  bool Give(std::string_view path, int count, const std::string& value) {
    for (int n = 0; n < count; ++n) {
      if (::setxattr(workspace().Path(path).c_str(), Name(n).c_str(), value.data(), value.size(),
                     0) != 0)
        return false;
    }
    return true;
  }
  // What cannot be recorded is refused, and the rest of the step is undone exactly.
  void ExpectRefusedAndTheRestUndone() {
    workspace().WriteFile("precious", "precious");
    Start();
    const TreeSnapshot before = Snapshot();
    InStep([&] {
      EXPECT_CODE(ops().Chmod("a", 0600), Code::kNotRestorable);
      EXPECT_CODE(ops().Overwrite("a", "new"), Code::kNotRestorable);
      EXPECT_OK(ops().Unlink("precious"));
    });
    EXPECT_THAT(RollBack().warnings, IsEmpty());
    ExpectTree(before);
  }
};

TEST_F(UndoManyXattrs, ARecordLargerThanAnyReaderTakesIsRefused) {
  workspace().WriteFile("a", "old");
  if (!Give("a", 300, Noise(60000))) GTEST_SKIP() << "no room for so many attributes";
  ExpectRefusedAndTheRestUndone();
}

TEST_F(UndoManyXattrs, MoreAttributesThanAnyReaderTakesAreRefused) {
  workspace().WriteFile("a", "old");
  if (!Give("a", 4200, "v")) GTEST_SKIP() << "no room for so many attributes";
  ExpectRefusedAndTheRestUndone();
}

TEST_F(UndoManyXattrs, AStepCannotGiveAFileMoreThanItsRollbackCouldRecord) {
  workspace().WriteFile("a", "old");
  Start();
  const TreeSnapshot before = Snapshot();
  const std::string value = Noise(60000);
  int given = 0;
  InStep([&] {
    Status set;
    while (given < 300 && set.ok()) {
      set = ops().SetXattr("a", Name(given), value);
      if (set.ok()) ++given;
    }
    EXPECT_FALSE(set.ok());
  });
  if (given < 200) GTEST_SKIP() << "no room for so many attributes";
  RollBack();
  ExpectTree(before);
  RedoSteps();
  EXPECT_GT(::getxattr(workspace().Path("a").c_str(), Name(given - 1).c_str(), nullptr, 0), 0);
}

// --- What the store has lost does not hide an edit.

class UndoLostTable : public UndoDistrust {
 protected:
  std::string Table() const { return workspace().store() + "/objects"; }
  // Two steps, of which the older one changed `a`.
  void MakeSteps() {
    workspace().WriteFile("a", "old");
    workspace().MakeDir("d");
    Start();
    InStep([&] { EXPECT_OK(ops().Overwrite("a", "by the step")); });
    InStep([&] { EXPECT_OK(ops().WriteNew("d/other", "x")); });
    CloseLog();
  }
  // The entry of the only file with the size of `a`.
  void FlipSignatureOfA() {
    std::ifstream in(Table(), std::ios::binary);
    const std::string all((std::istreambuf_iterator<char>(in)), {});
    for (size_t at = 0; at + 64 <= all.size(); at += 64) {
      uint32_t kind = 0;
      uint64_t size = 0;
      std::memcpy(&kind, &all[at + 4], sizeof(kind));
      std::memcpy(&size, &all[at + 24], sizeof(size));
      if (kind == 1 && size == Content("a").size()) FlipByte(Table(), at + 40);
    }
  }
  void ExpectTheEditIsSeen() {
    workspace().WriteFile("a", "by a person!!");
    OpenLog();
    EXPECT_THAT(log().recovery().rewind.warnings, Not(IsEmpty()));
    EXPECT_CODE(log().Rollback(2), Code::kConflict);
    EXPECT_EQ(Content("a"), "by a person!!");
  }
  void ExpectUneditedIsUndone() {
    OpenLog();
    RollBack(2);
    EXPECT_EQ(Content("a"), "old");
    EXPECT_FALSE(workspace().Exists("d/other"));
    OpenLog();
    EXPECT_THAT(log().recovery().rewind.warnings, IsEmpty()) << "it is told once";
  }
};

TEST_F(UndoLostTable, AFlippedSignatureDoesNotHideAnEdit) {
  MakeSteps();
  FlipSignatureOfA();
  ExpectTheEditIsSeen();
}
TEST_F(UndoLostTable, AMissingTableDoesNotHideAnEdit) {
  MakeSteps();
  ASSERT_EQ(::unlink(Table().c_str()), 0);
  ExpectTheEditIsSeen();
}
TEST_F(UndoLostTable, ATableThatWasCutOffDoesNotHideAnEdit) {
  MakeSteps();
  ASSERT_EQ(::truncate(Table().c_str(), 64), 0);
  ExpectTheEditIsSeen();
}
TEST_F(UndoLostTable, WhatNobodyEditedCanBeUndoneWithoutTheTable) {
  MakeSteps();
  ASSERT_EQ(::unlink(Table().c_str()), 0);
  ExpectUneditedIsUndone();
}
TEST_F(UndoLostTable, WhatNobodyEditedCanBeUndoneInSpiteOfAFlippedSignature) {
  MakeSteps();
  FlipSignatureOfA();
  ExpectUneditedIsUndone();
}

TEST_F(UndoLostTable, AHugeTableTakesNoMemoryAndIsMadeAnew) {
  MakeSteps();
  if (::truncate(Table().c_str(), off_t{100} << 30) != 0)
    GTEST_SKIP() << "no file is so large here";
  RunForked([&] {
    const rlimit limit{3ull << 30, 3ull << 30};
    if (kPlainBuild) ASSERT_EQ(::setrlimit(RLIMIT_DATA, &limit), 0);
    ASSERT_OK(UndoLog::Open(paths(), options_));
  });
  EXPECT_LT(FileSize(Table()), 1u << 20);
  ExpectUneditedIsUndone();
}

class UndoLostBarriers : public UndoDistrust {
 protected:
  std::string File() const { return workspace().store() + "/barriers"; }
  // A person's edit between two steps that both overwrite it.
  void MakeBarrier() {
    workspace().WriteFile("a", "old");
    Start();
    InStep([&] { EXPECT_OK(ops().Overwrite("a", "step one")); });
    workspace().WriteFile("a", "by a person!!");
    InStep([&] { EXPECT_OK(ops().Overwrite("a", "step two two")); });
    ASSERT_THAT(Barriers(), SizeIs(1));
    CloseLog();
  }
};

TEST_F(UndoLostBarriers, NoFlippedByteHidesAnEdit) {
  MakeBarrier();
  const uint64_t size = FileSize(File());
  for (uint64_t at = 0; at < size; ++at) {
    SCOPED_TRACE(at);
    FlipByte(File(), at);
    OpenLog();
    EXPECT_THAT(log().recovery().rewind.warnings, SizeIs(1));
    RollBack();
    EXPECT_EQ(Content("a"), "by a person!!");
    EXPECT_CODE(log().Rollback(1), Code::kConflict);
    RedoSteps();
    CloseLog();
    // As it was, for the next byte: the barrier is unknown now, and still there.
    ASSERT_EQ(::unlink(File().c_str()), 0);
    std::ofstream(File()) << R"([{"after_step_id":1,"time_ns":2,"redo_depth":0,"paths":["a"]}])";
    OpenLog();
    ASSERT_THAT(Barriers(), SizeIs(1));
    ASSERT_OK(log().NoteExternalModification(std::vector<std::string>{"nothing"}));
    CloseLog();
    if (FileSize(File()) <= at + 1) break;
  }
}

TEST_F(UndoLostBarriers, AnOlderFileWithoutChecksumIsRead) {
  MakeBarrier();
  std::ofstream(File()) << R"([{"after_step_id":1,"time_ns":2,"redo_depth":0,"paths":["a"]}])";
  OpenLog();
  ASSERT_THAT(Barriers(), SizeIs(1));
  EXPECT_EQ(Barriers()[0].after, StepId{1});
  EXPECT_THAT(log().recovery().rewind.warnings, IsEmpty());
}

TEST_F(UndoLostBarriers, AFileThatIsTooLargeIsADamagedOne) {
  MakeBarrier();
  ASSERT_EQ(::truncate(File().c_str(), 65 << 20), 0);
  OpenLog();
  EXPECT_THAT(log().recovery().rewind.warnings, SizeIs(1));
  RollBack();
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  EXPECT_LT(FileSize(File()), 4096u);
}

// --- Another kernel is not another file system.

class UndoOtherKernel : public UndoDistrust {
 protected:
  void TearDown() override { kernel_tells_no_uuid = false; }
  void ExpectRecoveredAfterAChange(bool from_old_to_new) {
    workspace().WriteFile("a", "old");
    test::AgeTree(workspace().project());
    kernel_tells_no_uuid = from_old_to_new;
    RunUntilDeath([&] {
      OpenLog();
      ASSERT_OK(log().OpenStep({}));
      ASSERT_OK(ops().Overwrite("a", "half"));
      DieNow();
    });
    kernel_tells_no_uuid = !from_old_to_new;
    OpenLog();
    EXPECT_EQ(Content("a"), "old");
    InStep([&] { EXPECT_OK(ops().Overwrite("a", "new")); });
    kernel_tells_no_uuid = from_old_to_new;
    OpenLog();
    RollBack();
    EXPECT_EQ(Content("a"), "old");
  }
};

TEST_F(UndoOtherKernel, AStoreOfAnOlderKernelIsRecoveredByANewerOne) {
  ExpectRecoveredAfterAChange(true);
}
TEST_F(UndoOtherKernel, AStoreOfANewerKernelIsRecoveredByAnOlderOne) {
  ExpectRecoveredAfterAChange(false);
}

// --- What is out of reach is neither absent nor damaged.

// Leaves exactly `free` descriptors.
class FewDescriptors {
 public:
  explicit FewDescriptors(int free) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit now = before_;
    now.rlim_cur = 200;
    ::setrlimit(RLIMIT_NOFILE, &now);
    for (Fd fd; (fd = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC))).valid();)
      taken_.push_back(std::move(fd));
    for (; free > 0 && !taken_.empty(); --free) taken_.pop_back();
  }
  ~FewDescriptors() {
    taken_.clear();
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
  std::vector<Fd> taken_;
};

class UndoFewDescriptors : public UndoDistrust {
 protected:
  void SetUp() override {
    UndoDistrust::SetUp();
    options_.heartbeat = 0ms;
  }
  static void ExpectShortageIsTold(const Error& error) {
    EXPECT_THAT(error.code(), Not(::testing::AnyOf(Code::kConflict, Code::kCorrupt, Code::kInvalid,
                                                   Code::kNotFound)))
        << error.ToString();
  }
};

TEST_F(UndoFewDescriptors, ARollbackOrRedoWithoutThemTellsNoDamageAndWorksLater) {
  workspace().MakeDir("d/sub");
  workspace().WriteFile("d/a", "aaaa");
  workspace().WriteFile("d/b", "bbbb");
  workspace().WriteFile("d/sub/c", Noise(400000));
  workspace().WriteFile("e/big", Noise(400000));
  Start();
  const TreeSnapshot before = Snapshot();
  for (int free = 0; free < 22; ++free) {
    SCOPED_TRACE(free);
    InStep([&] {
      EXPECT_OK(ops().Overwrite("d/a", "changed"));
      EXPECT_OK(ops().Rename("d/a", "d/b"));
      EXPECT_OK(ops().RemoveTree("d/sub"));
      EXPECT_OK(ops().Chmod("d", 0700));
      EXPECT_OK(ops().Overwrite("e/big", "short"));
      EXPECT_OK(ops().WriteNew("d/new", "n"));
    });
    const TreeSnapshot after = Snapshot();
    Result<RewindReport> done = Error(Code::kIo, "");
    {
      const FewDescriptors few(free);
      done = log().Rollback(1);
    }
    if (!done.ok()) {
      ExpectShortageIsTold(done.error());
      RollBack();
    }
    ExpectTree(before);
    {
      const FewDescriptors few(free);
      done = log().Redo(1);
    }
    if (!done.ok()) {
      ExpectShortageIsTold(done.error());
      RedoSteps();
    }
    ExpectTree(after);
    RollBack();
    ASSERT_FALSE(HasFailure());
  }
}

TEST_F(UndoFewDescriptors, ARecoveryWithoutThemKeepsALateEditAndTellsNoDamage) {
  for (int free = 0; free < 14; ++free) {
    SCOPED_TRACE(free);
    workspace().WriteFile("d/f", "old");
    RunUntilDeath([&] {
      OpenLog();
      ASSERT_OK(log().OpenStep({}));
      ASSERT_OK(ops().Overwrite("d/f", "half"));
      DieNow();
    });
    ::usleep(400'000);
    workspace().WriteFile("d/f", "a person's");
    Result<std::unique_ptr<UndoLog>> opened = Error(Code::kIo, "");
    {
      const FewDescriptors few(free);
      opened = UndoLog::Open(paths(), options_);
    }
    EXPECT_EQ(Content("d/f"), "a person's");
    if (opened.ok()) continue;
    ExpectShortageIsTold(opened.error());
    EXPECT_OK(UndoLog::Open(paths(), options_));
    EXPECT_EQ(Content("d/f"), "a person's");
  }
}

TEST_F(UndoFewDescriptors, AStepThatClosesWithoutThemHidesNoEdit) {
  workspace().WriteFile("d/a", "old");
  workspace().WriteFile("e/b", "old");
  Start();
  for (int free = 0; free < 12; ++free) {
    SCOPED_TRACE(free);
    ASSERT_OK(log().OpenStep({}));
    ASSERT_OK(ops().Overwrite("d/a", "by the step"));
    ASSERT_OK(ops().Overwrite("e/b", "by the step"));
    bool closed = false;
    {
      const FewDescriptors few(free);
      closed = log().CloseStep().ok();
    }
    if (!closed) ASSERT_OK(log().CloseStep());
    workspace().WriteFile("d/a", "by a person!!");
    workspace().WriteFile("e/b", "by a person!!");
    EXPECT_CODE(log().Rollback(1), Code::kConflict);
    EXPECT_EQ(Content("d/a"), "by a person!!");
    EXPECT_EQ(Content("e/b"), "by a person!!");
    RollBack(1, Force::kYes);
  }
}

// --- What is counted.

TEST_F(UndoDistrust, FilesThatLostAllOfSeveralNamesCountAsRetained) {
  options_.limits.max_retained_bytes = 2 << 20;
  const auto file = [](char name, int i) { return fmt::format("{}{}", name, i); };
  for (int i = 0; i < 8; ++i) {
    workspace().WriteFile(file('a', i), Noise(1 << 20, static_cast<uint64_t>(i) + 1));
    ASSERT_EQ(
        ::link(workspace().Path(file('a', i)).c_str(), workspace().Path(file('b', i)).c_str()), 0);
  }
  Start();
  if (!log().abilities().links) GTEST_SKIP() << "nothing is kept by link here";
  for (int i = 0; i < 4; ++i) {
    InStep([&] {
      EXPECT_OK(ops().Unlink(file('a', i)));
      EXPECT_OK(ops().Unlink(file('b', i)));
    });
  }
  EXPECT_THAT(Steps(), SizeIs(2));
  for (int i = 4; i < 8; ++i) {
    InStep([&] { EXPECT_OK(ops().Unlink(file('a', i))); });
    EXPECT_EQ(Steps().back().retained_bytes, 0u) << "it has another name";
    InStep([&] { EXPECT_OK(ops().Unlink(file('b', i))); });
    EXPECT_GE(Steps().back().retained_bytes, 1u << 20);
  }
}

TEST_F(UndoDistrust, HolesAreNotCountedAsCopied) {
  workspace().WriteFile("vm.img", "x");
  ASSERT_EQ(::truncate(workspace().Path("vm.img").c_str(), 300 << 20), 0);
  options_.limits.max_step_copied_bytes = 1 << 20;
  Start();
  const StepId id =
      InStep([&] { EXPECT_OK(ops().WriteAt("vm.img", 0, "y", WriteVisibility::kUnseen)); });
  EXPECT_LE(InfoOf(id).copied_bytes, 128u << 10);
  RollBack();
  EXPECT_EQ(Content("vm.img").substr(0, 1), "x");
}

TEST_F(UndoDistrust, AnAmbientStepEndsAlthoughTheClockWasSetBack) {
  FakeClock clock, steady;
  options_.clock = &clock;
  options_.steady_clock = &steady;
  Start();
  ASSERT_OK(ops().WriteNew("x", "1"));
  clock.Advance(-1h);
  bool ended = false;
  for (int second = 0; second < 120 && !ended; ++second) {
    clock.Advance(1s);
    steady.Advance(1s);
    const auto tick = log().Tick();
    ASSERT_OK(tick);
    ended = *tick;
  }
  EXPECT_TRUE(ended);
}

TEST_F(UndoDistrust, AnIdThatLeavesNoRoomForOthersCannotBeChosen) {
  Start();
  EXPECT_CODE(log().OpenStep({.kind = StepKind::kCommand, .label = "", .id = StepId{INT64_MAX}}),
              Code::kInvalid);
  // Whatever the store holds: numbers do not wrap around.
  ASSERT_EQ(::mkdir((workspace().store() + fmt::format("/steps/{}", INT64_MAX)).c_str(), 0700), 0);
  OpenLog();
  EXPECT_CODE(log().OpenStep({}), Code::kExists);
}

// --- Times that nanoseconds do not tell.

class UndoFarTimes : public UndoDistrust {
 protected:
  static constexpr time_t kYear2400 = 13'569'465'600;
  void SetTime(std::string_view path) {
    const timespec times[2] = {{0, UTIME_OMIT}, {kYear2400, 123}};
    test::MustCall(::utimensat(AT_FDCWD, workspace().Path(path).c_str(), times, 0), "utimensat");
  }
  bool Holds(std::string_view path) { return StatOf(path).st_mtim.tv_sec == kYear2400; }
};

TEST_F(UndoFarTimes, AFileThatCouldNotGetItsTimeBackIsNotChanged) {
  workspace().WriteFile("a", "old");
  workspace().WriteFile("b", "old");
  OpenLog();
  SetTime("a");
  if (!Holds("a")) GTEST_SKIP() << "no such time here";
  InStep([&] {
    EXPECT_CODE(ops().Overwrite("a", "new"), Code::kNotRestorable);
    EXPECT_CODE(ops().Chmod("a", 0600), Code::kNotRestorable);
    EXPECT_OK(ops().Unlink("a"));
    EXPECT_OK(ops().Overwrite("b", "new"));
  });
  RollBack();
  EXPECT_EQ(Content("a"), "old");
  EXPECT_TRUE(Holds("a"));
  EXPECT_EQ(Content("b"), "old");
}

TEST_F(UndoFarTimes, AStepThatSetSuchATimeIsTakenBack) {
  workspace().WriteFile("a", "old");
  Start();
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    EXPECT_OK(ops().Chmod("a", 0600));
    SetTime("a");
  });
  if (!Holds("a")) GTEST_SKIP() << "no such time here";
  RollBack();
  ExpectTree(before);
}

}  // namespace
}  // namespace sandglass::undo
