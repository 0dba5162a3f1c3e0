// Session, bridge, shim and keeper killed, alone or together: nothing is lost, nobody lives on, and the next start recovers and says so.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "tests/session/sandglass_fixture.h"
#include "tests/session/victims.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SandglassDeaths : public SandglassFixture {
 protected:
  void SetUp() override {
    SandglassFixture::SetUp();
    if (!IsSkipped()) AdoptOrphans();
  }
  void TearDown() override {
    for (const pid_t pid : SurvivorsAfter(std::chrono::seconds(0))) ::kill(pid, SIGKILL);
  }
  // In the middle of a command that has changed things, one process of which no signal but SIGKILL ends.
  Ended KillInTheMiddle(Victim victim) {
    const Started run = Begin({"run", "--", "sh", "-c",
                               "(trap '' TERM HUP INT; setsid sleep 60) & rm -rf src; echo x "
                               ">keep.txt; true >ready; sleep 60"});
    WaitUntilExists("ready");
    EXPECT_TRUE(Kill(CastOf(run.pid), victim));
    Ended ended = Finish(run);
    EXPECT_THAT(SurvivorsAfter(std::chrono::seconds(10)), IsEmpty());
    dead_ = workspace_.Snapshot();
    return ended;
  }
  void ExpectTheNextStartTakesItBackAndRedoBringsItAgain() {
    const Ended next = Run({"true"});
    EXPECT_EQ(next.exit_code, 0);
    EXPECT_THAT(next.err, HasSubstr("the interrupted step 1 has been taken back"));
    EXPECT_TRUE(TreesEqual(before_, workspace_.Snapshot()));
    EXPECT_EQ(Sandglass({"redo"}).exit_code, 0);
    EXPECT_TRUE(TreesEqual(dead_, workspace_.Snapshot()));
  }

  TreeSnapshot before_, dead_;
};

TEST_F(SandglassDeaths, OfTheSession) {
  before_ = workspace_.Snapshot();
  EXPECT_EQ(KillInTheMiddle(Victim::kSession).exit_code, -SIGKILL);
  ExpectTheNextStartTakesItBackAndRedoBringsItAgain();
}

TEST_F(SandglassDeaths, OfTheBridge) {
  before_ = workspace_.Snapshot();
  EXPECT_EQ(KillInTheMiddle(Victim::kBridge).exit_code, 125);
  ExpectTheNextStartTakesItBackAndRedoBringsItAgain();
}

TEST_F(SandglassDeaths, OfTheShim) {
  before_ = workspace_.Snapshot();
  const Ended ended = KillInTheMiddle(Victim::kShim);
  EXPECT_EQ(ended.exit_code, 125);
  EXPECT_THAT(ended.err, HasSubstr("the next start takes back what it had begun"));
  ExpectTheNextStartTakesItBackAndRedoBringsItAgain();
}

TEST_F(SandglassDeaths, OfAllTogether) {
  before_ = workspace_.Snapshot();
  EXPECT_EQ(KillInTheMiddle(Victim::kAll).exit_code, -SIGKILL);
  ExpectTheNextStartTakesItBackAndRedoBringsItAgain();
}

// The session and the shim live and end what is left: the command counts as killed, and its step closes as that of any other.
TEST_F(SandglassDeaths, OfTheKeeper) {
  before_ = workspace_.Snapshot();
  EXPECT_EQ(KillInTheMiddle(Victim::kKeeper).exit_code, 128 + SIGKILL);
  EXPECT_THAT(Run({"true"}).err, Not(HasSubstr("interrupted")));
  EXPECT_TRUE(TreesEqual(dead_, workspace_.Snapshot()));
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before_, workspace_.Snapshot()));
}

// Stopped, the shim does not notice that its session is gone: whoever comes next ends the world before it touches the store.
class DeathOfTheSessionWhileTheShimCannotAct : public SandglassDeaths {
 protected:
  void SetUp() override {
    SandglassDeaths::SetUp();
    if (IsSkipped()) return;
    before_ = workspace_.Snapshot();
    const Started run = Begin({"run", "--", "sh", "-c", "rm -rf src; touch ready; sleep 63.5"});
    WaitUntilExists("ready");
    ASSERT_TRUE(BeginsToRun("63.5"));
    const Cast cast = CastOf(run.pid);
    ASSERT_EQ(cast.shims.size(), 1U);
    MustCall(::kill(cast.shims.front(), SIGSTOP), "stop the shim");
    EXPECT_TRUE(Kill(cast, Victim::kSession));
    EXPECT_EQ(Finish(run).exit_code, -SIGKILL);
    EXPECT_TRUE(IsRunning("63.5")) << "or these tests could not fail";
  }
  void ExpectTheWorldHasEnded() {
    EXPECT_FALSE(IsRunning("63.5"));
    EXPECT_THAT(SurvivorsAfter(std::chrono::seconds(10)), IsEmpty());
  }
};

TEST_F(DeathOfTheSessionWhileTheShimCannotAct, AndTheNextProgramIsUndo) {
  const Ended next = Sandglass({"undo"});
  EXPECT_THAT(next.err, HasSubstr("the interrupted step 1 has been taken back"));
  EXPECT_TRUE(TreesEqual(before_, workspace_.Snapshot()));
  ExpectTheWorldHasEnded();
}

TEST_F(DeathOfTheSessionWhileTheShimCannotAct, AndTheNextProgramIsStatus) {
  const Ended next = Sandglass({"status"});
  EXPECT_THAT(next.out, HasSubstr("the interrupted step 1 has been taken back")) << next.err;
  EXPECT_TRUE(TreesEqual(before_, workspace_.Snapshot()));
  ExpectTheWorldHasEnded();
}

TEST_F(DeathOfTheSessionWhileTheShimCannotAct, AndTheNextProgramIsDiscard) {
  const TreeSnapshot left = workspace_.Snapshot();
  const Ended next = Sandglass({"discard", "--yes"});
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_TRUE(TreesEqual(left, workspace_.Snapshot()));
  ExpectTheWorldHasEnded();
}

// What it leaves in the store does not outlive the store.
TEST_F(SandglassDeaths, OfAllAndTheNextProgramIsDiscard) {
  EXPECT_EQ(Run({"touch", "first"}).exit_code, 0);
  KillInTheMiddle(Victim::kAll);
  const Ended discarded = Sandglass({"discard", "--yes"});
  EXPECT_EQ(discarded.exit_code, 0) << discarded.err;
  EXPECT_TRUE(TreesEqual(dead_, workspace_.Snapshot()));
  const Ended next = Run({"touch", "second"});
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_THAT(Sandglass({"history"}).out, Not(HasSubstr("first")));
}

TEST_F(SandglassDeaths, NobodyDiscardsTheStoreOfASessionThatLives) {
  const Started run =
      Begin({"run", "--", "sh", "-c",
             "touch ready; while test ! -e stop; do sleep 0.05; done; rm keep.txt"});
  WaitUntilExists("ready");
  const Ended refused = Sandglass({"discard", "--yes"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr(fmt::format("a session (process {}) is using", run.pid)));
  EXPECT_EQ(Sandglass({"undo", "--stop"}).exit_code, 0) << "it can still be reached";
  EXPECT_TRUE(workspace_.Exists("keep.txt"));
  Finish(run);
}

// Its world is not the one of a session that is gone.
TEST_F(SandglassDeaths, NobodyEndsTheWorldOfASessionThatLives) {
  const Started run = Begin({"run", "--", "sh", "-c",
                             "touch ready; while test ! -e stop; do sleep 0.05; done; echo lives"});
  WaitUntilExists("ready");
  EXPECT_EQ(Run({"true"}).exit_code, 125);
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 1);
  workspace_.WriteFile("stop", "");
  EXPECT_EQ(Finish(run).out, "lives\n");
}

// To whoever asks for an undo then, the interrupted step is the newest.
TEST_F(SandglassDeaths, OfAllAndTheNextProgramIsUndo) {
  const TreeSnapshot at_first = workspace_.Snapshot();
  EXPECT_EQ(Run({"touch", "first"}).exit_code, 0);
  before_ = workspace_.Snapshot();
  KillInTheMiddle(Victim::kAll);
  const Ended undone = Sandglass({"undo"});
  EXPECT_EQ(undone.exit_code, 0);
  EXPECT_THAT(undone.err, HasSubstr("the interrupted step 2 has been taken back"));
  EXPECT_THAT(undone.out, HasSubstr("step 2: undone; the steps before it are as they were"));
  EXPECT_TRUE(TreesEqual(before_, workspace_.Snapshot()));
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(at_first, workspace_.Snapshot()));
  EXPECT_EQ(Sandglass({"redo", "2"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(dead_, workspace_.Snapshot()));
}

TEST_F(SandglassDeaths, OfAllAndTheNextProgramIsUndoOfTwo) {
  const TreeSnapshot at_first = workspace_.Snapshot();
  EXPECT_EQ(Run({"touch", "first"}).exit_code, 0);
  KillInTheMiddle(Victim::kAll);
  EXPECT_THAT(Sandglass({"undo", "2"}).out, HasSubstr("step 1: undone"));
  EXPECT_TRUE(TreesEqual(at_first, workspace_.Snapshot()));
}

// Planning takes nothing back, not even what an opened log would.
TEST_F(SandglassDeaths, OfAllAndTheNextProgramIsADryRun) {
  EXPECT_EQ(Run({"touch", "first"}).exit_code, 0);
  KillInTheMiddle(Victim::kAll);
  const Ended plan = Sandglass({"undo", "--dry-run"});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("step 2: would be undone; it was interrupted"));
  const Ended json = Sandglass({"undo", "--dry-run", "--json"});
  EXPECT_THAT(json.out, HasSubstr(R"("interrupted":{)"));
  const Ended redo = Sandglass({"redo", "--dry-run"});
  EXPECT_EQ(redo.exit_code, 3);
  EXPECT_THAT(redo.err, HasSubstr("step 2 was interrupted"));
  EXPECT_TRUE(TreesEqual(dead_, workspace_.Snapshot()));
}

}  // namespace
}  // namespace sandglass::test
