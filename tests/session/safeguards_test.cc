// Safeguards for whoever types `run` and `shell`: asked at the terminal, or told how to answer elsewhere.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/session/shell_fixture.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Safeguards : public ShellFixture {
 protected:
  void SetUp() override {
    ShellFixture::SetUp();
    if (IsSkipped()) return;
    for (int i = 0; i < 60; ++i) workspace_.WriteFile(fmt::format("old/{:02}", i), "x");
    before_ = workspace_.Snapshot();
  }
  // `sandglass run` at a terminal.
  void StartRun(Words words) {
    words.insert(words.begin(), "run");
    StartAtTerminal(std::move(words));
  }
  int Wait() {
    int status = 0;
    MustCall(::waitpid(shell_, &status, 0), "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::vector<std::string> Changes() { return Diff(before_, workspace_.Snapshot()); }

  static constexpr std::string_view kAsked = " s) ", kAskedAgain = "nter? ";
  TreeSnapshot before_;
};

TEST_F(Safeguards, APersonAtTheTerminalIsAskedWithSomeOfThePaths) {
  StartRun({"--", "sh", "-c", "rm -r old; echo done"});
  const std::string question = ReadUntil(kAsked);
  EXPECT_THAT(question, HasSubstr("step 1 is about to delete 50 files or folders:"));
  EXPECT_THAT(question, HasSubstr("  old/"));
  EXPECT_THAT(question, HasSubstr("  and 45 more"));
  EXPECT_THAT(question, HasSubstr("[a]llow or [d]eny, [s]how more, and Enter? (denied in 30 s) "));
  Send("s\r");
  const std::string more = ReadUntil(kAskedAgain);
  EXPECT_EQ(std::ranges::count(more, '/'), 20);
  Send("a\r");
  EXPECT_THAT(ReadUntil("\x01"), HasSubstr("done"));
  EXPECT_EQ(Wait(), 0);
  EXPECT_FALSE(workspace_.Exists("old"));
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_EQ(Changes(), std::vector<std::string>());
}

TEST_F(Safeguards, DeniedTheStepIsTakenBackAndItsProcessesEnd) {
  for (const char* answer : {"d\r", "\x03"}) {
    StartRun({"--", "sh", "-c", "echo a >keep.txt; rm -r old; echo done >done"});
    ReadUntil(kAsked);
    Send(answer);
    EXPECT_THAT(ReadUntil("\x01"), HasSubstr("all that it did was taken back"));
    EXPECT_EQ(Wait(), 137);
    EXPECT_EQ(Changes(), std::vector<std::string>());
  }
}

TEST_F(Safeguards, NoAnswerInTimeIsADenial) {
  StartRun({"--safeguard-timeout", "1s", "--", "rm", "-r", "old"});
  EXPECT_THAT(ReadUntil("\x01"), HasSubstr("denied: no answer from here in time"));
  EXPECT_NE(Wait(), 0);
  EXPECT_EQ(Changes(), std::vector<std::string>());
}

TEST_F(Safeguards, WhatIsTypedWhileSomebodyIsAskedIsNotForTheCommand) {
  StartRun({"--", "sh", "-c", "stty -echo; rm -r old; read x; echo got \"$x\""});
  ReadUntil(kAsked);
  Send("make all\r");  // begins with no answer, and has an "a" in it
  ReadUntil(kAskedAgain);
  EXPECT_TRUE(workspace_.Exists("old"));
  Send("ab\x7f\r");
  ReadUntil("allowed\r\n");
  Send("hello\r");
  EXPECT_THAT(ReadUntil("\x01"), HasSubstr("got hello"));
  EXPECT_EQ(Wait(), 0);
}

TEST_F(Safeguards, AnAnswerFromAnotherTerminalEndsTheQuestion) {
  StartRun({"--", "sh", "-c", "rm -r old; echo done"});
  ReadUntil(kAsked);
  EXPECT_EQ(Sandglass({"approve", "sg_001"}).exit_code, 0);
  const std::string rest = ReadUntil("\x01");
  EXPECT_THAT(rest, HasSubstr("allowed by somebody else"));
  EXPECT_THAT(rest, HasSubstr("done"));
  EXPECT_EQ(Wait(), 0);
}

TEST_F(Safeguards, EmptyingALargeFileIsAskedAtATerminalAndOpeningItIsNot) {
  workspace_.WriteFile("large", std::string(2 << 20, 'x'));
  StartRun({"--", "sh", "-c", "echo x >>large; echo y >large"});
  EXPECT_THAT(ReadUntil(kAsked), HasSubstr("is about to empty or shorten a file of 2.0 MiB"));
  Send("a\r");
  ReadUntil("\x01");
  EXPECT_EQ(Wait(), 0);
  EXPECT_EQ(workspace_.ReadFile("large"), "y\n");
}

TEST_F(Safeguards, WhatUndoHasNoRoomForIsAskedToo) {
  MakeTooLargeToCopy("huge");
  StartRun({"--", "sh", "-c", "echo x >>huge; echo done >done"});
  EXPECT_THAT(ReadUntil(kAsked), HasSubstr("needs more room for its undo than one step may have"));
  Send("a\r");
  ReadUntil("\x01");
  EXPECT_EQ(Wait(), 0);
  EXPECT_TRUE(workspace_.Exists("done"));
}

TEST_F(Safeguards, SwitchedOffNobodyIsAsked) {
  StartRun({"--no-safeguards", "--", "rm", "-r", "old"});
  ReadUntil("\x01");
  EXPECT_EQ(Wait(), 0);
  EXPECT_FALSE(workspace_.Exists("old"));
  const Ended both = Sandglass({"run", "--no-safeguards", "--delete-threshold", "5", "--", "true"});
  EXPECT_THAT(both.err, HasSubstr("contradict"));
}

TEST_F(Safeguards, WithoutATerminalItSaysWhatIsHeldAndHowToAnswer) {
  const Started started = Begin({"run", "--delete-threshold", "5", "--", "rm", "-r", "old"});
  std::string told;
  for (int i = 0; i < 1000 && told.find("--deny") == told.npos; ++i) {
    ::usleep(10'000);
    // Whoever writes there has its position in common with our descriptor.
    told.resize(1 << 16);
    told.resize(static_cast<size_t>(
        MustCall(::pread(started.err.get(), told.data(), told.size(), 0), "pread")));
  }
  EXPECT_THAT(told, HasSubstr("held: step 1 is about to delete 5 files or folders:\n  old/"));
  EXPECT_THAT(told, HasSubstr("`sandglass approve sg_001` lets it happen"));
  EXPECT_EQ(Sandglass({"approve", "sg_001"}).exit_code, 0);
  EXPECT_EQ(Finish(started).exit_code, 0);
  EXPECT_FALSE(workspace_.Exists("old"));
}

TEST_F(Safeguards, WithoutATerminalNobodyIsAskedUnlessItWasSaid) {
  EXPECT_EQ(Run({"rm", "-r", "old"}).exit_code, 0);
  EXPECT_FALSE(workspace_.Exists("old"));
}

TEST_F(Safeguards, ASettingSaysItToo) {
  const Fd file(MustCall(
      ::open((state_ + "/sandglass.toml").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "open"));
  Must(WriteFully(file.get(), AsBytes(std::string_view(
                                  "[safeguards]\ndelete_threshold = 3\ntimeout_seconds = 1\n"))));
  const Ended denied = Run({"rm", "-r", "old"});
  EXPECT_THAT(denied.err, HasSubstr("is about to delete 3 files or folders"));
  EXPECT_THAT(denied.err, HasSubstr("denied in 1 s"));
  EXPECT_EQ(denied.exit_code, 137);
  EXPECT_EQ(Changes(), std::vector<std::string>());
}

TEST_F(Safeguards, InTheShellAnAllowedLineGoesOnAndADeniedOneEndsTheShell) {
  StartShell({"--delete-threshold", "40"});
  Send("rm -r old; echo gone\r");
  EXPECT_THAT(ReadUntil(kAsked), HasSubstr("is about to delete 40 files or folders"));
  Send("a\r");
  EXPECT_THAT(ReadUntil(kPrompt), HasSubstr("gone"));
  EXPECT_FALSE(workspace_.Exists("old"));
  Type("undo");
  EXPECT_EQ(Changes(), std::vector<std::string>());
  Send("rm -r old\r");
  ReadUntil(kAsked);
  Send("d\r");
  EXPECT_THAT(ReadUntil("\x01"), HasSubstr("all that it did was taken back"));
  EXPECT_NE(Wait(), 0);
  EXPECT_EQ(Changes(), std::vector<std::string>());
}

}  // namespace
}  // namespace sandglass::test
