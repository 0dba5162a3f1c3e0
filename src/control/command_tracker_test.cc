#include "control/command_tracker.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/line_reader.h"
#include "control/writer_queue.h"

namespace sandglass::control {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// An action in words, so that tests read as a story.
struct Describe {
  std::string operator()(const StepChange& change) const {
    return fmt::format("{} {}", change.edge == StepEdge::kOpened ? "open" : "close",
                       change.id.value);
  }
  std::string operator()(const Send& send) const { return "send " + Encode(send.message); }
  std::string operator()(const Started& started) const {
    return fmt::format("started {}", started.id.value);
  }
  std::string operator()(const Show& show) const {
    return fmt::format("show {} {}", show.output.id.value, show.output.data);
  }
  std::string operator()(const Ended& ended) const {
    const Outcome& outcome = ended.outcome;
    return fmt::format("ended {} {} {}", outcome.id.value, EndingName(outcome.ending),
                       outcome.exit_code);
  }
  std::string operator()(const Violation& violation) const {
    return fmt::format("violation {}", ViolationName(violation.kind));
  }
  std::string operator()(const Complaint& complaint) const {
    return "complaint " + complaint.problem.message;
  }
  std::string operator()(const Stuck& stuck) const {
    return fmt::format("stuck {}", stuck.id.value);
  }
  std::string operator()(const WrongVersion& wrong) const {
    return fmt::format("wrong version {}", wrong.version);
  }
};

class CommandTrackerTest : public testing::Test {
 protected:
  Strings Actions() {
    Strings words;
    for (const Action& action : tracker_.TakeActions())
      words.push_back(std::visit(Describe{}, action));
    return words;
  }
  void Say(const ShimMessage& message) {
    tracker_.Receive(Result<std::string_view>(Encode(message)));
  }
  void SayLine(std::string_view line) { tracker_.Receive(Result<std::string_view>(line)); }
  // A command that has started; its actions so far are gone.
  void Run(Exec exec) {
    const StepId id = exec.id;
    ASSERT_TRUE(tracker_.Start(std::move(exec)).ok());
    Say(StepStarted{id});
    Actions();
  }
  void Run(int64_t id) { Run({.id = {id}, .command = "x"}); }
  void Pass(std::chrono::milliseconds time) {
    clock_.Advance(time);
    tracker_.Tick();
  }

  FakeClock clock_;
  CommandTracker tracker_{clock_, {}};
};

TEST_F(CommandTrackerTest, CC_01_StartedAndCompletedOpenAndCloseTheStepOfTheWritesInBetween) {
  ASSERT_TRUE(tracker_.Start({.id = {7}, .command = "make"}).ok());
  EXPECT_THAT(Actions(), ElementsAre("open 7", R"(send {"type":"exec","id":7,"command":"make"})"));
  // Writes belong to the step from the moment it is sent, whatever the shim says.
  EXPECT_EQ(tracker_.OperationBegins(), StepId{7});
  tracker_.OperationEnds({7});
  Say(StepStarted{{7}});
  EXPECT_EQ(tracker_.OperationBegins(), StepId{7});
  tracker_.OperationEnds({7});
  Say(StepCompleted{.id = {7}});
  EXPECT_THAT(Actions(), ElementsAre("started 7", "ended 7 exited 0"));
  EXPECT_EQ(tracker_.OperationBegins(), StepId{7});
  tracker_.OperationEnds({7});
  Pass(100ms);
  EXPECT_THAT(Actions(), ElementsAre("close 7"));
  EXPECT_EQ(tracker_.OperationBegins(), StepId{-1});
  EXPECT_EQ(tracker_.violations(), 0u);
}

TEST_F(CommandTrackerTest, CC_02_MalformedJsonIsReportedAndTheChannelGoesOn) {
  Run(7);
  SayLine(R"({"type":"step_completed","id":7)");
  SayLine("Segmentation fault");
  SayLine(R"({"type":"step_completed","id":7,"exit_code":"0"})");
  const auto actions = tracker_.TakeActions();
  ASSERT_EQ(actions.size(), 3u);
  const auto& violation = std::get<Violation>(actions[2]);
  EXPECT_EQ(violation.kind, ViolationKind::kMalformed);
  EXPECT_EQ(violation.detail, "step_completed: \"exit_code\" is not a number");
  Say(StepCompleted{.id = {7}});
  EXPECT_THAT(Actions(), ElementsAre("ended 7 exited 0"));
}

TEST_F(CommandTrackerTest, CC_03_AnUnknownMessageTypeIsReportedAndTheChannelGoesOn) {
  Run(7);
  SayLine(R"({"type":"dance","id":7})");
  // A host's message from a shim is unknown too: it cannot start anything.
  SayLine(R"({"type":"exec","id":8,"command":"rm -rf /"})");
  Say(StepCompleted{.id = {7}, .exit_code = 3});
  EXPECT_THAT(Actions(),
              ElementsAre("violation malformed", "violation malformed", "ended 7 exited 3"));
}

TEST_F(CommandTrackerTest, CC_05_CompletedWithoutStartedIsAnErrorAndNothingElse) {
  Say(StepCompleted{.id = {7}});
  EXPECT_THAT(Actions(), ElementsAre("violation unknown_command"));
  ASSERT_TRUE(tracker_.Start({.id = {7}, .command = "x"}).ok());
  Actions();
  Say(StepCompleted{.id = {7}});
  Pass(10s);
  EXPECT_THAT(Actions(), ElementsAre("violation not_started"));
  EXPECT_EQ(tracker_.running(), 1u);
  Say(StepStarted{{7}});
  Say(StepCompleted{.id = {7}});
  EXPECT_THAT(Actions(), ElementsAre("started 7", "ended 7 exited 0"));
}

TEST_F(CommandTrackerTest, CC_06_ASecondStartedForTheSameStepChangesNothing) {
  Run(7);
  Say(StepStarted{{7}});
  EXPECT_THAT(Actions(), ElementsAre("violation started_twice"));
  Say(Output{.id = {7}, .data = "on"});
  Say(StepCompleted{.id = {7}});
  EXPECT_THAT(Actions(), ElementsAre("show 7 on", "ended 7 exited 0"));
}

TEST_F(CommandTrackerTest, CC_07_CancellingInTheMiddleOfAStepFinalisesIt) {
  Run(7);
  ASSERT_TRUE(tracker_.CancelCommand({7}).ok());
  ASSERT_TRUE(tracker_.CancelCommand({7}).ok());
  EXPECT_THAT(Actions(), ElementsAre(R"(send {"type":"cancel","id":7})"));
  Say(Output{.id = {7}, .data = "bye"});
  Say(StepCompleted{.id = {7}, .exit_code = 143, .signal = 15});
  EXPECT_THAT(Actions(), ElementsAre("show 7 bye", "ended 7 cancelled 143"));
  Pass(100ms);
  EXPECT_THAT(Actions(), ElementsAre("close 7"));
  EXPECT_EQ(tracker_.Deadline(), std::nullopt);
  EXPECT_EQ(tracker_.CancelCommand({7}).error().code(), Code::kNotFound);
}

// Both ends of a channel in memory, with reads of an odd size; the shim answers as a real one would.
TEST_F(CommandTrackerTest, CC_08_ANormalCommandCycleForwardsItsEvents) {
  WriterQueue to_shim, to_host;
  LineReader in_shim, in_host;
  const auto carry = [](WriterQueue& from, LineReader& reader, const auto& take) {
    while (!from.empty()) {
      const std::string read(from.Front().substr(0, 7));
      from.Consume(read.size());
      std::string_view bytes = read;
      while (const auto line = reader.Next(bytes)) take(*line);
    }
  };
  Strings told;
  const auto act = [&] {
    for (const Action& action : tracker_.TakeActions()) {
      told.push_back(std::visit(Describe{}, action));
      const auto* send = std::get_if<Send>(&action);
      if (send != nullptr) EXPECT_TRUE(to_shim.Push(Encode(send->message), LineKind::kUrgent).ok());
    }
  };
  const auto say = [&](const ShimMessage& message) {
    EXPECT_TRUE(to_host.Push(Encode(message), LineKind::kUrgent).ok());
  };
  say(Ready{});
  ASSERT_TRUE(tracker_.Start({.id = {42}, .command = "npm install", .cwd = "/mnt/working"}).ok());
  act();
  carry(to_shim, in_shim, [&](const Result<std::string_view>& line) {
    const auto message = DecodeHostMessage(*line);
    ASSERT_TRUE(message.ok());
    const StepId id = std::get<Exec>(*message).id;
    say(StepStarted{id});
    say(Output{.id = id, .data = "added \xff"});
    say(Output{.id = id, .stream = Stream::kStderr, .data = "warn"});
    say(StepCompleted{.id = id, .exit_code = 1});
  });
  carry(to_host, in_host, [&](const Result<std::string_view>& line) { tracker_.Receive(line); });
  act();
  Pass(100ms);
  act();
  EXPECT_TRUE(tracker_.ready());
  EXPECT_THAT(
      told,
      ElementsAre(
          "open 42", R"(send {"type":"exec","id":42,"command":"npm install","cwd":"/mnt/working"})",
          "started 42", "show 42 added \xff", "show 42 warn", "ended 42 exited 1", "close 42"));
}

TEST_F(CommandTrackerTest, AnIdIsUsedOnce) {
  Run(7);
  EXPECT_EQ(tracker_.Start({.id = {7}, .command = "x"}).error().code(), Code::kExists);
  Say(StepCompleted{.id = {7}});
  EXPECT_EQ(tracker_.Start({.id = {7}, .command = "x"}).error().code(), Code::kExists);
  EXPECT_EQ(tracker_.Start({.id = {6}, .command = "x"}).error().code(), Code::kExists);
  EXPECT_THAT(Actions(), ElementsAre("ended 7 exited 0"));
}

TEST_F(CommandTrackerTest, ACommandThatCannotBeSentOpensNoStep) {
  EXPECT_EQ(tracker_.Start({.id = {7}}).error().code(), Code::kInvalid);
  EXPECT_EQ(tracker_.Start({.id = {7}, .command = std::string(1 << 20, 'x')}).error().code(),
            Code::kLimit);
  EXPECT_THAT(Actions(), IsEmpty());
  EXPECT_TRUE(tracker_.Start({.id = {7}, .command = "x"}).ok());
}

TEST_F(CommandTrackerTest, TooManyCommandsAreRefused) {
  for (size_t i = 1; i <= kMaxCommands; ++i) Run(static_cast<int64_t>(i));
  EXPECT_EQ(tracker_.Start({.id = {1000}, .command = "x"}).error().code(), Code::kBusy);
  Say(StepCompleted{.id = {5}});
  EXPECT_TRUE(tracker_.Start({.id = {1000}, .command = "x"}).ok());
}

TEST_F(CommandTrackerTest, MessagesForCommandsThatDoNotRunHaveNoEffect) {
  Run(7);
  Say(StepCompleted{.id = {7}});
  Actions();
  for (const StepId id : {StepId{7}, StepId{3}}) {
    Say(StepStarted{id});
    Say(Output{.id = id, .data = "x"});
    Say(StepCompleted{.id = id});
    Say(Ack{id, 1});
    EXPECT_THAT(Actions(), testing::Each("violation ended_command"));
  }
  Say(Output{.id = {8}, .data = "x"});
  EXPECT_THAT(Actions(), ElementsAre("violation unknown_command"));
  EXPECT_EQ(tracker_.violations(), 9u);
}

TEST_F(CommandTrackerTest, OutputBeforeTheStartIsNotShown) {
  ASSERT_TRUE(tracker_.Start({.id = {7}, .command = "x"}).ok());
  Actions();
  Say(Output{.id = {7}, .data = "x"});
  EXPECT_THAT(Actions(), ElementsAre("violation not_started"));
}

TEST_F(CommandTrackerTest, AForgedEndDoesNotTakeWritesOutOfUndo) {
  Run(7);
  tracker_.SetProcesses({7}, Processes::kAlive);
  Say(StepCompleted{.id = {7}});  // forged: the command still writes
  StepId last{};
  for (int i = 0; i < 60; ++i) {
    last = tracker_.OperationBegins();
    EXPECT_TRUE(last == StepId{7} || last == StepId{-1});
    tracker_.OperationEnds(last);
    Pass(50ms);
  }
  EXPECT_EQ(last, StepId{-1});
  EXPECT_THAT(Actions(), ElementsAre("ended 7 exited 0", "close 7", "open -1"));
  Say(StepCompleted{.id = {7}, .exit_code = 1});  // the true one
  EXPECT_THAT(Actions(), ElementsAre("violation ended_command"));
}

TEST_F(CommandTrackerTest, AForgedEndOfALaterCommandIsRefused) {
  Run(7);
  Say(StepStarted{{8}});
  Say(StepCompleted{.id = {8}});
  EXPECT_THAT(Actions(), ElementsAre("violation unknown_command", "violation unknown_command"));
  Run(8);
  EXPECT_EQ(tracker_.running(), 2u);
}

TEST_F(CommandTrackerTest, DeathLosesWhatRunsAndNothingIsBelievedAfterwards) {
  Run(7);
  Run(8);
  tracker_.ChannelDied();
  tracker_.ChannelDied();
  EXPECT_THAT(Actions(), ElementsAre("ended 7 lost 0", "ended 8 lost 0"));
  Say(StepCompleted{.id = {7}});
  SayLine("{");
  Say(Ready{});
  EXPECT_THAT(Actions(), ElementsAre("violation after_death", "violation after_death",
                                     "violation after_death"));
  EXPECT_EQ(tracker_.Start({.id = {9}, .command = "x"}).error().code(), Code::kCancelled);
  tracker_.NotifyRollback({7});
  Pass(100ms);
  EXPECT_THAT(Actions(), ElementsAre("close 7"));
}

TEST_F(CommandTrackerTest, AShimOfAnotherVersionIsNotUsed) {
  ASSERT_TRUE(tracker_.Start({.id = {7}, .command = "x"}).ok());
  Actions();
  Say(Ready{.version = 2});
  EXPECT_THAT(Actions(), ElementsAre("wrong version 2", "ended 7 lost 0"));
  EXPECT_TRUE(tracker_.dead());
}

TEST_F(CommandTrackerTest, AShimIsReadyOnce) {
  Say(Ready{});
  Say(Ready{});
  EXPECT_THAT(Actions(), ElementsAre("violation ready_twice"));
  EXPECT_FALSE(tracker_.dead());
}

TEST_F(CommandTrackerTest, NonsenseWithoutEndFillsNoLog) {
  for (int i = 0; i < 10'000; ++i) SayLine("nonsense");
  EXPECT_EQ(tracker_.TakeActions().size(), kMaxReportedViolations);
  EXPECT_EQ(tracker_.violations(), 10'000u);
  for (int i = 0; i < 10'000; ++i) Say(Problem{.message = "help"});
  EXPECT_EQ(tracker_.TakeActions().size(), kMaxReportedComplaints);
}

TEST_F(CommandTrackerTest, ALineThatWasTooLongIsAViolation) {
  tracker_.Receive(Result<std::string_view>(Error(Code::kLimit, "line is too long")));
  EXPECT_THAT(Actions(), ElementsAre("violation malformed"));
}

TEST_F(CommandTrackerTest, OutputThatNobodyTookIsBoundedByTheWindow) {
  Run(7);
  const std::string chunk(64 << 10, 'y');
  for (int i = 0; i < 5; ++i) Say(Output{.id = {7}, .data = chunk});
  EXPECT_EQ(tracker_.TakeActions().size(), 5u);
  EXPECT_EQ(tracker_.violations(), 1u);
  tracker_.OutputTaken({7}, 1);
  EXPECT_THAT(Actions(), IsEmpty());
  tracker_.OutputTaken({7}, chunk.size() - 1);
  EXPECT_THAT(Actions(), ElementsAre(R"(send {"type":"ack","id":7,"bytes":65536})"));
  Say(Output{.id = {7}, .data = chunk});
  EXPECT_EQ(tracker_.violations(), 1u);
  // No more can be acknowledged than was shown.
  tracker_.OutputTaken({7}, 10 * kWindowBytes);
  EXPECT_THAT(Actions().back(), HasSubstr(R"("bytes":262144)"));
  tracker_.OutputTaken({9}, 1);
  EXPECT_THAT(Actions(), IsEmpty());
}

TEST_F(CommandTrackerTest, InputIsSentAsFarAsTheWindowGoes) {
  Run({.id = {7}, .command = "cat", .takes_input = true});
  const std::string data(300 << 10, 'i');
  EXPECT_EQ(tracker_.SendInput({7}, data).value(), kMaxDataBytes);
  EXPECT_EQ(tracker_.SendInput({7}, data).value(), kMaxDataBytes);
  const auto actions = tracker_.TakeActions();
  ASSERT_EQ(actions.size(), 2u);
  for (const Action& action : actions) EXPECT_TRUE(Validate(std::get<Send>(action).message).ok());
  EXPECT_EQ(tracker_.InputRoom({7}), 0u);
  EXPECT_EQ(tracker_.SendInput({7}, data).value(), 0u);
  Say(Ack{{7}, 1000});
  EXPECT_EQ(tracker_.InputRoom({7}), 1000u);
  Say(Ack{{7}, kWindowBytes});
  EXPECT_THAT(Actions(), ElementsAre("violation beyond_window"));
  EXPECT_EQ(tracker_.InputRoom({7}), 1000u);
  ASSERT_TRUE(tracker_.CloseInput({7}).ok());
  ASSERT_TRUE(tracker_.CloseInput({7}).ok());
  EXPECT_THAT(Actions(), ElementsAre(R"(send {"type":"input","id":7,"data":"","eof":true})"));
  EXPECT_EQ(tracker_.SendInput({7}, "x").error().code(), Code::kInvalid);
  EXPECT_EQ(tracker_.InputRoom({7}), 0u);
}

TEST_F(CommandTrackerTest, WithAFullWindowCtrlCStillPasses) {
  Run({.id = {7}, .command = "cat", .pty = TerminalSize{}, .takes_input = true});
  while (tracker_.InputRoom({7}) > 0) {
    ASSERT_TRUE(tracker_.SendInput({7}, std::string(kWindowBytes, 'i')).ok());
  }
  Actions();
  ASSERT_TRUE(tracker_.SendSignal({7}, 2).ok());
  ASSERT_TRUE(tracker_.ResizeTerminal({7}, {40, 100}).ok());
  EXPECT_THAT(Actions(), ElementsAre(R"(send {"type":"signal","id":7,"signal":2})",
                                     R"(send {"type":"resize","id":7,"rows":40,"columns":100})"));
}

TEST_F(CommandTrackerTest, WhatMakesNoSenseForACommandIsRefused) {
  Run(7);
  EXPECT_EQ(tracker_.SendSignal({7}, 0).error().code(), Code::kLimit);
  EXPECT_EQ(tracker_.ResizeTerminal({7}, {}).error().code(), Code::kInvalid);
  EXPECT_EQ(tracker_.SendInput({7}, "x").error().code(), Code::kInvalid);
  for (const Status& status :
       {tracker_.SendSignal({8}, 2), tracker_.ResizeTerminal({8}, {}), tracker_.CloseInput({8}),
        tracker_.CancelCommand({8}), tracker_.GiveUp({8})}) {
    EXPECT_EQ(status.error().code(), Code::kNotFound);
  }
  EXPECT_EQ(tracker_.SendInput({8}, "x").error().code(), Code::kNotFound);
  EXPECT_THAT(Actions(), IsEmpty());
}

TEST_F(CommandTrackerTest, OutcomesTellHowACommandEnded) {
  for (int64_t id = 1; id <= 4; ++id) Run(id);
  Say(StepCompleted{.id = {1}, .exit_code = 139, .signal = 11});
  Say(StepCompleted{.id = {2}, .exit_code = 143, .signal = 15, .timed_out = true});
  Say(StepCompleted{.id = {3}, .exit_code = 127, .error = "no such program"});
  EXPECT_THAT(Actions(), ElementsAre("ended 1 signalled 139", "ended 2 timed_out 143",
                                     "ended 3 not_started 127"));
}

TEST_F(CommandTrackerTest, TheHostStepsInIfTheShimForgetsATimeout) {
  Run({.id = {7}, .command = "x", .timeout = 10s, .grace = 2s});
  Pass(12'999ms);
  EXPECT_THAT(Actions(), IsEmpty());
  EXPECT_EQ(*tracker_.Deadline() - clock_.Now(), 1ms);
  Pass(1ms);
  EXPECT_THAT(Actions(), ElementsAre(R"(send {"type":"cancel","id":7})"));
  EXPECT_EQ(*tracker_.Deadline() - clock_.Now(), 3s);
  Say(StepCompleted{.id = {7}, .exit_code = 143, .signal = 15});
  EXPECT_THAT(Actions(), ElementsAre("ended 7 timed_out 143"));
}

TEST_F(CommandTrackerTest, ACommandThatIsNotEndedByTheShimIsEndedByTheHost) {
  Run({.id = {7}, .command = "x", .timeout = 1h, .grace = 2s});
  ASSERT_TRUE(tracker_.CancelCommand({7}).ok());
  Actions();
  Pass(2999ms);
  EXPECT_THAT(Actions(), IsEmpty());
  Pass(1ms);
  Pass(1ms);
  EXPECT_THAT(Actions(), ElementsAre("stuck 7"));
  tracker_.SetProcesses({7}, Processes::kGone);
  ASSERT_TRUE(tracker_.GiveUp({7}).ok());
  EXPECT_THAT(Actions(), ElementsAre("ended 7 lost 0", "close 7"));
  Say(StepCompleted{.id = {7}});
  EXPECT_THAT(Actions(), ElementsAre("violation ended_command"));
}

TEST_F(CommandTrackerTest, ARollbackIsToldToTheShim) {
  tracker_.NotifyRollback({-2});
  EXPECT_THAT(Actions(), ElementsAre(R"(send {"type":"rollback_notify","step_id":-2})"));
}

}  // namespace
}  // namespace sandglass::control
