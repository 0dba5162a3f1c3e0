#include "session/safeguard_messages.h"

#include <gtest/gtest.h>

namespace sandglass::session {
namespace {

TEST(SafeguardMessages, SurviveTheWay) {
  const SafeguardAsked asked{{2, 7},
                             {4},
                             {.id = 7,
                              .kind = undo::SafeguardKind::kRenameOver,
                              .step = {-3},
                              .amount = 9,
                              .sample_paths = {"a", "\xff"}}};
  const auto decoded = DecodeSafeguardAsked(Encode(asked));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->key, asked.key);
  EXPECT_EQ(decoded->command, asked.command);
  EXPECT_EQ(decoded->question.kind, asked.question.kind);
  EXPECT_EQ(decoded->question.step, asked.question.step);
  EXPECT_EQ(decoded->question.amount, asked.question.amount);
  EXPECT_EQ(decoded->question.sample_paths, asked.question.sample_paths);
  for (const undo::Decision decision : {undo::Decision::kAllow, undo::Decision::kDeny}) {
    const auto answered = DecodeSafeguardAnswered(Encode(SafeguardAnswered{{1, 2}, decision}));
    ASSERT_TRUE(answered.ok());
    EXPECT_EQ(answered->decision, decision);
  }
}

TEST(SafeguardMessages, WhatIsNoneIsRefused) {
  for (
      const char* frame :
      {"", "{}", R"({"project":0,"question":1})", R"({"project":-1,"question":1,"allow":true})",
       R"({"project":0,"question":1,"kind":"dance","step_id":1,"command":1,"amount":1,"sample_paths":[]})"}) {
    EXPECT_FALSE(DecodeSafeguardAsked(frame).ok()) << frame;
    EXPECT_FALSE(DecodeSafeguardAnswered(frame).ok()) << frame;
  }
}

}  // namespace
}  // namespace sandglass::session
