// A rollback, redo, abort or recovery that is killed, and a person who edits the project before the next open: the edit is kept and
// reported, and nothing that could not be put back because of it is gone.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace {

// Calls that this program's processes may die at; negative: never. They take the place of the C library's.
int writes_left = -1;
int truncations_left = -1;
int rewinds_left = -1;

void CountDown(int& left) {
  if (left >= 0 && left-- == 0) sandglass::undo::DieNow();
}

}  // namespace

extern "C" ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  const ssize_t rc = ::syscall(SYS_pwrite64, fd, bytes, size, at);
  CountDown(writes_left);
  return rc;
}
extern "C" int ftruncate(int fd, off_t size) noexcept {
  CountDown(truncations_left);
  return static_cast<int>(::syscall(SYS_ftruncate, fd, size));
}
extern "C" int mkdirat(int fd, const char* name, mode_t mode) noexcept {
  if (std::strcmp(name, "rewind") == 0) CountDown(rewinds_left);
  return static_cast<int>(::syscall(SYS_mkdirat, fd, name, mode));
}

namespace sandglass::undo {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

// Longer than the slack that the last sign of life has.
constexpr auto kAfterTheHeartbeat = 600ms;
constexpr const char* kEdit = "by a person";

class UndoEditsAfterAKill : public UndoTest {
 protected:
  void SetUp() override {
    options_.compression = Compression::kOff;
    workspace().WriteFile("a", "old");
    workspace().WriteFile("b", "old");
    test::AgeTree(workspace().project());
  }

  void ChangeBoth() {
    EXPECT_OK(ops().Overwrite("a", "changed a"));
    EXPECT_OK(ops().Overwrite("b", "changed b"));
  }

  // A person sits down some time after the kill.
  void Edit(std::initializer_list<const char*> paths) {
    std::this_thread::sleep_for(kAfterTheHeartbeat);
    for (const char* path : paths) workspace().WriteFile(path, kEdit);
  }

  const RewindReport& Recovered() { return log().recovery().rewind; }

  void ExpectKept(const char* path) {
    EXPECT_EQ(Content(path), kEdit);
    EXPECT_TRUE(HasConflict(Recovered().conflicts, ConflictKind::kEdited, path)) << path;
  }

  // Somewhere below `dir`, be it in a pack.
  static bool IsBelow(const std::string& dir, const std::string& text) {
    const auto files = FilesBelow(dir);
    return std::any_of(files.begin(), files.end(), [&](const std::string& path) {
      std::ifstream file(path, std::ios::binary);
      const std::string all((std::istreambuf_iterator<char>(file)), {});
      return all.find(text) != std::string::npos;
    });
  }
  bool IsKept(const std::string& text) const {
    return IsBelow(workspace().store() + "/damaged", text) || IsBelow(workspace().project(), text);
  }
  std::vector<std::string> InWal() const { return NamesIn(workspace().store() + "/wal"); }
};

TEST_F(UndoEditsAfterAKill, OfARollbackAreKeptAndReported) {
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] { ChangeBoth(); });
    writes_left = 1;
    (void)log().Rollback(1);
  });
  ASSERT_NE(Content("b"), "changed b") << "it got as far as the first file";
  Edit({"b"});
  OpenLog();
  ExpectKept("b");
  EXPECT_EQ(Content("a"), "changed a");
  EXPECT_EQ(Steps().size(), 1u);
  EXPECT_TRUE(IsKept("changed b")) << "the step's own text had no place to go back to";
  EXPECT_THAT(InWal(), IsEmpty());
  EXPECT_CODE(log().Rollback(1), Code::kConflict);
  EXPECT_EQ(Content("b"), kEdit);
}

TEST_F(UndoEditsAfterAKill, OfARedoAreKeptAndReported) {
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] { ChangeBoth(); });
    RollBack();
    writes_left = 1;
    (void)log().Redo(1);
  });
  Edit({"a", "b"});
  OpenLog();
  EXPECT_EQ(Content("a"), kEdit);
  EXPECT_EQ(Content("b"), kEdit);
  EXPECT_THAT(Recovered().conflicts, Not(IsEmpty()));
  EXPECT_EQ(log().redo_depth(), 1u);
}

TEST_F(UndoEditsAfterAKill, OfAnAbortAreKeptAndReported) {
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    ChangeBoth();
    writes_left = 1;
    (void)log().AbortStep();
  });
  Edit({"b"});
  OpenLog();
  ExpectKept("b");
  EXPECT_EQ(Content("a"), "old");
  EXPECT_THAT(InWal(), IsEmpty());
}

TEST_F(UndoEditsAfterAKill, OfAnAbortThatHadNotBegunAreKeptAndReported) {
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    ChangeBoth();
    rewinds_left = 0;
    (void)log().AbortStep();
  });
  Edit({"b"});
  OpenLog();
  ExpectKept("b");
  EXPECT_EQ(Content("a"), "old");
}

TEST_F(UndoEditsAfterAKill, OfARecoveryAreKeptAndReported) {
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    ChangeBoth();
    DieNow();
  });
  RunUntilDeath([&] {
    writes_left = 1;
    OpenLog();
  });
  Edit({"b"});
  OpenLog();
  ExpectKept("b");
  EXPECT_EQ(Content("a"), "old");
  EXPECT_THAT(InWal(), IsEmpty());
}

// Each attempt adds to what the ones before it found, and takes none of their time stamps for a person's.
TEST_F(UndoEditsAfterAKill, OfEveryAttemptToRecoverAreKeptAndReported) {
  workspace().WriteFile("d/e", "old");
  test::AgeTree(workspace().project());
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] {
      ChangeBoth();
      EXPECT_OK(ops().Rename("d", "f"));
      EXPECT_OK(ops().Overwrite("f/e", "changed e"));
    });
    writes_left = 5;  // a copy of each for redo, and its old text
    (void)log().Rollback(1);
  });
  ASSERT_EQ(Content("d/e"), "old");
  ASSERT_NE(Content("a"), "changed a");
  Edit({"b"});
  RunUntilDeath([&] {
    writes_left = 2;
    OpenLog();
  });
  ASSERT_EQ(Content("a"), "changed a");
  ASSERT_TRUE(workspace().Exists("f/e"));
  Edit({"f/e"});
  OpenLog();
  ExpectKept("b");
  ExpectKept("f/e");
  EXPECT_EQ(Content("a"), "changed a");
  EXPECT_EQ(Recovered().conflicts.size(), 2u);
}

TEST_F(UndoEditsAfterAKill, BetweenTheStepsOfARollbackAreNotCrossed) {
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] { EXPECT_OK(ops().Overwrite("a", "changed a")); });
    InStep([&] { EXPECT_OK(ops().Overwrite("b", "changed b")); });
    rewinds_left = 1;
    (void)log().Rollback(2);
  });
  Edit({"a", "b"});
  OpenLog();
  ExpectKept("a");
  EXPECT_EQ(Content("b"), kEdit);
  EXPECT_THAT(Recovered().warnings, Not(IsEmpty()));
  EXPECT_EQ(Steps().size(), 1u);
  EXPECT_EQ(log().redo_depth(), 1u);
  EXPECT_THAT(InWal(), IsEmpty());
}

TEST_F(UndoEditsAfterAKill, AreNotCrossedByAForceThatWasMeantForOlderOnes) {
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] { EXPECT_OK(ops().Overwrite("a", "changed a")); });
    InStep([&] { EXPECT_OK(ops().Overwrite("b", "changed b")); });
    rewinds_left = 1;
    (void)log().Rollback(2, Force::kYes);
  });
  Edit({"a"});
  OpenLog();
  EXPECT_EQ(Content("a"), kEdit);
  EXPECT_THAT(Recovered().conflicts, Not(IsEmpty()));
}

TEST_F(UndoEditsAfterAKill, TakeNoNameFromWhatAKilledRollbackHadTakenAway) {
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] {
      EXPECT_OK(ops().Overwrite("a", "changed"));
      EXPECT_OK(ops().WriteNew("n", "the step's product"));
    });
    truncations_left = 0;
    (void)log().Rollback(1);
  });
  ASSERT_FALSE(workspace().Exists("n"));
  workspace().WriteFile("n", kEdit);
  OpenLog();
  EXPECT_EQ(Content("n"), kEdit);
  EXPECT_EQ(Content("n.kept-1"), "the step's product");
  EXPECT_THAT(Recovered().kept, ElementsAre("n.kept-1"));
  EXPECT_TRUE(HasConflict(Recovered().conflicts, ConflictKind::kOccupied, "n"));
}

// The rollback had brought it back from the step. The person goes on with it, and the step can still be taken back.
TEST_F(UndoEditsAfterAKill, StayWithWhatAKilledRollbackHadBroughtBack) {
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] {
      EXPECT_OK(ops().Overwrite("a", "changed a"));
      EXPECT_OK(ops().Unlink("b"));
    });
    truncations_left = 0;
    (void)log().Rollback(1);
  });
  ASSERT_EQ(Content("b"), "old");
  Edit({"b"});
  OpenLog();
  ExpectKept("b");
  EXPECT_EQ(Content("a"), "changed a");
  RollBack();
  EXPECT_EQ(Content("a"), "old");
  EXPECT_EQ(Content("b"), kEdit);
}

TEST_F(UndoEditsAfterAKill, OfAKilledRollbackMayMoveWhatItHadBroughtBackAndAreReported) {
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] {
      EXPECT_OK(ops().Overwrite("a", "changed a"));
      EXPECT_OK(ops().Unlink("b"));
    });
    truncations_left = 0;
    (void)log().Rollback(1);
  });
  ASSERT_EQ(Content("b"), "old");
  ASSERT_EQ(0, ::rename(workspace().Path("b").c_str(), workspace().Path("c").c_str()));
  OpenLog();
  EXPECT_EQ(Content("c"), "old");
  EXPECT_TRUE(HasConflict(Recovered().conflicts, ConflictKind::kMissing, "b"));
}

class UndoOriginalsAfterACrash : public UndoEditsAfterAKill,
                                 public ::testing::WithParamInterface<size_t> {};

// The edit wins, but what the file held before the step is not lost with the step's folder.
TEST_P(UndoOriginalsAfterACrash, AreKeptWhereAPersonEditedTheFile) {
  workspace().WriteFile("f", "the original" + Noise(GetParam()));
  test::AgeTree(workspace().project());
  RunUntilDeath([&] {
    OpenLog();
    ASSERT_OK(log().OpenStep({}));
    EXPECT_OK(ops().Overwrite("f", "half"));
    DieNow();
  });
  Edit({"f"});
  OpenLog();
  ExpectKept("f");
  EXPECT_TRUE(IsKept("the original"));
  EXPECT_THAT(Recovered().warnings, Not(IsEmpty())) << "it says where";
}

INSTANTIATE_TEST_SUITE_P(Sizes, UndoOriginalsAfterACrash, ::testing::Values(0, 500'000));

}  // namespace
}  // namespace sandglass::undo
