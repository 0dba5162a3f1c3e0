// Rewinds of programs that are running: the kernel lets nobody write to them, so they get a fresh inode, exactly or not at all.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/io.h"
#include "tests/support/must.h"
#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {
namespace {

using test::Must;
using test::MustCall;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSource = "/bin/sleep";

// A program that runs until this dies.
class Running {
 public:
  explicit Running(const std::string& path) {
    int failure[2];
    MustCall(::pipe2(failure, O_CLOEXEC), "pipe");
    pid_ = MustCall(::fork(), "fork");
    if (pid_ == 0) {
      ::execl(path.c_str(), "sleep", "60", nullptr);
      const int err = errno;
      (void)!::write(failure[1], &err, sizeof(err));
      ::_exit(1);
    }
    ::close(failure[1]);
    if (::read(failure[0], &errno_, sizeof(errno_)) <= 0) errno_ = 0;  // closed by the exec
    ::close(failure[0]);
  }
  Running(const Running&) = delete;
  ~Running() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  int error() const { return errno_; }
  bool alive() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  pid_t pid_ = -1;
  int errno_ = 0;
};

class UndoRunningProgram : public UndoTest {
 protected:
  // `more` bytes behind the end of a program do not keep it from running.
  void StartWithTool(size_t more = 0) {
    const Fd folder(MustCall(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open /"));
    const std::string bytes = Must(ReadFileAt(folder.get(), kSource + 1, 16 << 20));
    StartWith([&](const std::string& root) {
      test::SmallTree(root);
      TreeBuilder(root).File("tool", bytes + std::string(more, 'x'), 0755);
    });
    if (!log().abilities().exchange) GTEST_SKIP() << "no exchange of names with the store here";
  }
  std::string InProject(const std::string& path) const {
    return workspace().project() + "/" + path;
  }
};

#define RUN_OR_SKIP(variable, path)        \
  const Running variable(InProject(path)); \
  if (variable.error() != 0) GTEST_SKIP() << "programs cannot be run here"

TEST_F(UndoRunningProgram, ARunningProgramIsTakenBackAndRedone) {
  StartWithTool();
  const TreeSnapshot original = Snapshot();
  InStep([&] { EXPECT_OK(ops().Append("tool", "first", WriteVisibility::kUnseen)); });
  const TreeSnapshot first = Snapshot();
  InStep([&] { EXPECT_OK(ops().Append("tool", "second", WriteVisibility::kUnseen)); });
  const TreeSnapshot second = Snapshot();
  RUN_OR_SKIP(running, "tool");
  EXPECT_THAT(RollBack().conflicts, ::testing::IsEmpty());
  ExpectTree(first);
  EXPECT_TRUE(running.alive());
  RedoSteps();
  ExpectTree(second);
  RUN_OR_SKIP(again, "tool");
  // An older step knows the program by the identity that it had first.
  RollBack(2);
  ExpectTree(original);
  RedoSteps(2);
  ExpectTree(second);
  OpenLog();
  RollBack(2);
  ExpectTree(original);
}

TEST_F(UndoRunningProgram, AllNamesOfARunningProgramStayNamesOfOneFile) {
  StartWithTool();
  MustCall(::link(InProject("tool").c_str(), InProject("src/other").c_str()), "link");
  OpenLog();
  const TreeSnapshot before = Snapshot();
  InStep([&] { EXPECT_OK(ops().Append("tool", "more", WriteVisibility::kUnseen)); });
  const TreeSnapshot after = Snapshot();
  RUN_OR_SKIP(running, "src/other");
  RollBack();
  ExpectTree(before);
  EXPECT_EQ(StatOf("tool").st_ino, StatOf("src/other").st_ino);
  RedoSteps();
  ExpectTree(after);
  EXPECT_EQ(StatOf("tool").st_ino, StatOf("src/other").st_ino);
  RUN_OR_SKIP(again, "tool");
  RollBack();
  ExpectTree(before);
}

TEST_F(UndoRunningProgram, RangesOfALargeRunningProgramAreTakenBack) {
  StartWithTool(600'000);
  const TreeSnapshot before = Snapshot();
  const uint64_t end = static_cast<uint64_t>(StatOf("tool").st_size);
  InStep([&] {
    EXPECT_OK(ops().WriteAt("tool", end - 400'000, "here", WriteVisibility::kAnnounced));
    EXPECT_OK(ops().WriteAt("tool", end - 100, Noise(300), WriteVisibility::kAnnounced));
  });
  const TreeSnapshot after = Snapshot();
  RUN_OR_SKIP(running, "tool");
  RollBack();
  ExpectTree(before);
  RedoSteps();
  ExpectTree(after);
}

// Taking the step back while the program runs leaves records of the same bytes under two identities, which are not twice as many.
TEST_F(UndoRunningProgram, ALargeProgramThatWasReplacedIsRestoredWithAllThatNoStepKept) {
  StartWithTool(600'000);
  const TreeSnapshot before = Snapshot();
  const uint64_t size = static_cast<uint64_t>(StatOf("tool").st_size);
  const StepId step = InStep([&] {
    EXPECT_OK(ops().WriteAt("tool", size / 3, Noise(size * 6 / 10), WriteVisibility::kAnnounced));
  });
  RollBack();
  {
    RUN_OR_SKIP(running, "tool");
    RedoSteps();
  }
  EXPECT_OK(log().Restore(step, std::vector<std::string>{"tool"}));
  ExpectTree(before);
}

TEST_F(UndoRunningProgram, AnAbortedStepLetsItsProgramRunOn) {
  StartWithTool();
  const TreeSnapshot before = Snapshot();
  ASSERT_OK(log().OpenStep({}));
  EXPECT_OK(ops().Append("tool", "more", WriteVisibility::kUnseen));
  RUN_OR_SKIP(running, "tool");
  EXPECT_OK(log().AbortStep());
  ExpectTree(before);
  EXPECT_TRUE(running.alive());
}

TEST_F(UndoRunningProgram, ANameOutsideOfTheProjectMakesItBusyBeforeAnythingIsTouched) {
  StartWithTool();
  const std::string outside = workspace().root() + "/outside";
  MustCall(::link(InProject("tool").c_str(), outside.c_str()), "link");
  OpenLog();
  const TreeSnapshot before = Snapshot();
  InStep([&] {
    EXPECT_OK(ops().Overwrite("small.txt", "changed too"));
    EXPECT_OK(ops().Append("tool", "more", WriteVisibility::kUnseen));
  });
  const TreeSnapshot after = Snapshot();
  const ino_t inode = StatOf("tool").st_ino;
  RUN_OR_SKIP(running, "tool");
  const auto plan = log().PlanRollback(1);
  ASSERT_OK(plan);
  EXPECT_THAT(Lines(plan->conflicts), ElementsAre("busy tool"));
  EXPECT_CODE(log().Rollback(1), Code::kBusy);
  ExpectTree(after);
  const RewindReport report = RollBack(1, Force::kYes);
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("names that are not in the project")));
  EXPECT_EQ(Content("tool").size() + 4, FileSize(outside));
  EXPECT_NE(StatOf("tool").st_ino, inode);
}

TEST_F(UndoRunningProgram, ARunningProgramThatOnlyChangedItsModeIsNotBusy) {
  StartWithTool();
  MustCall(::link(InProject("tool").c_str(), (workspace().root() + "/outside").c_str()), "link");
  OpenLog();
  const ino_t inode = StatOf("tool").st_ino;
  InStep([&] { EXPECT_OK(ops().Chmod("tool", 0711)); });
  RUN_OR_SKIP(running, "tool");
  RollBack();
  EXPECT_EQ(StatOf("tool").st_mode & 07777u, 0755u);
  EXPECT_EQ(StatOf("tool").st_ino, inode);
}

}  // namespace
}  // namespace sandglass::undo
