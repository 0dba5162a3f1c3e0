// `sandglass shell` on a real terminal: a bash that a person types into.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <string_view>

#include "tests/session/sandglass_fixture.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kPrompt = "(sandglass) $ ";
constexpr char kInterrupt[] = "\x03";

class SandglassShell : public SandglassFixture {
 protected:
  void StartShell() {
    int terminal = -1;
    shell_ = MustCall(::forkpty(&terminal, nullptr, nullptr, nullptr), "forkpty");
    if (shell_ == 0) {
      ::setenv("SANDGLASS_HOME", state_.c_str(), 1);
      ::setenv("HOME", home_.c_str(), 1);
      ::setenv("TERM", "dumb", 1);
      if (::chdir(workspace_.project().c_str()) == 0)
        ::execl(SANDGLASS_BINARY, "sandglass", "shell", "-e", "PS1=$ ", nullptr);
      ::_exit(99);
    }
    terminal_ = Fd(terminal);
    ReadUntil("# ", "$ ");
    // A prompt that no machine's settings change, and no echo of what is typed.
    Type("stty -echo; PS1='(sandglass) $ '");
  }
  // What is shown until the next prompt.
  std::string Type(const std::string& line) {
    Send(line + "\r");
    return ReadUntil(kPrompt);
  }
  void Send(const std::string& bytes) { Must(WriteFully(terminal_.get(), AsBytes(bytes))); }
  std::string ReadUntil(std::string_view end, std::string_view or_end = "\x01") {
    std::string seen;
    while (!seen.ends_with(end) && !seen.ends_with(or_end)) {
      pollfd ready{terminal_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 20'000) <= 0) {
        ADD_FAILURE() << "nothing more came after: " << seen;
        return seen;
      }
      char buffer[4096];
      const ssize_t got = ::read(terminal_.get(), buffer, sizeof(buffer));
      if (got <= 0) return seen;  // it hung up
      seen.append(buffer, static_cast<size_t>(got));
    }
    return seen;
  }
  static int StepsWithChanges(const std::string& history) {
    std::istringstream lines(history);
    std::string line;
    int count = 0;
    while (std::getline(lines, line))
      count += line.starts_with(' ') && line.find("no changes") == std::string::npos ? 1 : 0;
    return count;
  }
  int Leave(const std::string& line = "exit") {
    Send(line + "\r");
    ReadUntil("\x01");
    int status = 0;
    MustCall(::waitpid(shell_, &status, 0), "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  pid_t shell_ = -1;
  Fd terminal_;
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
  StartShell();
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
  for (int i = 0; i < 1000 && !IsRunning("60.75"); ++i) ::usleep(10'000);
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
