// One session that runs several commands, as programs use it that keep a world warm.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "base/io.h"
#include "base/process_tree.h"
#include "session/former_world.h"
#include "session/open_log.h"
#include "session/session.h"
#include "session/standstill.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"
#include "undo/undo_log.h"
#include "world/local/local_world.h"

namespace sandglass::test {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class SeveralCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = world::WhyNoLocalWorld(); !why.empty())
      GTEST_SKIP() << "no local world: " << why;
    nothing_ = Fd(MustCall(::open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null"));
    options_.shim_path = SANDGLASS_SHIM;
    options_.projects.push_back({{.project = workspace_.project(), .store = workspace_.store()}});
    session_ = Must(session::Session::Start(options_));
  }

  session::CommandReport Run(const std::string& script,
                             session::AfterCommand after = session::AfterCommand::kSessionGoesOn) {
    auto streams =
        Must(session::HostStreams::Open({nothing_.get(), nothing_.get(), nothing_.get()}));
    return Must(session_->Run({.argv = {"/bin/sh", "-c", script}, .label = script, .after = after},
                              streams));
  }

  std::vector<int64_t> History() const {
    const auto reader = Must(undo::StoreReader::Open(options_.projects.front().paths));
    std::vector<int64_t> ids;
    for (const undo::HistoryEntry& entry : Must(reader.History())) {
      if (entry.step) ids.push_back(entry.step->id.value);
    }
    return ids;
  }

  const TempWorkspace workspace_;
  Fd nothing_;
  session::SessionOptions options_;
  std::unique_ptr<session::Session> session_;
};

TEST_F(SeveralCommands, EmptyStepsAreInTheHistoryUnderTheirOwnNumbers) {
  for (int64_t id = 1; id <= 3; ++id) {
    const auto report = Run("true");
    EXPECT_EQ(report.step, StepId{id});
    ASSERT_EQ(report.projects.size(), 1u);
    EXPECT_TRUE(report.projects[0].changes.empty());
  }
  session_.reset();
  EXPECT_THAT(History(), ElementsAre(1, 2, 3));
}

TEST_F(SeveralCommands, AStepThatChangedSomethingIsInTheHistoryWhenItsEndIsTold) {
  Run("true");
  const auto report = Run("echo new > made");
  EXPECT_EQ(report.step, StepId{2});
  ASSERT_EQ(report.projects.size(), 1u);
  EXPECT_EQ(report.projects[0].changes.size(), 1u);
  EXPECT_THAT(History(), ElementsAre(1, 2));
}

// Nobody has to ask for it, and no end has to come.
TEST_F(SeveralCommands, EmptyStepsGetIntoTheHistoryWhenItIsQuiet) {
  Run("true");
  Run("true");
  for (int i = 0; i < 500 && History().size() < 2; ++i) ::usleep(10'000);
  EXPECT_THAT(History(), ElementsAre(1, 2));
}

// As another terminal reads it.
TEST_F(SeveralCommands, EmptyStepsAreInTheHistoryWhileTheNextCommandRuns) {
  Run("true");
  const pid_t reader = MustCall(::fork(), "fork");
  if (reader == 0) {
    bool seen = false;
    for (int i = 0; i < 500 && !seen; ++i) {
      ::usleep(10'000);
      seen = History() == std::vector<int64_t>{1};
    }
    ::_exit(seen && !workspace_.Exists("made") ? 0 : 1);
  }
  Run("sleep 6; echo new > made");
  int status = -1;
  EXPECT_EQ(::waitpid(reader, &status, 0), reader);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(History(), ElementsAre(1, 2));
}

TEST_F(SeveralCommands, EmptyStepsStandBeforeTheStepThatFollowsThem) {
  for (int i = 0; i < 3; ++i) Run("true");
  EXPECT_EQ(Run("for i in 1 2 3 4 5 6 7 8; do echo new > made$i & done; wait").step, StepId{4});
  Run("true");
  Run("rm made1");
  session_.reset();
  EXPECT_THAT(History(), ElementsAre(1, 2, 3, 4, 5, 6));
}

// Nothing of them is lost, so no id that somebody was told means another command later.
TEST_F(SeveralCommands, EmptyStepsAreInTheHistoryAfterAKill) {
  session_.reset();
  const pid_t killed = MustCall(::fork(), "fork");
  if (killed == 0) {
    session_ = Must(session::Session::Start(options_));
    for (int i = 0; i < 3; ++i) Run("true");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(killed, &status, 0), killed);
  EXPECT_TRUE(WIFSIGNALED(status));
  const undo::UndoPaths& paths = options_.projects.front().paths;
  Must(session::EndFormerWorld(paths.store));
  const auto log = Must(session::OpenLogSoon(paths, {}));
  EXPECT_THAT(History(), ElementsAre(1, 2, 3));
  EXPECT_EQ(log->next_step_id(), StepId{4});
}

// The one in reserve is theirs to kill: it is a keeper.
TEST_F(SeveralCommands, WhoKillsTheNextKeeperDoesNotKeepTheNextCommandFromRunning) {
  const auto report =
      Run("sleep 0.1; for p in /proc/[0-9]*; do "
          "[ \"$(cat $p/comm)\" = sg-keeper ] && [ ${p#/proc/} != $PPID ] && "
          "kill -KILL ${p#/proc/}; done; true");
  EXPECT_EQ(report.outcome.exit_code, 0);
  EXPECT_EQ(Run("echo new > made").outcome.exit_code, 0);
  EXPECT_TRUE(workspace_.Exists("made"));
}

TEST_F(SeveralCommands, WhoStopsTheNextKeeperDoesNotKeepTheNextCommandFromRunning) {
  const auto report =
      Run("sleep 0.1; for p in /proc/[0-9]*; do "
          "[ \"$(cat $p/comm)\" = sg-keeper ] && [ ${p#/proc/} != $PPID ] && "
          "kill -STOP ${p#/proc/}; done; true");
  EXPECT_EQ(report.outcome.exit_code, 0);
  EXPECT_EQ(Run("echo new > made").outcome.exit_code, 0);
  EXPECT_TRUE(workspace_.Exists("made"));
}

TEST_F(SeveralCommands, WhoStopsItsOwnKeeperEndsAllTheSame) {
  EXPECT_EQ(Run("kill -STOP $PPID; exit 3").outcome.exit_code, 3);
}

// Whoever is left behind may still write: its step is not put off.
TEST_F(SeveralCommands, WhoIsLeftBehindCanPrintMoreThanAPipeHolds) {
  Run("(sleep 0.1; head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2; touch printed) &");
  Run("for i in $(seq 500); do test -e printed && exit; sleep 0.02; done");
  EXPECT_TRUE(workspace_.Exists("printed"));
}

TEST_F(SeveralCommands, WhatWasPrintedBeforeTheEndIsOutputAndNothingElse) {
  const Fd out(MustCall(::memfd_create("output", MFD_CLOEXEC), "memfd"));
  auto streams = Must(session::HostStreams::Open({nothing_.get(), out.get(), nothing_.get()}));
  const std::string script = "(sleep 0.3; echo later) & head -c 700000 /dev/zero; echo end";
  Must(session_->Run({.argv = {"/bin/sh", "-c", script}, .label = script}, streams));
  Run("sleep 0.6");
  MustCall(::lseek(out.get(), 0, SEEK_SET), "rewind");
  const Bytes printed = Must(ReadFully(out.get(), 1 << 20));
  EXPECT_EQ(printed.size(), 700000u + 4u);
  EXPECT_TRUE(AsText(printed).ends_with("end\n"));
}

TEST_F(SeveralCommands, AStepThatADaemonOutlivesIsInTheHistoryWhenItsEndIsTold) {
  Run("(sleep 600 & ) </dev/null >/dev/null 2>&1");
  EXPECT_THAT(History(), ElementsAre(1));
}

// Nobody sees it before the step closes: the file was opened in an earlier one.
TEST_F(SeveralCommands, WhatAProcessOfAnEarlierStepWritesIsToldAsAChangeOfTheStep) {
  for (const char* afterwards : {"sleep 600", "true"}) {
    Run(std::string("rm -f ~/go ~/done; (while [ ! -e ~/go ]; do sleep 0.02; done; echo late >&5; "
                    "exec 5>&-; touch ~/done; ") +
        afterwards + ") 5>>log </dev/null >/dev/null 2>&1 &");
    const auto report = Run("touch ~/go; while [ ! -e ~/done ]; do sleep 0.02; done; sleep 0.2");
    ASSERT_EQ(report.projects.size(), 1u);
    EXPECT_EQ(report.projects[0].changes.size(), 1u) << afterwards;
  }
  EXPECT_EQ(workspace_.ReadFile("log"), "late\nlate\n");
  session_.reset();
  EXPECT_THAT(History(), ElementsAre(1, 2, 3, 4));
}

std::string CommandLine(pid_t pid) {
  const auto text = ReadFileAt(AT_FDCWD, fmt::format("/proc/{}/cmdline", pid).c_str(), 4096);
  return text.ok() ? *text : "";
}

// Its processes are the shim's children then, as keepers are.
TEST_F(SeveralCommands, WhatIsLeftOfACommandThatKilledItsKeeperCountsAsItsProcesses) {
  Run("kill -KILL $PPID; exec sleep 4711");
  Run("sleep 4712 & sleep 0.1");  // meanwhile; and its keeper is one
  std::vector<std::string> found;
  for (const pid_t child : ChildrenOf(::getpid())) {
    for (const pid_t pid : session::ProcessesOfCommands(child)) found.push_back(CommandLine(pid));
  }
  EXPECT_THAT(found, UnorderedElementsAre(std::string("sleep\0004711\000", 11),
                                          std::string("sleep\0004712\000", 11)));
}

TEST_F(SeveralCommands, AfterTheLastOneTheWorldIsGone) {
  const auto report = Run("echo new > made", session::AfterCommand::kSessionEnds);
  EXPECT_EQ(report.outcome.exit_code, 0);
  EXPECT_EQ(report.projects[0].changes.size(), 1u);
  EXPECT_THAT(History(), ElementsAre(1));
  auto streams = Must(session::HostStreams::Open({nothing_.get(), nothing_.get(), nothing_.get()}));
  const auto another = session_->Run({.argv = {"/bin/true"}, .label = "true"}, streams);
  EXPECT_TRUE(!another.ok() || another->outcome.ending == control::Ending::kLost);
}

}  // namespace
}  // namespace sandglass::test
