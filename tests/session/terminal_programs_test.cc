// Programs that draw on the terminal, in a shell of the world.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "tests/session/shell_fixture.h"

namespace sandglass::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class TerminalProgram : public ShellFixture {
 protected:
  // What is shown until it waits for a key; "": the machine does not have it.
  std::string Start(const std::string& program, const std::string& arguments) {
    if (::access(("/usr/bin/" + program).c_str(), X_OK) != 0) return "";
    StartShell();
    Send("TERM=xterm " + program + " " + arguments + "\r");
    return ReadUntilQuiet();
  }
  std::string ReadUntilQuiet() {
    constexpr int kTries = 80;
    std::string seen;
    for (int i = 0; i < kTries; ++i) {
      const std::string more = ReadFor(250ms);
      if (more.empty() && !seen.empty()) break;
      seen += more;
    }
    return seen;
  }
};

TEST_F(TerminalProgram, VimWritesWhatIsTypedAndUndoTakesItBack) {
  const std::string shown = Start("vim", "-Nu NONE -n keep.txt");
  if (shown.empty()) GTEST_SKIP() << "vim is not installed";
  EXPECT_THAT(shown, HasSubstr("kept"));
  Send("Gotyped\x1b");
  ReadUntilQuiet();
  Type(":wq");
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\ntyped\n");
  Type("undo");
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
  EXPECT_EQ(Leave(), 0);
}

TEST_F(TerminalProgram, LessShowsAFileAndEndsByAKey) {
  const std::string shown = Start("less", "keep.txt");
  if (shown.empty()) GTEST_SKIP() << "less is not installed";
  EXPECT_THAT(shown, HasSubstr("kept"));
  Send("q");
  ReadUntil(kPrompt);
  EXPECT_EQ(Leave(), 0);
}

TEST_F(TerminalProgram, TopShowsTheProcessesOfTheWorldAlone) {
  const std::string shown = Start("top", "-d 100");
  if (shown.empty()) GTEST_SKIP() << "top is not installed";
  EXPECT_THAT(shown, HasSubstr("PID"));
  EXPECT_THAT(shown, HasSubstr("bash"));
  EXPECT_THAT(shown, ::testing::Not(HasSubstr("session_test")));
  Send("q");
  ReadUntil(kPrompt);
  EXPECT_EQ(Leave(), 0);
}

}  // namespace
}  // namespace sandglass::test
