#include "control/step_boundaries.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace sandglass::control {

void PrintTo(const StepChange& change, std::ostream* out) {
  *out << (change.edge == StepEdge::kOpened ? "open " : "close ") << change.id.value << " cause "
       << static_cast<int>(change.cause);
}

namespace {

using namespace std::chrono_literals;
using Changes = std::vector<StepChange>;

StepChange Opened(int64_t id) { return {.id = {id}}; }
StepChange Closed(int64_t id, CloseCause cause = CloseCause::kQuiet) {
  return {.id = {id}, .edge = StepEdge::kClosed, .cause = cause};
}

class StepBoundariesTest : public testing::Test {
 protected:
  // Time passes as it does for an owner with a timer.
  void Pass(std::chrono::milliseconds time) {
    const Instant end = clock_.Now() + time;
    while (const auto due = steps_.Deadline()) {
      if (*due > end) break;
      clock_.Set(std::max(*due, clock_.Now()));
      steps_.Tick();
    }
    clock_.Set(end);
    steps_.Tick();
  }

  FakeClock clock_;
  StepBoundaries steps_{clock_, {}};
};

TEST_F(StepBoundariesTest, AStepIsOpenBeforeItsCommandIsSentAndAsLongAsItRuns) {
  EXPECT_EQ(steps_.CommandBegins({7}), StepId{7});
  EXPECT_EQ(steps_.TakeChanges(), Changes{Opened(7)});
  EXPECT_EQ(steps_.Deadline(), std::nullopt);
  Pass(10min);
  EXPECT_EQ(steps_.OperationBegins(), StepId{7});
  steps_.OperationEnds({7});
  EXPECT_EQ(steps_.TakeChanges(), Changes{});
}

TEST_F(StepBoundariesTest, CC_09_WithoutLateWritesAStepClosesAfterTheQuiescenceWindow) {
  steps_.CommandBegins({7});
  Pass(1s);
  steps_.CommandEnds({7});
  Pass(99ms);
  EXPECT_EQ(steps_.TakeChanges(), Changes{Opened(7)});
  Pass(1ms);
  EXPECT_EQ(steps_.TakeChanges(), Changes{Closed(7)});
  EXPECT_EQ(steps_.Deadline(), std::nullopt);
}

TEST_F(StepBoundariesTest, CC_10_ALateWriteWithinTheWindowBelongsToTheStepWhichWaitsForIt) {
  steps_.CommandBegins({7});
  steps_.CommandEnds({7});
  Pass(90ms);
  EXPECT_EQ(steps_.OperationBegins(), StepId{7});
  Pass(500ms);
  EXPECT_EQ(steps_.open_step(), StepId{7});
  steps_.OperationEnds({7});
  Pass(99ms);
  EXPECT_EQ(steps_.open_step(), StepId{7});
  Pass(1ms);
  EXPECT_EQ(steps_.TakeChanges(), (Changes{Opened(7), Closed(7)}));
}

TEST_F(StepBoundariesTest, CC_11_OperationsThatNeverEndCannotHoldTheStepOpenForEver) {
  steps_.CommandBegins({7});
  steps_.OperationBegins();
  steps_.CommandEnds({7});
  Pass(1999ms);
  EXPECT_EQ(steps_.open_step(), StepId{7});
  Pass(1ms);
  EXPECT_EQ(steps_.TakeChanges(), (Changes{Opened(7), Closed(7, CloseCause::kLongestWait)}));
  steps_.OperationEnds({7});
  EXPECT_EQ(steps_.TakeChanges(), Changes{});
}

TEST_F(StepBoundariesTest, WritesThatKeepComingCannotHoldTheStepOpenForEverEither) {
  steps_.CommandBegins({7});
  steps_.CommandEnds({7});
  for (int i = 0; i < 40; ++i) {
    steps_.OperationEnds(steps_.OperationBegins());
    Pass(50ms);
  }
  EXPECT_EQ(steps_.TakeChanges(), (Changes{Opened(7), Closed(7, CloseCause::kLongestWait)}));
}

TEST_F(StepBoundariesTest, AStepStaysOpenWhileAnOperationIsHeldHoweverLong) {
  steps_.CommandBegins({7});
  steps_.Hold({7});
  steps_.Hold({7});
  steps_.CommandEnds({7});
  steps_.SetProcesses({7}, Processes::kGone);
  Pass(10min);
  steps_.LetGo({7});
  steps_.LetGo({6});
  Pass(10min);
  EXPECT_EQ(steps_.TakeChanges(), Changes{Opened(7)});
  steps_.LetGo({7});
  EXPECT_EQ(steps_.TakeChanges(), Changes{Closed(7)});
}

TEST_F(StepBoundariesTest, AfterAHeldOperationTheWaitStartsAnew) {
  steps_.CommandBegins({7});
  steps_.Hold({7});
  steps_.CommandEnds({7});
  Pass(10min);
  steps_.LetGo({7});
  for (int i = 0; i < 39; ++i) {
    steps_.OperationEnds(steps_.OperationBegins());
    Pass(50ms);
  }
  EXPECT_EQ(steps_.open_step(), StepId{7});
  Pass(100ms);
  EXPECT_EQ(steps_.open_step(), std::nullopt);
}

TEST_F(StepBoundariesTest, CC_12_WritesAfterTheWindowBelongToAnAmbientStep) {
  steps_.CommandBegins({7});
  steps_.CommandEnds({7});
  Pass(100ms);
  EXPECT_EQ(steps_.OperationBegins(), StepId{-1});
  EXPECT_EQ(steps_.TakeChanges(), (Changes{Opened(7), Closed(7), Opened(-1)}));
}

TEST_F(StepBoundariesTest, ALateWriteIsAmbientEvenIfNobodyLookedAtTheClock) {
  steps_.CommandBegins({7});
  steps_.CommandEnds({7});
  clock_.Advance(3s);
  EXPECT_EQ(steps_.OperationBegins(), StepId{-1});
}

TEST_F(StepBoundariesTest, IfTheHostKnowsThatNothingIsLeftTheStepClosesAtOnce) {
  steps_.CommandBegins({7});
  steps_.SetProcesses({7}, Processes::kGone);
  EXPECT_EQ(steps_.TakeChanges(), Changes{Opened(7)});  // the shim has not told the exit code yet
  steps_.CommandEnds({7});
  EXPECT_EQ(steps_.TakeChanges(), Changes{Closed(7)});

  steps_.CommandBegins({8});
  steps_.SetProcesses({8}, Processes::kAlive);
  const StepId step = steps_.OperationBegins();
  steps_.CommandEnds({8});
  steps_.SetProcesses({8}, Processes::kGone);
  EXPECT_EQ(steps_.TakeChanges(), Changes{Opened(8)});
  steps_.OperationEnds(step);
  EXPECT_EQ(steps_.TakeChanges(), Changes{Closed(8)});
}

TEST_F(StepBoundariesTest, CommandsThatOverlapFormOneStep) {
  EXPECT_EQ(steps_.CommandBegins({7}), StepId{7});
  EXPECT_EQ(steps_.CommandBegins({8}), StepId{7});
  steps_.CommandEnds({7});
  Pass(10s);
  EXPECT_EQ(steps_.OperationBegins(), StepId{7});
  steps_.OperationEnds({7});
  steps_.CommandEnds({8});
  Pass(100ms);
  EXPECT_EQ(steps_.TakeChanges(), (Changes{Opened(7), Closed(7)}));
}

TEST_F(StepBoundariesTest, TheNextCommandDoesNotWaitForTheWindow) {
  steps_.CommandBegins({7});
  const StepId late = steps_.OperationBegins();
  steps_.CommandEnds({7});
  EXPECT_EQ(steps_.CommandBegins({8}), StepId{8});
  EXPECT_EQ(steps_.TakeChanges(),
            (Changes{Opened(7), Closed(7, CloseCause::kNextCommand), Opened(8)}));
  steps_.OperationEnds(late);  // of a step that is closed: does not count for this one
  steps_.CommandEnds({7});
  EXPECT_EQ(steps_.open_step(), StepId{8});
  EXPECT_EQ(steps_.Deadline(), std::nullopt);
}

TEST_F(StepBoundariesTest, AnAmbientStepClosesAfterFiveSecondsWithoutWrites) {
  steps_.OperationEnds(steps_.OperationBegins());
  Pass(4s);
  steps_.OperationEnds(steps_.OperationBegins());
  Pass(4999ms);
  EXPECT_EQ(steps_.TakeChanges(), Changes{Opened(-1)});
  Pass(1ms);
  EXPECT_EQ(steps_.TakeChanges(), Changes{Closed(-1)});
  EXPECT_EQ(steps_.OperationBegins(), StepId{-2});
}

TEST_F(StepBoundariesTest, AnAmbientStepLastsAMinuteAtMost) {
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(steps_.OperationBegins(), StepId{-1});
    steps_.OperationEnds({-1});
    Pass(1s);
  }
  EXPECT_EQ(steps_.TakeChanges(), (Changes{Opened(-1), Closed(-1, CloseCause::kLongestWait)}));
}

TEST_F(StepBoundariesTest, ACommandClosesAnAmbientStep) {
  steps_.OperationBegins();
  steps_.CommandBegins({7});
  EXPECT_EQ(steps_.TakeChanges(),
            (Changes{Opened(-1), Closed(-1, CloseCause::kNextCommand), Opened(7)}));
}

TEST_F(StepBoundariesTest, WhatIsToldOfUnknownCommandsChangesNothing) {
  steps_.CommandEnds({7});
  steps_.SetProcesses({7}, Processes::kGone);
  steps_.OperationEnds({7});
  steps_.CommandBegins({8});
  steps_.CommandEnds({7});
  steps_.SetProcesses({9}, Processes::kGone);
  steps_.OperationEnds({8});
  EXPECT_EQ(steps_.TakeChanges(), Changes{Opened(8)});
}

}  // namespace
}  // namespace sandglass::control
