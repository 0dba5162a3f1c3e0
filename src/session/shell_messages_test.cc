#include "session/shell_messages.h"

#include <gtest/gtest.h>

namespace sandglass::session {
namespace {

TEST(ShellMessages, ALineMayHoldAnything) {
  const auto message = DecodeShellMessage("7.1\nline\necho 'a\n\xff'");
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->tag, "7.1");
  EXPECT_EQ(std::get<LineBegins>(message->what).line, "echo 'a\n\xff'");
  EXPECT_EQ(std::get<LineBegins>(DecodeShellMessage("7\nline\n")->what).line, "");
}

TEST(ShellMessages, TypedWordsComeOnePerLine) {
  const auto message = DecodeShellMessage("7\nundo\n2\n--force");
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(std::get<WordsTyped>(message->what).words,
            (std::vector<std::string>{"undo", "2", "--force"}));
  EXPECT_EQ(std::get<WordsTyped>(DecodeShellMessage("7\nsteps\n")->what).words.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<LineEnded>(DecodeShellMessage("7\nprompt\n")->what));
}

TEST(ShellMessages, WhatIsNoneIsRefused) {
  for (const char* bytes : {"", "7", "\nline\nx", "7\nrun\nrm -rf /", "7\n\n"})
    EXPECT_FALSE(DecodeShellMessage(bytes).ok()) << bytes;
  EXPECT_FALSE(DecodeShellMessage(std::string(kMaxTagBytes + 1, '7') + "\nprompt").ok());
}

TEST(ShellMessages, AReplyIsOneFrame) {
  EXPECT_EQ(Encode("7", {.status = 3, .text = std::string("a\0b\n", 4)}),
            std::string("7\n3\nab\n\0", 8));
}

}  // namespace
}  // namespace sandglass::session
