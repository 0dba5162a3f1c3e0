#include "session/bridge_messages.h"

#include <gtest/gtest.h>

namespace sandglass::session {
namespace {

TEST(BridgeMessages, RequestsSurviveTheWay) {
  const BridgeRequest requests[] = {
      Supervise{{3}, 77},
      Forget{{3}},
      Announce{{4}, "echo \xff", undo::IfUnchanged::kRecorded},
      Announce{{5}, "", undo::IfUnchanged::kForgotten},
      CloseStep{},
      CloseStep{EmptyEntry::kLater},
      AskPosition{},
      EnterSteps{},
      WriteRequest{{6}, "/p", "a/\xff", "write a", FoldersAround::kMade, std::nullopt},
      WriteRequest{{7},
                   "/p",
                   "a",
                   "edit a",
                   FoldersAround::kMustExist,
                   files::FileVersion{1, UINT64_MAX, 3, -4, 5}},
      RewindRequest{.kind = RewindKind::kRedo, .project = "/p", .count = 2},
      End{},
  };
  for (const BridgeRequest& request : requests) {
    const auto decoded = DecodeBridgeRequest(Encode(request));
    ASSERT_TRUE(decoded.ok()) << Encode(request) << ": " << decoded.error().ToString();
    EXPECT_EQ(*decoded, request) << Encode(request);
  }
}

TEST(BridgeMessages, WhatIsNoRequestIsRefused) {
  for (const char* frame :
       {"", "{}", "[]", R"({"type":"dance"})", R"({"type":"supervise","command_id":1})",
        R"({"type":"supervise","command_id":1,"world_pid":0})",
        R"({"type":"supervise","command_id":1,"world_pid":99999999999})", R"({"type":"forget"})",
        R"({"type":"announce","step_id":1,"label":"x"})",
        R"({"type":"announce","step_id":1,"label":7,"keep_empty":true})",
        R"({"type":"announce","step_id":1,"keep_empty":true})"}) {
    EXPECT_FALSE(DecodeBridgeRequest(frame).ok()) << frame;
  }
  EXPECT_EQ(DecodeBridgeRequest(std::string(kMaxRequestBytes + 1, ' ')).error().code(),
            Code::kLimit);
}

TEST(BridgeMessages, AnswersSurviveTheWay) {
  const auto position = DecodePosition(Encode(Position{.next = {9}, .begun = true}));
  ASSERT_TRUE(position.ok());
  EXPECT_EQ(position->next, StepId{9});
  EXPECT_TRUE(position->begun);
  const auto closed = DecodeClosed(Encode(
      Closed{.notices = {"a", "\xff"}, .changed = false, .unprotected = true, .next = StepId{8}}));
  ASSERT_TRUE(closed.ok());
  EXPECT_EQ(closed->notices, (std::vector<std::string>{"a", "\xff"}));
  EXPECT_FALSE(closed->changed);
  EXPECT_TRUE(closed->unprotected);
  EXPECT_EQ(closed->next, StepId{8});
  const auto ended = DecodeEnded(Encode(Ended{.notices = {"c"}}));
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->notices, std::vector<std::string>{"c"});
  undo::RecoveryReport recovery{.recovered = true, .step = StepId{4}};
  recovery.rewind.kept = {"b"};
  const auto opened = DecodeOpened(Encode(Opened{.recoveries = {recovery, {}}, .next = StepId{7}}));
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->next, StepId{7});
  ASSERT_EQ(opened->recoveries.size(), 2U);
  EXPECT_TRUE(opened->recoveries[0].recovered);
  EXPECT_EQ(opened->recoveries[0].step, StepId{4});
  EXPECT_EQ(opened->recoveries[0].rewind.kept, recovery.rewind.kept);
  EXPECT_FALSE(opened->recoveries[1].step.has_value());
}

TEST(BridgeMessages, AnErrorStandsForAnyAnswer) {
  const std::string frame = Encode(Refused(Error(Code::kLocked, "in use")));
  for (const auto& code : {DecodeOpened(frame).error().code(), DecodeClosed(frame).error().code(),
                           DecodePosition(frame).error().code()})
    EXPECT_EQ(code, Code::kLocked);
}

TEST(BridgeMessages, AFailureIsToldFromAnswers) {
  const auto failed = DecodeFailed(Encode(Failed{Error(Code::kLimit, "too many")}));
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->error.code(), Code::kLimit);
  EXPECT_EQ(failed->error.message(), "too many");
  for (const char* frame : {R"({"failed":)", R"({"failed":7})", R"({"failed":{}})"})
    EXPECT_TRUE(DecodeFailed(frame).has_value()) << frame;
  EXPECT_FALSE(DecodeFailed(Encode(Position{})).has_value());
  EXPECT_FALSE(DecodeFailed(Encode(Refused(Error(Code::kLocked, "in use")))).has_value());
}

TEST(BridgeMessages, WhatIsNoAnswerIsRefused) {
  for (const char* frame : {"", "7", "{}", R"({"recoveries":7,"notices":7,"begun":true})",
                            R"({"recoveries":[{}],"notices":[7],"next_step_id":1})"}) {
    EXPECT_FALSE(DecodeOpened(frame).ok()) << frame;
    EXPECT_FALSE(DecodeClosed(frame).ok()) << frame;
    EXPECT_FALSE(DecodePosition(frame).ok()) << frame;
  }
}

}  // namespace
}  // namespace sandglass::session
