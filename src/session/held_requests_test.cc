#include "session/held_requests.h"

#include <gtest/gtest.h>

namespace sandglass::session {
namespace {

TEST(HeldRequests, SurviveTheWay) {
  for (const HeldRequest& request :
       {HeldRequest{}, HeldRequest{"sg_001", undo::Decision::kAllow}, HeldRequest{"sg_002"}}) {
    const auto decoded = DecodeSessionRequest(Encode(request));
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(std::get<HeldRequest>(*decoded), request);
  }
  const RewindRequest rewind{.project = "/p", .count = 2};
  const auto decoded = DecodeSessionRequest(Encode(rewind));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<RewindRequest>(*decoded), rewind);
}

TEST(HeldRequests, AnAnswerHasWhatIsHeldOrAnError) {
  HeldAnswer answer;
  answer.held.push_back({"sg_007",
                         {.kind = undo::SafeguardKind::kDeleteCount,
                          .step = {7},
                          .amount = 50,
                          .sample_paths = {"a", "\xff"}},
                         std::chrono::milliseconds(1'500)});
  auto decoded = DecodeHeldAnswer(Encode(answer));
  ASSERT_TRUE(decoded.ok());
  ASSERT_EQ(decoded->held.size(), 1u);
  EXPECT_EQ(decoded->held[0].id, "sg_007");
  EXPECT_EQ(decoded->held[0].question.sample_paths, answer.held[0].question.sample_paths);
  EXPECT_EQ(decoded->held[0].left, std::chrono::milliseconds(1'500));
  answer.error = Error(Code::kNotFound, "too late");
  decoded = DecodeHeldAnswer(Encode(answer));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->error->code(), Code::kNotFound);
}

TEST(HeldRequests, WhatIsNoneIsRefused) {
  for (const char* line :
       {"", "{}", R"({"type":"answer"})", R"({"type":"answer","id":"","allow":true})",
        R"({"type":"answer","id":"sg_001"})", R"({"type":"answer","id":"sg_001","allow":1})",
        R"({"type":"answer","id":7,"allow":true})", R"({"type":"dance"})"}) {
    EXPECT_FALSE(DecodeSessionRequest(line).ok()) << line;
  }
  const std::string long_id(kMaxHeldIdBytes + 1, 'x');
  EXPECT_EQ(DecodeSessionRequest(Encode(HeldRequest{long_id})).error().code(), Code::kLimit);
  for (const char* line : {"", "{}", R"({"held":1})", R"({"held":[1]})", R"({"held":[{}]})",
                           R"({"held":[{"id":"sg_001","left_ms":1}]})"}) {
    EXPECT_FALSE(DecodeHeldAnswer(line).ok()) << line;
  }
}

}  // namespace
}  // namespace sandglass::session
