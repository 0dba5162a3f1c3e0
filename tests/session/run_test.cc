// `sandglass run` from outside: the real program, the real shim, a real world.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/session/sandglass_fixture.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SandglassRun : public SandglassFixture {};

TEST_F(SandglassRun, ChangesTheRealFolderAndUndoTakesItBackExactly) {
  const TreeSnapshot before = workspace_.Snapshot();
  const Ended ran = Shell(
      "rm -rf src && chmod 600 keep.txt && echo more >>keep.txt && mkdir -p a/b && echo x >a/b/c");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_FALSE(workspace_.Exists("src"));
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\nmore\n");
  const TreeSnapshot after = workspace_.Snapshot();
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  EXPECT_EQ(Sandglass({"redo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(after, workspace_.Snapshot()));
}

TEST_F(SandglassRun, EachCommandIsAStepOfTheHistory) {
  EXPECT_EQ(Run({"touch", "one"}).exit_code, 0);
  EXPECT_EQ(Run({"true"}).exit_code, 0);
  EXPECT_EQ(Run({"touch", "two words"}).exit_code, 0);
  const Ended history = Sandglass({"history"});
  EXPECT_THAT(history.out, HasSubstr("touch one"));
  EXPECT_THAT(history.out, HasSubstr("touch 'two words'"));
  EXPECT_EQ(Sandglass({"undo", "2"}).exit_code, 0);
  EXPECT_FALSE(workspace_.Exists("one"));
}

TEST_F(SandglassRun, ItsExitCodeIsTheCommands) {
  EXPECT_EQ(Shell("exit 7").exit_code, 7);
  EXPECT_EQ(Shell("kill -9 $$").exit_code, 128 + SIGKILL);
  EXPECT_EQ(Run({"there-is-no-such-program"}).exit_code, 127);
  EXPECT_EQ(Run({"./keep.txt"}).exit_code, 126);
}

TEST_F(SandglassRun, ItsOwnFailuresAre125AndNothingRuns) {
  EXPECT_EQ(Sandglass({"run"}).exit_code, 125);
  EXPECT_EQ(Sandglass({"run", "--no-such-option", "--", "touch", "made"}).exit_code, 125);
  EXPECT_EQ(Sandglass({"run", "--timeout", "soon", "--", "touch", "made"}).exit_code, 125);
  EXPECT_EQ(Sandglass({"run", "-e", "no-value", "--", "touch", "made"}).exit_code, 125);
  const Ended broad = Sandglass({"run", "-p", home_, "--", "touch", "made"});
  EXPECT_EQ(broad.exit_code, 126) << "that is refused";
  EXPECT_THAT(broad.err, HasSubstr("--allow-broad"));
  EXPECT_FALSE(workspace_.Exists("made"));
}

TEST_F(SandglassRun, AWrongValueIsToldWithItsOption) {
  const auto refusal = [&](const std::string& option, const std::string& value) {
    return Sandglass({"run", option, value, "--", "true"}).err;
  };
  EXPECT_EQ(refusal("--memory", "0"), "sandglass: --memory: '0' should look like 512M\n");
  EXPECT_EQ(refusal("--file-size", "1X"), "sandglass: --file-size: '1X' should look like 512M\n");
  EXPECT_EQ(refusal("--timeout", "soon"),
            "sandglass: --timeout: 'soon' should look like 30s, 5m or 1h\n");
  EXPECT_EQ(refusal("--timeout", "9000h"), "sandglass: --timeout: '9000h' is more than a year\n");
  EXPECT_THAT(Sandglass({"run", "--timeout", "--", "true"}).err,
              HasSubstr("--timeout needs a value: TIME"));
}

// The kernel ends whoever goes on; what was written up to there is undone as any other change.
TEST_F(SandglassRun, NoFileGrowsBeyondItsLimit) {
  const TreeSnapshot before = workspace_.Snapshot();
  const Ended ran = Sandglass({"run", "--file-size", "1M", "--json", "--", "sh", "-c",
                               "dd if=/dev/zero of=big bs=64k count=32 2>/dev/null"});
  EXPECT_EQ(ran.exit_code, 128 + SIGXFSZ) << ran.err;
  EXPECT_EQ(std::filesystem::file_size(workspace_.Path("big")), 1U << 20);
  EXPECT_THAT(ran.err, HasSubstr(R"("limits":["file size limit: RLIMIT_FSIZE","not limited: )"));
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

// What others would run or obey may be written, but whoever looks at the step is told.
TEST_F(SandglassRun, FlagsFilesThatOtherProgramsObey) {
  const Ended ran = Sandglass({"run", "--summary", "--", "sh", "-c",
                               "mkdir -p .git/hooks && echo x >.git/hooks/pre-commit && echo y "
                               ">.envrc && echo z >plain"});
  EXPECT_THAT(ran.err, HasSubstr("; look at .envrc (direnv runs it) and 1 more; `sandglass undo`"));
  const std::string shown = Sandglass({"show", "1"}).out;
  EXPECT_THAT(shown, HasSubstr(".git/hooks/pre-commit (2 B)  ! git runs it\n"));
  EXPECT_THAT(shown, HasSubstr("plain (2 B)\n"));
  const std::string json = Sandglass({"show", "1", "--json"}).out;
  EXPECT_THAT(json, HasSubstr("direnv runs it"));
  EXPECT_THAT(Sandglass({"run", "--summary", "--", "rm", ".envrc"}).err, Not(HasSubstr("look at")));
}

TEST_F(SandglassRun, StreamsStayApartAndNothingOfOursIsInThem) {
  const Ended ran = Shell("cat; echo to stderr >&2", "from the input\n");
  EXPECT_EQ(ran.out, "from the input\n");
  EXPECT_EQ(ran.err, "to stderr\n");
  EXPECT_THAT(Sandglass({"run", "--summary", "--", "touch", "made"}).err,
              HasSubstr("1 created; `sandglass undo` takes it back"));
}

TEST_F(SandglassRun, MuchOutputArrivesWhole) {
  const Ended ran = Shell("head -c 5000000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero >&2");
  EXPECT_EQ(ran.out, std::string(5'000'000, 'x'));
  EXPECT_EQ(ran.err, std::string(300'000, '\0'));
}

TEST_F(SandglassRun, ACommandThatPrintsWithoutEndEndsWhenNobodyReads) {
  int ends[2];
  MustCall(::pipe2(ends, O_CLOEXEC), "pipe");
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) {
    ::setenv("SANDGLASS_HOME", state_.c_str(), 1);
    ::dup2(ends[1], 1);
    if (::chdir(workspace_.project().c_str()) == 0)
      ::execl(SANDGLASS_BINARY, "sandglass", "run", "--", "yes", nullptr);
    ::_exit(99);
  }
  ::close(ends[1]);
  char first[2];
  EXPECT_EQ(::read(ends[0], first, 2), 2);
  ::close(ends[0]);
  int status = 0;
  MustCall(::waitpid(child, &status, 0), "waitpid");
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGPIPE);
}

TEST_F(SandglassRun, ATimeoutEndsTheCommandAndItsStepCanBeUndone) {
  const TreeSnapshot before = workspace_.Snapshot();
  const Ended ran =
      Sandglass({"run", "--timeout", "300ms", "--", "sh", "-c", "touch made; sleep 60"});
  EXPECT_EQ(ran.exit_code, 128 + SIGTERM);
  EXPECT_THAT(ran.err, HasSubstr("300ms"));
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

TEST_F(SandglassRun, ATimeoutWithoutAUnitIsInSeconds) {
  const Ended ran = Sandglass({"run", "--timeout", "1", "--", "sleep", "60"});
  EXPECT_EQ(ran.exit_code, 128 + SIGTERM);
  EXPECT_EQ(Sandglass({"run", "--timeout", "60", "--", "true"}).exit_code, 0);
}

TEST_F(SandglassRun, WhatTheMemoryLimitKilledIsTold) {
  const Ended ran = Sandglass({"run", "--memory", "64M", "--json", "--", "python3", "-c",
                               "x = bytearray(300 << 20); print(len(x))"});
  if (ran.err.find("memory limit cannot be enforced here") != std::string::npos)
    GTEST_SKIP() << "no control group for memory can be made here";
  EXPECT_EQ(ran.exit_code, 128 + SIGKILL) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("sandglass: the memory limit was reached"));
  EXPECT_THAT(ran.err, HasSubstr(R"("warnings":["the memory limit was reached)"));
  EXPECT_EQ(Sandglass({"run", "--memory", "64M", "--", "true"}).err, "");
}

TEST_F(SandglassRun, HistoryShowsTheStepThatRunsAndTheOneThatWasInterrupted) {
  const Started child = Begin({"run", "--", "sh", "-c", "touch ready; sleep 60"});
  WaitUntilExists("ready");
  const std::string process = "still running, process " + std::to_string(child.pid);
  EXPECT_THAT(Sandglass({"history"}).out, HasSubstr(process));
  EXPECT_THAT(Sandglass({"history"}).out, HasSubstr("touch ready; sleep 60"));
  EXPECT_THAT(Sandglass({"history", "--json"}).out, HasSubstr(R"("state":"running")"));
  MustCall(::kill(child.pid, SIGKILL), "kill");
  Finish(child);
  EXPECT_THAT(Sandglass({"history"}).out, HasSubstr("interrupted; the next command"));
  EXPECT_THAT(Sandglass({"history", "--json"}).out,
              HasSubstr(R"("state":"interrupted","pid":null)"));
  EXPECT_EQ(Run({"true"}).exit_code, 0);
  EXPECT_THAT(Sandglass({"history"}).out, Not(HasSubstr("interrupted")));
  EXPECT_THAT(Sandglass({"history", "--json"}).out, HasSubstr(R"("open":null)"));
}

TEST_F(SandglassRun, RestoreUnderstandsPathsAsTheyAreTyped) {
  ASSERT_EQ(Shell("echo new >src/deep/file; rm keep.txt; rm src/deep/link").exit_code, 0);
  EXPECT_EQ(Sandglass({"restore", "1", workspace_.Path("keep.txt")}).exit_code, 0);
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
  start_ = workspace_.Path("src/deep");
  EXPECT_EQ(Sandglass({"restore", "1", "file", "./link"}).exit_code, 0);
  EXPECT_EQ(workspace_.ReadFile("src/deep/file"), "old\n");
  EXPECT_TRUE(std::filesystem::is_symlink(workspace_.Path("src/deep/link")));
  start_ = workspace_.root();
  EXPECT_EQ(Sandglass({"restore", "-p", workspace_.project(), "1", "src/deep"}).exit_code, 0);
  const Ended elsewhere = Sandglass({"restore", "-p", workspace_.project(), "1", "/etc/passwd"});
  EXPECT_EQ(elsewhere.exit_code, 1);
  EXPECT_THAT(elsewhere.err, HasSubstr("/etc/passwd does not lie in the project"));
}

TEST_F(SandglassRun, AConflictNamesWhatGoesOnInSpiteOfIt) {
  ASSERT_EQ(Shell("echo new >keep.txt").exit_code, 0);
  workspace_.WriteFile("keep.txt", "a person's\n");
  EXPECT_THAT(Sandglass({"undo"}).err, HasSubstr("`sandglass undo --force` goes on"));
  EXPECT_THAT(Sandglass({"restore", "1", "keep.txt"}).err,
              HasSubstr("`sandglass restore --force` goes on"));
  EXPECT_EQ(Sandglass({"undo", "--force"}).exit_code, 0);
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
}

TEST_F(SandglassRun, SlipsAreNoticed) {
  EXPECT_THAT(Sandglass({"udno"}).err, HasSubstr("did you mean 'undo'?"));
  EXPECT_THAT(Sandglass({"undo", "--dry-rnu"}).err, HasSubstr("did you mean --dry-run?"));
  EXPECT_THAT(Sandglass({"frobnicate"}).err, Not(HasSubstr("did you mean")));
}

TEST_F(SandglassRun, DiscardLeavesNoEmptyStore) {
  ASSERT_EQ(Run({"touch", "made"}).exit_code, 0);
  const auto stores = [&] {
    return std::distance(std::filesystem::directory_iterator(state_ + "/undo"),
                         std::filesystem::directory_iterator());
  };
  EXPECT_EQ(stores(), 1);
  EXPECT_EQ(Sandglass({"discard", "--yes"}).exit_code, 0);
  EXPECT_EQ(stores(), 0);
  EXPECT_TRUE(workspace_.Exists("made"));
  EXPECT_EQ(Run({"touch", "again"}).exit_code, 0);
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
}

TEST_F(SandglassRun, WhatIsNotRecordedIsToldAndNotUndone) {
  const Ended ran =
      Sandglass({"run", "--summary", "--no-undo-for", "*.o", "--no-undo-for", "/build/", "--", "sh",
                 "-c", "mkdir build src/build; touch build/a src/build/b src/x.o y.c"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("not recorded and not undone: *.o /build/"));
  const Ended json = Sandglass({"run", "--json", "--no-undo-for", "*.o", "--", "true"});
  EXPECT_THAT(json.err, HasSubstr(R"("no_undo_for":["*.o"])"));
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(workspace_.Exists("build/a"));
  EXPECT_TRUE(workspace_.Exists("src/x.o"));
  EXPECT_FALSE(workspace_.Exists("src/build"));
  EXPECT_FALSE(workspace_.Exists("y.c"));
  EXPECT_EQ(Sandglass({"run", "--no-undo-for", "", "--", "true"}).exit_code, 125);
}

TEST_F(SandglassRun, ASignalIsPassedOn) {
  const Started child = Begin(
      {"run", "--", "sh", "-c", "trap 'exit 5' INT; touch ready; while :; do sleep 0.05; done"});
  WaitUntilExists("ready");
  MustCall(::kill(child.pid, SIGINT), "kill");
  EXPECT_EQ(Finish(child).exit_code, 5);
}

TEST_F(SandglassRun, WhatItLeavesBehindEndsWithIt) {
  const Started child =
      Begin({"run", "--", "sh", "-c", "sleep 61.25 & touch ready; sleep 2; echo done"});
  WaitUntilExists("ready");
  EXPECT_TRUE(BeginsToRun("61.25")) << "or this test could not fail";
  const Ended ran = Finish(child);
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, HasSubstr("done"));
  EXPECT_FALSE(IsRunning("61.25"));
}

TEST_F(SandglassRun, TheHostsSecretsAreOutOfSight) {
  EXPECT_NE(Shell("ls " + state_).exit_code, 0);
  EXPECT_NE(Shell("ls ~/.ssh").exit_code, 0);
  EXPECT_THAT(Shell("env").out, Not(HasSubstr("A_SECRET")));
  EXPECT_EQ(Sandglass({"run", "-e", "GIVEN=yes", "--", "sh", "-c", "echo $GIVEN"}).out, "yes\n");
}

TEST_F(SandglassRun, TheWorldsHomeStaysUnlessItIsEphemeral) {
  EXPECT_EQ(Shell("echo one >~/own").exit_code, 0);
  EXPECT_EQ(Shell("cat ~/own").out, "one\n");
  EXPECT_NE(Sandglass({"run", "--ephemeral", "--", "sh", "-c", "cat ~/own"}).exit_code, 0);
}

// Everything dies at once: the next start finds the step half done and takes it back.
TEST_F(SandglassRun, KilledInTheMiddleOfACommandTheNextStartRecovers) {
  const TreeSnapshot before = workspace_.Snapshot();
  const Started child =
      Begin({"run", "--", "sh", "-c", "rm -rf src; echo x >keep.txt; touch ready; sleep 60"});
  WaitUntilExists("ready");
  MustCall(::kill(child.pid, SIGKILL), "kill");
  EXPECT_EQ(Finish(child).exit_code, -SIGKILL);
  const Ended next = Run({"true"});
  EXPECT_EQ(next.exit_code, 0);
  EXPECT_THAT(next.err, HasSubstr("step 1"));
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

// Commands cannot change the project any more, and the session ends them.
TEST_F(SandglassRun, KilledAloneTheBridgeTakesTheCommandWithItAndTheNextStartRecovers) {
  const TreeSnapshot before = workspace_.Snapshot();
  const Started child =
      Begin({"run", "--", "sh", "-c", "rm -rf src; touch ready; sleep 60.125; touch late"});
  WaitUntilExists("ready");
  MustCall(::kill(BridgeOf(child.pid), SIGKILL), "kill");
  const Ended ended = Finish(child);
  EXPECT_EQ(ended.exit_code, 125);
  EXPECT_THAT(ended.err, HasSubstr("the bridge process was ended by signal 9"));
  EXPECT_FALSE(IsRunning("60.125"));
  EXPECT_THAT(Run({"true"}).err, HasSubstr("step 1"));
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

// What reads what commands hand in has no way to the terminal but for warnings.
TEST_F(SandglassRun, TheBridgeHasNoStreamOfTheSessionButForErrors) {
  const Started child = Begin({"run", "--", "sh", "-c", "touch ready; sleep 60"});
  WaitUntilExists("ready");
  const std::string streams = "/proc/" + std::to_string(BridgeOf(child.pid)) + "/fd/";
  for (const char* stream : {"0", "1"})
    EXPECT_EQ(std::filesystem::read_symlink(streams + stream), "/dev/null") << stream;
  MustCall(::kill(child.pid, SIGTERM), "kill");
  Finish(child);
}

TEST_F(SandglassRun, TheBridgeEndsWithTheSession) {
  const Started child = Begin({"run", "--", "sh", "-c", "touch ready; sleep 60"});
  WaitUntilExists("ready");
  const Fd bridge(
      static_cast<int>(MustCall(::syscall(SYS_pidfd_open, BridgeOf(child.pid), 0), "pidfd_open")));
  MustCall(::kill(child.pid, SIGKILL), "kill");
  Finish(child);
  pollfd gone{bridge.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&gone, 1, 10'000), 1);
}

TEST_F(SandglassRun, WhileACommandRunsHistoryCanBeReadAndNothingElseBegins) {
  const Started child =
      Begin({"run", "--", "sh", "-c", "touch ready; while test ! -e stop; do sleep 0.05; done"});
  WaitUntilExists("ready");
  const Ended second = Run({"touch", "second"});
  EXPECT_EQ(second.exit_code, 125);
  EXPECT_FALSE(workspace_.Exists("second"));
  EXPECT_EQ(Sandglass({"history"}).exit_code, 0);
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 1);
  EXPECT_TRUE(workspace_.Exists("ready"));
  workspace_.WriteFile("stop", "");
  EXPECT_EQ(Finish(child).exit_code, 0);
}

TEST_F(SandglassRun, AStepThatCannotBeClosedIsAFailureAndIsTakenBackByTheNextStart) {
  const TreeSnapshot before = workspace_.Snapshot();
  const std::string in_its_place = workspace_.store() + "/steps/1";
  const Started child = Begin({"run", "--store", workspace_.store(), "--", "sh", "-c",
                               "touch ready; while test ! -e stop; do sleep 0.05; done"});
  WaitUntilExists("ready");
  std::filesystem::create_directories(in_its_place + "/something");
  workspace_.WriteFile("stop", "");
  const Ended ran = Finish(child);
  std::filesystem::remove_all(in_its_place);
  EXPECT_EQ(ran.exit_code, 125);
  EXPECT_THAT(ran.err, Not(IsEmpty()));
  EXPECT_EQ(Sandglass({"run", "--store", workspace_.store(), "--", "true"}).exit_code, 0);
  MustCall(::unlink(workspace_.Path("stop").c_str()), "stop");
  EXPECT_FALSE(workspace_.Exists("ready"));
  CompareOptions any_time;
  any_time.mtime_tolerance_ns = INT64_MAX;
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot(), any_time));
}

TEST_F(SandglassRun, StepsThatAreForgottenAreTold) {
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Run({"touch", "new" + std::to_string(i)}).err, "") << i;
  EXPECT_THAT(Run({"touch", "one more"}).err, HasSubstr("up to step 1, cannot be undone"));
}

TEST_F(SandglassRun, AChangeThatCouldNotBeUndoneIsRefusedAndExplained) {
  MakeTooLargeToCopy("large");
  const Ended ran = Shell("echo more >>large");
  EXPECT_NE(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("a change was refused"));
  // And what to do about it.
  for (const char* words : {"undo.max_single_step_size_bytes", "undo.on_oversize", "--no-undo-for"})
    EXPECT_THAT(ran.err, HasSubstr(words));
  EXPECT_THAT(ran.err, HasSubstr("exceed what one step may copy"));
}

TEST_F(SandglassRun, RealToolsWorkAndAreUndoneToTheLastByte) {
  const TreeSnapshot before = workspace_.Snapshot();
  const Ended ran = Shell(
      "set -e; git init -q .; git add .; git -c user.name=n -c user.email=e commit -qm first; git "
      "mv keep.txt moved; "
      "tar cf t.tar src; rm -r src; tar xf t.tar; cp -a src copy; sed -i s/old/new/ "
      "copy/deep/file; "
      "find . -name file | wc -l");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "2\n");
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

TEST_F(SandglassRun, NoSummaryPromisesMoreThanUndoKeeps) {
  EXPECT_THAT(Sandglass({"run", "--summary", "--", "sh", "-c", "echo 1 >keep.txt"}).err,
              HasSubstr("`sandglass undo` takes it back"));
  EXPECT_THAT(Sandglass({"run", "--summary", "--no-undo-for", "*.o", "--", "sh", "-c",
                         "echo 2 >keep.txt; echo >a.o"})
                  .err,
              HasSubstr("`sandglass undo` takes what was recorded of it back"));
  const Fd file(MustCall(
      ::open((state_ + "/sandglass.toml").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "open"));
  Must(
      WriteFully(file.get(), AsBytes(std::string_view("[undo]\non_oversize = \"unprotected\"\n"))));
  MakeTooLargeToCopy("large");
  const Ended ran = Sandglass({"run", "--summary", "--", "sh", "-c", "echo more >>large"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("not recorded in full: `sandglass undo --force` takes back what "
                                 "was kept"));
}

}  // namespace
}  // namespace sandglass::test
