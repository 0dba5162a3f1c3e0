#include "session/rewind_request.h"

#include <gtest/gtest.h>

namespace sandglass::session {
namespace {

TEST(RewindRequest, SurvivesTheWayToTheSession) {
  const RewindRequest requests[] = {
      {.kind = RewindKind::kUndo, .project = "/p", .count = 3, .runners = Runners::kEnd},
      {.kind = RewindKind::kRedo, .project = "/\xff", .force = undo::Force::kYes},
      {.kind = RewindKind::kRestore,
       .project = "/p",
       .step = {-2},
       .paths = {"a", "\xff"},
       .deed = Deed::kPlanned,
       .progress = ProgressWanted::kYes},
  };
  for (const RewindRequest& request : requests) {
    const auto decoded = DecodeRewindRequest(Encode(request));
    ASSERT_TRUE(decoded.ok()) << decoded.error().ToString();
    EXPECT_EQ(*decoded, request);
  }
}

TEST(RewindRequest, WhatIsNoneIsRefused) {
  for (const char* line : {"", "nonsense", "[]", "{}", R"({"type":"dance","project":"/"})",
                           R"({"type":"undo"})", R"({"type":"undo","project":"/","count":0})",
                           R"({"type":"undo","project":"/","count":99999999})",
                           R"({"type":"undo","project":"/","count":1,"force":"yes"})",
                           R"({"type":"restore","project":"/","step_id":1,"paths":"a"})"}) {
    EXPECT_FALSE(DecodeRewindRequest(line).ok()) << line;
  }
  EXPECT_EQ(DecodeRewindRequest(std::string(kMaxRequestBytes + 1, ' ')).error().code(),
            Code::kLimit);
}

TEST(RewindAnswer, ARefusalKeepsItsCodeConflictsAndProcesses) {
  RewindAnswer answer = Refused(Error(Code::kBusy, "in use"));
  answer.conflicts = {{undo::ConflictKind::kBusy, "a", "open"}};
  answer.running = {7, 8};
  const auto decoded = DecodeRewindAnswer(Encode(answer));
  ASSERT_TRUE(decoded.ok() && decoded->error);
  EXPECT_EQ(decoded->error->code(), Code::kBusy);
  EXPECT_EQ(decoded->error->message(), "in use");
  EXPECT_EQ(decoded->conflicts.front().path, "a");
  EXPECT_EQ(decoded->running, answer.running);
}

TEST(RewindProgress, IsToldFromAnAnswer) {
  const undo::RewindProgress progress{.done = 3, .total = 7};
  EXPECT_EQ(DecodeProgress(Encode(progress)), progress);
  for (const std::string& line :
       {Encode(Refused(Error(Code::kBusy, "in use"))), std::string(), std::string("{}"),
        std::string(R"({"progress":{"done":-1,"total":7}})"), std::string(R"({"progress":3})"),
        R"({"progress":{"done":1,"total":2,"x":")" + std::string(1000, 'x') + "\"}}"})
    EXPECT_FALSE(DecodeProgress(line).has_value()) << line;
}

TEST(RewindAnswer, AReportThatIsTooLongIsToldWithoutItsChanges) {
  RewindAnswer answer;
  answer.report = undo::RewindReport{.steps = {StepId{1}}};
  answer.report->changes.assign(
      20'000, {.kind = undo::ChangeKind::kCreated, .path = std::string(4'000, 'x')});
  const std::string line = Encode(answer);
  EXPECT_LE(line.size(), kMaxAnswerBytes);
  const auto decoded = DecodeRewindAnswer(line);
  ASSERT_TRUE(decoded.ok() && decoded->report);
  EXPECT_EQ(decoded->report->steps, answer.report->steps);
  EXPECT_EQ(decoded->report->warnings.size(), 1u);
}

}  // namespace
}  // namespace sandglass::session
