// `durability: power`: what is on disk before a commit point, and what is dropped after it. The calls are watched by taking their place
// in this program.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"
#include "undo/objects_table.h"
#include "undo/pack.h"
#include "undo/place.h"
#include "undo/step_writer.h"

namespace {

struct Watch {
  bool on = false;
  bool fail_syncfs = false;
  std::string fail_fsync_of, fail_fdatasync_of;
  std::string die_after_unlink_in;
  std::function<void()> before_next_link;
  std::vector<std::string> calls;
};

// The logs here have no heart, and a housekeeper only where a test waits for it.
Watch& TheWatch() {
  static Watch watch;
  return watch;
}

std::string NameOf(int fd) {
  char path[4096];
  const ssize_t length =
      ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), path, sizeof(path));
  const std::string_view whole(path, length < 0 ? 0 : static_cast<size_t>(length));
  return std::string(whole.substr(whole.rfind('/') + 1));
}

void Note(std::string call) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (TheWatch().on) TheWatch().calls.push_back(std::move(call));
}

int Refuse() {
  errno = EIO;
  return -1;
}

}  // namespace

extern "C" {
int syncfs(int fd) noexcept {
  Note("syncfs");
  if (TheWatch().fail_syncfs) return Refuse();
  return static_cast<int>(::syscall(SYS_syncfs, fd));
}
int fsync(int fd) {
  const std::string name = NameOf(fd);
  Note("fsync " + name);
  if (name == TheWatch().fail_fsync_of) return Refuse();
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
int fdatasync(int fd) {
  const std::string name = NameOf(fd);
  Note("fdatasync " + name);
  if (name == TheWatch().fail_fdatasync_of) return Refuse();
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
int renameat(int from_dir, const char* from, int to_dir, const char* to) noexcept {
  Note(fmt::format("rename {}/{} {}", NameOf(from_dir), from, NameOf(to_dir)));
  return static_cast<int>(::syscall(SYS_renameat2, from_dir, from, to_dir, to, 0));
}
int linkat(int from_dir, const char* from, int to_dir, const char* to, int flags) noexcept {
  if (const auto hook = std::exchange(TheWatch().before_next_link, nullptr)) hook();
  Note(fmt::format("link {}/{}", NameOf(to_dir), to));
  return static_cast<int>(::syscall(SYS_linkat, from_dir, from, to_dir, to, flags));
}
int unlinkat(int dir, const char* name, int flags) noexcept {
  Note(fmt::format("unlink {}/{}", NameOf(dir), name));
  const auto result = static_cast<int>(::syscall(SYS_unlinkat, dir, name, flags));
  if (NameOf(dir) == TheWatch().die_after_unlink_in) sandglass::undo::DieNow();
  return result;
}
}

namespace sandglass::undo {
namespace {

using test::Must;
using test::MustCall;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class UndoPower : public UndoTest {
 protected:
  void SetUp() override {
    options_.compression = Compression::kOff;
    options_.durability = Durability::kPower;
    options_.heartbeat = std::chrono::milliseconds(0);
    StartWith(test::SmallTree);
    before_ = Snapshot();
  }
  void TearDown() override {
    CloseLog();  // or its housekeeper might be watched on
    TheWatch() = {};
  }

  void Change() {
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
    EXPECT_OK(ops().Unlink("medium.txt"));
  }
  // Watches `body`.
  static void Watching(const std::function<void()>& body) {
    TheWatch().on = true;
    body();
    TheWatch().on = false;
  }
  // These calls happened in this order, among others.
  static void ExpectInOrder(const std::vector<std::string>& wanted) {
    const auto& calls = TheWatch().calls;
    auto at = calls.begin();
    for (const std::string& call : wanted) {
      at = std::find(at, calls.end(), call);
      ASSERT_NE(at, calls.end()) << call << " is missing or too early in\n"
                                 << ::testing::PrintToString(calls);
    }
  }

  std::unique_ptr<Place> OpenAnotherStore() const {
    auto place = Must(OpenPlace(
        {.project = workspace().project(), .store = workspace().root() + "/another_store"},
        StoreAccess::kReadWrite));
    Must(ProbeStore(*place));
    return place;
  }

  TreeSnapshot before_;
};

TEST_F(UndoPower, AStepIsThereBeforeItsFirstChange) {
  Watching([&] { EXPECT_OK(log().OpenStep({})); });
  ExpectInOrder({"fsync in_progress", "fdatasync journal", "fsync wal"});
}

TEST_F(UndoPower, AStepIsOnDiskWhenItHasClosed) {
  Watching([&] { InStep([&] { Change(); }); });
  ExpectInOrder({"fdatasync journal", "rename wal/in_progress steps", "fsync steps", "fsync wal",
                 "fdatasync objects"});
}

TEST_F(UndoPower, ARollbackIsOnDiskBeforeItsStepIsDropped) {
  InStep([&] { Change(); });
  Watching([&] { RollBack(); });
  ExpectInOrder(
      {"syncfs", "rename wal/rewind redo", "fsync redo", "fsync wal", "rename steps/1 trash"});
}

TEST_F(UndoPower, ARedoIsOnDiskBeforeItsSourceIsDropped) {
  InStep([&] { Change(); });
  RollBack();
  Watching([&] { RedoSteps(); });
  ExpectInOrder(
      {"syncfs", "rename wal/rewind steps", "fsync steps", "fsync wal", "rename redo/1 trash"});
}

TEST_F(UndoPower, AnAbortIsOnDiskBeforeItsStepIsDropped) {
  ASSERT_OK(log().OpenStep({}));
  Change();
  Watching([&] { EXPECT_OK(log().AbortStep()); });
  ExpectInOrder({"fdatasync journal", "syncfs", "rename wal/in_progress wal", "fsync wal",
                 "rename wal/rewind trash", "rename wal/aborted trash"});
  ExpectTree(before_);
}

TEST_F(UndoPower, ARollbackThatCannotReachTheDiskDoesNotHappen) {
  InStep([&] { Change(); });
  const TreeSnapshot after = Snapshot();
  TheWatch().fail_syncfs = true;
  Watching([&] { EXPECT_FALSE(log().Rollback(1).ok()); });
  ExpectTree(after);
  TheWatch().fail_syncfs = false;
  RollBack();
  ExpectTree(before_);
}

TEST_F(UndoPower, WhatARollbackTookBackStaysUntilTheRollbackIsOnDisk) {
  InStep([&] { Change(); });
  TheWatch().fail_fsync_of = "redo";
  Watching([&] { EXPECT_THAT(RollBack().warnings, Not(IsEmpty())); });
  ExpectTree(before_);
  EXPECT_THAT(TheWatch().calls, Not(Contains("rename steps/1 trash")));
  EXPECT_EQ(NamesIn(workspace().store() + "/steps"), std::vector<std::string>{"1"});
  TheWatch().fail_fsync_of = "";
  RedoSteps();
  RollBack();
  ExpectTree(before_);
}

TEST_F(UndoPower, ACompressedPackIsOnDiskBeforeTheRawOneIsDropped) {
  options_.compression = Compression::kBackground;
  OpenLog();
  log().WaitForBackground();
  Watching([&] {
    InStep([&] { Change(); });
    log().WaitForBackground();
  });
  ExpectInOrder({"fdatasync packz.tmp", "rename 1/packz.tmp 1", "fsync 1", "unlink 1/pack"});
  RollBack();
  ExpectTree(before_);
}

TEST_F(UndoPower, ARawPackStaysUntilTheCompressedOneIsOnDisk) {
  options_.compression = Compression::kBackground;
  OpenLog();
  log().WaitForBackground();
  TheWatch().fail_fsync_of = "1";
  Watching([&] {
    InStep([&] { Change(); });
    log().WaitForBackground();
  });
  EXPECT_THAT(TheWatch().calls, Not(Contains("unlink 1/pack")));
  TheWatch().fail_fsync_of = "";
  RollBack();
  ExpectTree(before_);
}

TEST_F(UndoPower, ACompressedPackFoundBesideARawOneIsOnDiskBeforeThatGoes) {
  InStep([&] { Change(); });
  CloseLog();
  const std::string folder = StepFolder(workspace(), StepId{1});
  {
    const Fd raw(MustCall(::open((folder + "/pack").c_str(), O_RDONLY | O_CLOEXEC), "open"));
    const Fd packz(
        MustCall(::open((folder + "/packz").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), "open"));
    Must(WriteCompressedPack(raw.get(), FileSize(folder + "/pack"), packz.get()));
  }
  Watching([&] { OpenLog(); });
  ExpectInOrder({"fdatasync packz", "fsync 1", "unlink 1/pack"});
  RollBack();
  ExpectTree(before_);
}

TEST_F(UndoPower, AnAdoptedShadowIsOnDiskBeforeItsStepCloses) {
  ASSERT_OK(log().OpenStep({}));
  const Fd writer = Must(ops().OpenFile("large.bin", O_WRONLY, WriteVisibility::kUnseen));
  EXPECT_EQ(::pwrite(writer.get(), "first", 5, 0), 5);
  const ObjectRef live{writer.get(), {}};
  EXPECT_OK(log().CloseStep({&live, 1}));
  ASSERT_OK(log().OpenStep({}));
  EXPECT_EQ(::pwrite(writer.get(), "second", 6, 0), 6);
  Watching([&] { EXPECT_OK(log().CloseStep({&live, 1})); });
  ASSERT_THAT(NamesIn(StepFolder(workspace(), StepId{2}) + "/blobs"), ElementsAre("0"));
  ExpectInOrder({"fdatasync 0", "fsync blobs", "rename wal/in_progress steps"});
}

TEST_F(UndoPower, ASlowThreadsAnchorIsOnDiskBeforeItsNameGoes) {
  if (!log().abilities().links) GTEST_SKIP() << "nothing is anchored here";
  const auto place = OpenAnotherStore();
  const auto writer = Must(StepWriter::Create(*place, place->store.get(), "step", {.uid = 1},
                                              {.durability = Durability::kPower}));
  const OpenObject object = Must(OpenObjectAt(place->identifier, place->root.get(), "medium.txt"));
  // It has its slot, and then others are faster: they take more than two folders have.
  TheWatch().before_next_link = [&] {
    for (int i = 0; i < 100; ++i) Must(writer->files().NewAnchor());
  };
  Watching([&] {
    Must(writer->KeepObject(object, place->root.get(), "medium.txt", "medium.txt", KeepBy::kLink));
    EXPECT_OK(writer->MakeDurable());
  });
  ExpectInOrder({"link anchors/0/0", "fsync 0"});
}

TEST_F(UndoPower, ATableWhoseCompactionDoesNotReachTheDiskLosesNothing) {
  const auto place = OpenAnotherStore();
  const ObjectId old_id{1, 1}, new_id{2, 2};
  ObjectsTable table;
  ASSERT_OK(table.Load(place->store.get(), FileSync::kPower));
  TheWatch().fail_fsync_of = "another_store";
  EXPECT_FALSE(table.Compact({}, {}).ok());
  TheWatch().fail_fsync_of = "";
  table.Succeed(old_id, new_id);
  EXPECT_OK(table.Flush());
  ObjectsTable again;
  ASSERT_OK(again.Load(place->store.get(), FileSync::kPower));
  EXPECT_EQ(again.Current(old_id), new_id);
}

TEST_F(UndoPower, ARemovalThatCannotReachTheJournalKeepsNothing) {
  const StepId step = InStep([&] {
    TheWatch().fail_fdatasync_of = "journal";
    EXPECT_FALSE(ops().Unlink("medium.txt").ok());
    EXPECT_FALSE(ops().Rename("small.txt", "medium.txt").ok());
    TheWatch().fail_fdatasync_of = "";
    EXPECT_THAT(FilesBelow(OpenStepFolder(workspace()) + "/anchors"), IsEmpty());
  });
  EXPECT_THAT(ChangeLines(step), IsEmpty());
  EXPECT_EQ(InfoOf(step).retained_bytes, 0u);
  ExpectTree(before_);
}

TEST_F(UndoPower, AFailedRemovalIsOnRecordBeforeItsAnchorGoes) {
  CloseLog();
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    EXPECT_OK(ops().Overwrite("small.txt", "changed"));
    Result<Ticket> ticket = log().interceptor().BeginRemove({{ops().root_fd(), ""}, "medium.txt"});
    ASSERT_OK(ticket);
    TheWatch().die_after_unlink_in = "anchors";
    (void)ticket->Commit(Outcome::Failed(EIO));
  });
  OpenLog();
  EXPECT_TRUE(log().recovery().recovered);
  EXPECT_THAT(Lines(log().recovery().rewind.conflicts), IsEmpty());
  ExpectTree(before_);
}

}  // namespace
}  // namespace sandglass::undo
