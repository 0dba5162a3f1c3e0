// `sandglass shell` on a real terminal: a bash that a person types into.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "tests/session/shell_fixture.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kInterrupt[] = "\x03";

class SandglassShell : public ShellFixture {
 protected:
  static int StepsWithChanges(const std::string& history) {
    std::istringstream lines(history);
    std::string line;
    int count = 0;
    while (std::getline(lines, line))
      count += line.starts_with(' ') && line.find("no changes") == std::string::npos ? 1 : 0;
    return count;
  }
};

TEST_F(SandglassShell, FolderAndVariablesStayAndItsExitCodeIsOurs) {
  StartShell();
  Type("cd src/deep; export GIVEN=value");
  EXPECT_THAT(Type("echo \"$PWD $GIVEN\"; sh -c 'echo in $GIVEN'"),
              HasSubstr(workspace_.project() + "/src/deep value\r\nin value"));
  EXPECT_EQ(Leave("exit 7"), 7);
}

TEST_F(SandglassShell, EachLineThatChangesSomethingIsAStep) {
  const TreeSnapshot before = workspace_.Snapshot();
  StartShell();
  Type("echo one >keep.txt");
  const TreeSnapshot after_first = workspace_.Snapshot();
  Type("ls; cd src; cd ..");
  Type("rm -rf src; mkdir 'a b'");
  const TreeSnapshot after_second = workspace_.Snapshot();
  const std::string steps = Type("steps");
  EXPECT_THAT(steps, HasSubstr("echo one >keep.txt"));
  EXPECT_THAT(steps, HasSubstr("rm -rf src; mkdir 'a b'"));
  EXPECT_THAT(steps, Not(HasSubstr("cd src")));
  EXPECT_EQ(Leave(), 0);
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(after_first, workspace_.Snapshot()));
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  EXPECT_EQ(Sandglass({"redo", "2"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(after_second, workspace_.Snapshot()));
}

TEST_F(SandglassShell, UndoAndRedoInsideAndTheShellGoesOn) {
  const TreeSnapshot before = workspace_.Snapshot();
  StartShell();
  Type("rm -rf src; echo more >>keep.txt");
  const TreeSnapshot after = workspace_.Snapshot();
  EXPECT_THAT(Type("undo"), HasSubstr("undone"));
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  EXPECT_THAT(Type("cat keep.txt; cat src/deep/file"), HasSubstr("kept\r\nold"));
  EXPECT_THAT(Type("redo"), HasSubstr("redone"));
  EXPECT_TRUE(TreesEqual(after, workspace_.Snapshot()));
  EXPECT_THAT(Type("undo -n; echo status $?"), HasSubstr("would be undone"));
  EXPECT_THAT(Type("undo 77; echo status $?"), HasSubstr("status 1"));
  EXPECT_THAT(Type("undo --nonsense; echo status $?"), HasSubstr("status 2"));
  EXPECT_THAT(Type("undo --help"), HasSubstr("usage: sandglass undo [N]"));
  Type("undo");
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  EXPECT_EQ(Leave(), 0);
}

// A program inside could write to the channel as well as the person at the keyboard.
TEST_F(SandglassShell, WhatAPersonEditedIsNotOverwrittenFromInside) {
  StartShell();
  Type("echo new >keep.txt");
  workspace_.WriteFile("keep.txt", "a person's\n");
  EXPECT_THAT(Type("undo --force; echo status $?"), HasSubstr("status 1"));
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "a person's\n");
  EXPECT_EQ(Sandglass({"undo", "--force"}).exit_code, 0);
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
  EXPECT_EQ(Leave(), 0);
}

TEST_F(SandglassShell, ARefusedChangeIsExplainedAtThePrompt) {
  MakeTooLargeToCopy("large");
  StartShell({"--no-safeguards"});
  EXPECT_THAT(Type("echo more >>large"), HasSubstr("a change was refused"));
  EXPECT_EQ(Leave(), 1) << "the last line failed";
}

TEST_F(SandglassShell, AnotherTerminalCanUndoWhileItWaits) {
  const TreeSnapshot before = workspace_.Snapshot();
  StartShell();
  Type("echo new >keep.txt");
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  EXPECT_THAT(Type("redo"), HasSubstr("redone"));
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "new\n");
  EXPECT_EQ(Leave(), 0);
}

TEST_F(SandglassShell, ALimitHoldsForItsLines) {
  StartShell({"--file-size", "64K"});
  EXPECT_THAT(Type("head -c 100000 /dev/zero >big; echo status $?"), HasSubstr("status 153"));
  EXPECT_EQ(std::filesystem::file_size(workspace_.Path("big")), 64U << 10);
}

TEST_F(SandglassShell, StopEndsTheLineAndNotTheShell) {
  const TreeSnapshot before = workspace_.Snapshot();
  StartShell();
  Send("while :; do echo x >>log; sleep 0.05; done\r");
  WaitUntilExists("log");
  const Ended refused = Sandglass({"undo"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(workspace_.Exists("log"));
  const Ended undone = Sandglass({"undo", "--stop"});
  EXPECT_EQ(undone.exit_code, 0) << undone.err;
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  ReadUntil(kPrompt);
  EXPECT_THAT(Type("echo still here"), HasSubstr("still here"));
  EXPECT_EQ(Leave(), 0);
}

TEST_F(SandglassShell, CtrlCEndsTheProgramAndNotTheShell) {
  StartShell();
  Send("touch ready; sleep 60.75\r");
  ASSERT_TRUE(BeginsToRun("60.75"));
  Send(kInterrupt);
  ReadUntil(kPrompt);
  EXPECT_THAT(Type("echo status $?"), HasSubstr("status 130"));
  EXPECT_THAT(Type("undo"), HasSubstr("undone"));
  EXPECT_FALSE(workspace_.Exists("ready"));
  EXPECT_EQ(Leave(), 0);
}

// It has the file open all the time, so nobody sees its writes.
TEST_F(SandglassShell, ABackgroundJobThatWritesOverManyLinesIsUndoneExactly) {
  const TreeSnapshot before = workspace_.Snapshot();
  StartShell();
  Type("mkfifo /tmp/words; (while read -r word; do echo $word; done) <>/tmp/words >>keep.txt &");
  Type("echo first >/tmp/words; touch one; sleep 0.2");
  Type("echo second >/tmp/words; sleep 0.2");
  Type("touch two");
  EXPECT_THAT(Type("undo 2; echo status $?"), HasSubstr("status 1"));
  EXPECT_TRUE(workspace_.Exists("one"));
  Type("kill %1; wait");
  const TreeSnapshot after = workspace_.Snapshot();
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\nfirst\nsecond\n");
  const std::string steps = Type("steps");
  const int count = StepsWithChanges(steps);
  EXPECT_GE(count, 3) << steps;
  EXPECT_THAT(Type("undo " + std::to_string(count)), HasSubstr("undone")) << steps;
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  Type("redo " + std::to_string(count));
  EXPECT_TRUE(TreesEqual(after, workspace_.Snapshot()));
  EXPECT_EQ(Leave(), 0);
}

// Over many boundaries, in whatever moment each of them comes: what only the world wrote is nobody else's edit. One file stays open,
// others are opened anew.
TEST_F(SandglassShell, ABackgroundJobThatNeverPausesIsUndoneExactly) {
  workspace_.WriteFile("busy.py",
                       "import os\n"
                       "log = os.open('keep.txt', os.O_WRONLY | os.O_APPEND)\n"
                       "for round in range(10 ** 9):\n"
                       "  os.write(log, b'round %d\\n' % round)\n"
                       "  if round % 50 == 0:\n"
                       "    os.ftruncate(log, 0)\n"
                       "    with open('file%d' % (round // 50 % 5), 'w') as other:\n"
                       "      other.write(str(round))\n");
  const TreeSnapshot before = workspace_.Snapshot();
  StartShell();
  Type("python3 busy.py & sleep 0.2");
  for (int line = 0; line < 20; ++line) Type(fmt::format("echo {} >line{}", line, line % 7));
  EXPECT_THAT(Type("undo 3; echo status $?"), HasSubstr("status 1")) << "who writes is in the way";
  Type("kill %1; wait");
  const TreeSnapshot after = workspace_.Snapshot();
  const std::string steps = Type("steps");
  const int count = StepsWithChanges(steps);
  EXPECT_GE(count, 20) << steps;
  EXPECT_THAT(Type("undo " + std::to_string(count)), HasSubstr("undone")) << steps;
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  EXPECT_THAT(Type("redo " + std::to_string(count)), HasSubstr("redone"));
  EXPECT_TRUE(TreesEqual(after, workspace_.Snapshot()));
  EXPECT_EQ(Leave(), 0);
}

// What programs in it say in the shell's name can split steps, and loses nothing.
TEST_F(SandglassShell, ForgedMessagesLoseNoRecord) {
  const TreeSnapshot before = workspace_.Snapshot();
  StartShell();
  Type(
      "bash -c \"printf '1\\nprompt\\n\\0' >&100; touch one; printf '1\\nline\\nfalse\\0' "
      ">&100; "
      "printf 'junk\\0\\0\\0' >&100; rm -rf src\"; echo x >keep.txt");
  EXPECT_TRUE(workspace_.Exists("one"));
  EXPECT_EQ(Leave(), 0);
  const Ended history = Sandglass({"history"});
  const std::string count = std::to_string(StepsWithChanges(history.out));
  EXPECT_EQ(Sandglass({"undo", count}).exit_code, 0) << history.out;
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot())) << history.out;
}

TEST_F(SandglassShell, TheWorldsOwnBashrcIsReadAndLinesWithASpaceAreNotTold) {
  EXPECT_EQ(
      Shell("echo 'own_word() { echo from the rc; }; HISTCONTROL=ignoreboth' >~/.bashrc").exit_code,
      0);
  StartShell();
  EXPECT_THAT(Type("own_word"), HasSubstr("from the rc"));
  Type("echo told >one");
  Type(" echo secret >two");
  const std::string steps = Type("steps");
  EXPECT_THAT(steps, HasSubstr("echo told >one"));
  EXPECT_THAT(steps, HasSubstr("does not remember"));
  EXPECT_THAT(steps, Not(HasSubstr("secret")));
  EXPECT_EQ(Leave(), 0);
}

TEST_F(SandglassShell, WithoutATerminalItIsRefused) {
  const Ended refused = Sandglass({"shell"});
  EXPECT_EQ(refused.exit_code, 125);
  EXPECT_THAT(refused.err, HasSubstr("needs a terminal"));
}

}  // namespace
}  // namespace sandglass::test
