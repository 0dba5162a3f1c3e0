// The bar that undo and redo show on a terminal when they take long, alone and through a running session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "tests/session/sandglass_fixture.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kClearLine[] = "\r\x1b[K";

class RewindBar : public SandglassFixture {
 protected:
  // What `sandglass` shows on a terminal of its own.
  std::string OnTerminal(const Words& words) {
    int terminal = -1;
    const pid_t child = MustCall(::forkpty(&terminal, nullptr, nullptr, nullptr), "forkpty");
    if (child == 0) {
      ::setenv("SANDGLASS_HOME", state_.c_str(), 1);
      ::setenv("HOME", home_.c_str(), 1);
      std::vector<char*> argv = {const_cast<char*>(SANDGLASS_BINARY)};
      for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
      argv.push_back(nullptr);
      if (::chdir(workspace_.project().c_str()) == 0) ::execv(argv[0], argv.data());
      ::_exit(99);
    }
    const Fd screen(terminal);
    std::string shown;
    char buffer[4096];
    for (ssize_t got; (got = ::read(screen.get(), buffer, sizeof(buffer))) > 0;)
      shown.append(buffer, static_cast<size_t>(got));
    int status = 0;
    MustCall(::waitpid(child, &status, 0), "waitpid");
    EXPECT_EQ(status, 0) << shown;
    return shown;
  }
  // Enough for any machine to need longer than the bar waits.
  void MakeLongStep() {
    const Ended made = Shell("mkdir many && cd many && seq 20000 | xargs touch");
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  // The session that holds the store, in whatever folder of the state that lies.
  void WaitUntilListening() {
    for (int i = 0; i < 1000; ++i) {
      std::error_code error;
      for (const auto& store : std::filesystem::directory_iterator(state_ + "/undo", error))
        if (std::filesystem::is_socket(store.path() / "session", error)) return;
      ::usleep(10'000);
    }
    FAIL() << "no session listens";
  }
  static void ExpectBar(const std::string& shown, const std::string& end) {
    EXPECT_THAT(shown, HasSubstr(" of 20001 paths"));
    EXPECT_THAT(shown, HasSubstr(" %  "));
    // Gone before the answer is told.
    const size_t last = shown.rfind(kClearLine);
    ASSERT_NE(last, shown.npos);
    EXPECT_THAT(shown.substr(last), HasSubstr(end));
    EXPECT_THAT(shown.substr(last), Not(HasSubstr(" of 20001 paths")));
  }
};

TEST_F(RewindBar, IsShownByUndoAndRedoThatTakeLong) {
  const TreeSnapshot before = workspace_.Snapshot();
  MakeLongStep();
  ExpectBar(OnTerminal({"undo"}), "undone");
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  ExpectBar(OnTerminal({"redo"}), "redone");
  const Ended without_terminal = Sandglass({"undo"});
  EXPECT_THAT(without_terminal.out + without_terminal.err, Not(HasSubstr(" of 20001 paths")));
}

TEST_F(RewindBar, IsShownWhenARunningSessionDoesIt) {
  MakeLongStep();
  const Started session =
      Begin({"run", "--", "sh", "-c", "while test -e many; do sleep 0.05; done"});
  WaitUntilListening();
  ExpectBar(OnTerminal({"undo"}), "undone");
  EXPECT_EQ(Finish(session).exit_code, 0);
}

TEST_F(RewindBar, IsNotShownForWhatIsQuick) {
  ASSERT_EQ(Shell("touch one").exit_code, 0);
  EXPECT_THAT(OnTerminal({"undo"}), Not(HasSubstr(" paths")));
}

}  // namespace
}  // namespace sandglass::test
