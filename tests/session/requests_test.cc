// Other programs ask a running session: undo, redo and restore while a command has the project.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/json.h"
#include "session/request_server.h"
#include "tests/session/sandglass_fixture.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {
namespace {

using session::RewindRequest;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kUntilStopped[] = "while test ! -e stop; do sleep 0.05; done";

class SessionRequests : public SandglassFixture {
 protected:
  // A session with its store where the test can reach it.
  Started BeginScript(const std::string& script) {
    return Begin({"run", "--store", workspace_.store(), "--", "sh", "-c", script});
  }
  // While a command runs that has changed nothing.
  Started BeginIdle() {
    Started started = BeginScript(std::string("echo ready; ") + kUntilStopped);
    struct stat said{};
    for (int i = 0; i < 1000 && said.st_size == 0; ++i) {
      ::usleep(10'000);
      MustCall(::fstat(started.out.get(), &said), "fstat");
    }
    EXPECT_GT(said.st_size, 0);
    return started;
  }
  Ended WithStore(Words words) {
    words.insert(words.begin() + 1, {"--store", workspace_.store()});
    return Sandglass(words);
  }
  void MakeStep(const std::string& script) { ASSERT_EQ(Finish(BeginScript(script)).exit_code, 0); }
  Ended Stop(const Started& started) {
    workspace_.WriteFile("stop", "");
    return Finish(started);
  }
  std::string Socket() const { return workspace_.store() + "/session"; }

  // What the session answers to these bytes; the connection stays half open, as a bad client's would.
  std::string Say(const std::string& bytes) {
    const Fd socket(MustCall(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    Socket().copy(address.sun_path, sizeof(address.sun_path) - 1);
    MustCall(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
             "connect");
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t some =
          ::send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (some < 0) break;
      sent += static_cast<size_t>(some);
    }
    std::string answer(1 << 16, '\0');
    const ssize_t got = ::recv(socket.get(), answer.data(), answer.size(), 0);
    answer.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return answer;
  }
};

TEST_F(SessionRequests, ACommandThatChangedNothingIsInNobodysWay) {
  const TreeSnapshot before = workspace_.Snapshot();
  MakeStep("echo new >keep.txt; mkdir made");
  const TreeSnapshot after = workspace_.Snapshot();
  const Started idle = BeginIdle();
  const Ended undone = WithStore({"undo"});
  EXPECT_EQ(undone.exit_code, 0) << undone.err;
  EXPECT_THAT(undone.out, HasSubstr("step 1: undone\n"));
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  const Ended redone = WithStore({"redo", "--json"});
  EXPECT_THAT(redone.out, HasSubstr(R"("steps":[1])"));
  EXPECT_TRUE(TreesEqual(after, workspace_.Snapshot()));
  EXPECT_EQ(WithStore({"restore", "1", "keep.txt"}).exit_code, 0);
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
  EXPECT_EQ(Stop(idle).exit_code, 0);
}

// The same words, whoever did it.
TEST_F(SessionRequests, AnswersReadAsIfTheProgramHadDoneItItself) {
  MakeStep("echo new >keep.txt");
  const auto all = [this] {
    std::string text;
    for (const Words& words : {Words{"undo", "-n"}, Words{"undo", "--json"}, Words{"undo"},
                               Words{"redo", "7"}, Words{"redo"}, Words{"restore", "9", "x"}}) {
      const Ended ended = WithStore(words);
      text += ended.out + ended.err + std::to_string(ended.exit_code) + "\n";
    }
    return text;
  };
  const std::string alone = all();
  const Started idle = BeginIdle();
  EXPECT_EQ(all(), alone);
  EXPECT_EQ(Stop(idle).exit_code, 0);
}

TEST_F(SessionRequests, AnEditInBetweenIsAConflictHereToo) {
  MakeStep("echo new >keep.txt");
  const Started idle = BeginIdle();
  workspace_.WriteFile("keep.txt", "a person's\n");
  const Ended refused = WithStore({"undo", "--json"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.out, HasSubstr(R"("conflicts":[{"conflict":"edited","path":"keep.txt")"));
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "a person's\n");
  EXPECT_EQ(WithStore({"undo", "--force"}).exit_code, 0);
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
  EXPECT_EQ(Stop(idle).exit_code, 0);
}

TEST_F(SessionRequests, WhoeverChangedSomethingAndStillRunsIsNamed) {
  const Started running = BeginScript(std::string("touch ready; ") + kUntilStopped);
  WaitUntilExists("ready");
  const Ended refused = WithStore({"undo", "--json"});
  EXPECT_EQ(refused.exit_code, 1);
  const auto json = ParseJson(refused.out);
  ASSERT_TRUE(json.ok()) << refused.out;
  const Json* error = json->Find("error");
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->GetString("code").value(), "busy");
  const Json* pids = error->Find("pids");
  ASSERT_TRUE(pids != nullptr && pids->AsArray() != nullptr && !pids->AsArray()->empty());
  const auto shell = static_cast<pid_t>(pids->AsArray()->front().AsInt().value_or(0));
  EXPECT_EQ(::kill(shell, 0), 0) << "it is a process of this machine";
  EXPECT_THAT(WithStore({"undo"}).err, HasSubstr(std::to_string(shell)));
  EXPECT_TRUE(workspace_.Exists("ready"));
  EXPECT_EQ(Stop(running).exit_code, 0);
}

TEST_F(SessionRequests, WhoIsInTheWayIsToldInTheWordsOfWhatWasAsked) {
  MakeStep("touch first");
  const Started running = BeginScript(std::string("touch ready; ") + kUntilStopped);
  WaitUntilExists("ready");
  for (const Words& words : {Words{"undo"}, Words{"redo"}, Words{"restore", "1", "first"}}) {
    const Ended refused = WithStore(words);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, HasSubstr("a command is at work on this project: sh -c")) << words[0];
    EXPECT_THAT(refused.err, HasSubstr("still running: process ")) << words[0];
    EXPECT_THAT(refused.err, HasSubstr("add --stop")) << words[0];
    EXPECT_THAT(refused.err, Not(HasSubstr("abort"))) << words[0];
    EXPECT_THAT(refused.err, Not(HasSubstr("undo --stop"))) << words[0];
  }
  EXPECT_EQ(Stop(running).exit_code, 0);
}

TEST_F(SessionRequests, StopEndsTheCommandAndTakesItsStepBack) {
  const TreeSnapshot before = workspace_.Snapshot();
  const Started running = BeginScript("rm -rf src; exec 9>>keep.txt; echo more >&9; sleep 60");
  for (int i = 0; i < 1000 && workspace_.ReadFile("keep.txt") == "kept\n"; ++i) ::usleep(10'000);
  const Ended undone = WithStore({"undo", "--stop"});
  EXPECT_EQ(undone.exit_code, 0) << undone.err;
  EXPECT_THAT(undone.out, HasSubstr("step 1: undone\n"));
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  EXPECT_EQ(Finish(running).exit_code, 128 + SIGTERM);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

TEST_F(SessionRequests, StopEndsNobodyForAQuestion) {
  const Started running = BeginScript(std::string("touch ready; ") + kUntilStopped);
  WaitUntilExists("ready");
  WithStore({"undo", "--stop", "--dry-run"});
  EXPECT_EQ(Stop(running).exit_code, 0);
}

TEST_F(SessionRequests, StopEndsNobodyWhoIsNotInTheWay) {
  const Started idle = BeginIdle();
  EXPECT_NE(WithStore({"undo", "--stop"}).exit_code, 0);  // there is nothing to undo
  EXPECT_EQ(Stop(idle).exit_code, 0);
}

TEST_F(SessionRequests, StopEndsWhoeverIgnoresItAndWhatWasLeftBehind) {
  const TreeSnapshot before = workspace_.Snapshot();
  const Started running = BeginScript(
      "trap '' TERM; (while :; do echo x >>log; sleep 0.02; done) & touch ready; wait; sleep 60");
  WaitUntilExists("ready");
  EXPECT_EQ(WithStore({"undo", "--stop"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  EXPECT_EQ(Finish(running).exit_code, 128 + SIGKILL);
}

TEST_F(SessionRequests, TheSocketIsTheUsersOwnAndGoesWithTheSession) {
  const Started idle = BeginIdle();
  struct stat st;
  MustCall(::lstat(Socket().c_str(), &st), "lstat");
  EXPECT_TRUE(S_ISSOCK(st.st_mode));
  EXPECT_EQ(st.st_mode & 07777, 0600u);
  EXPECT_EQ(Stop(idle).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(Socket()));
}

TEST_F(SessionRequests, AnotherUserIsRefusedEvenIfTheSocketLetsHimIn) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  MakeStep("touch made");
  const TreeSnapshot after = workspace_.Snapshot();
  // Root may ask everybody's session, so the session must be somebody else's than the one who asks: here the session is root's.
  const Started idle = BeginIdle();
  for (const std::string& path : {workspace_.root(), workspace_.store()})
    MustCall(::chmod(path.c_str(), 0777), path);
  MustCall(::chmod(Socket().c_str(), 0777), "chmod");
  const pid_t other = MustCall(::fork(), "fork");
  if (other == 0) {
    if (::setgid(1234) != 0 || ::setuid(1234) != 0) ::_exit(98);
    const auto answer = session::AskSession(workspace_.store(), {.project = workspace_.project()});
    if (!answer.ok() || !answer->error) ::_exit(97);
    ::_exit(answer->error->code() == Code::kDenied ? 0 : 96);
  }
  int status = 0;
  MustCall(::waitpid(other, &status, 0), "waitpid");
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(TreesEqual(after, workspace_.Snapshot()));
  EXPECT_EQ(Stop(idle).exit_code, 0);
}

TEST_F(SessionRequests, GarbageIsRefusedAndTheSessionGoesOn) {
  MakeStep("touch made");
  const Started idle = BeginIdle();
  for (const char* bytes : {"nonsense\n", "{}\n", "[]\n", "{\"type\":\"undo\"}\n",
                            "{\"type\":\"undo\",\"project\":\"/\",\"count\":1}\n"})
    EXPECT_THAT(Say(bytes), HasSubstr("\"error\"")) << bytes;
  EXPECT_THAT(Say(std::string(3 << 20, 'x')), HasSubstr("\"limit\""));
  EXPECT_TRUE(workspace_.Exists("made"));
  EXPECT_EQ(WithStore({"undo"}).exit_code, 0);
  EXPECT_FALSE(workspace_.Exists("made"));
  EXPECT_EQ(Stop(idle).exit_code, 0);
}

TEST_F(SessionRequests, TheSocketOfADeadSessionIsNoProblem) {
  MakeStep("touch made");
  const Started killed = BeginIdle();
  MustCall(::kill(killed.pid, SIGKILL), "kill");
  EXPECT_EQ(Finish(killed).exit_code, -SIGKILL);
  ASSERT_TRUE(std::filesystem::exists(Socket()));
  EXPECT_EQ(WithStore({"undo"}).exit_code, 0);
  EXPECT_FALSE(workspace_.Exists("made"));
  const Started next = BeginIdle();
  EXPECT_EQ(WithStore({"redo"}).exit_code, 0);
  EXPECT_TRUE(workspace_.Exists("made"));
  EXPECT_EQ(Stop(next).exit_code, 0);
}

TEST_F(SessionRequests, AStoreDeepDownIsReachedToo) {
  std::string deep = workspace_.root() + "/" + std::string(200, 'd');
  MustCall(::mkdir(deep.c_str(), 0700), deep);
  deep += "/store";
  const Started running = Begin(
      {"run", "--store", deep, "--", "sh", "-c", std::string("touch ready; ") + kUntilStopped});
  WaitUntilExists("ready");
  const Ended refused = Sandglass({"undo", "--store", deep});
  EXPECT_THAT(refused.err, HasSubstr("still running"));
  EXPECT_EQ(Sandglass({"undo", "--store", deep, "--stop"}).exit_code, 0);
  EXPECT_FALSE(workspace_.Exists("ready"));
  EXPECT_EQ(Finish(running).exit_code, 128 + SIGTERM);
}

// --- Who looks on, or would like to have the project as well.

TEST_F(SessionRequests, StatusNamesTheSessionAndItsStep) {
  MakeStep("touch one");
  MakeStep("touch two");
  ASSERT_EQ(WithStore({"undo"}).exit_code, 0);
  const Started idle = BeginIdle();
  const std::string early = WithStore({"status"}).out;
  EXPECT_THAT(early, HasSubstr("in use       by session " + std::to_string(idle.pid) + "\n"));
  EXPECT_THAT(early, HasSubstr("can redo     1\n"));
  EXPECT_THAT(WithStore({"status", "--json"}).out, HasSubstr(R"("redo_steps":1,)"));
  Stop(idle);

  MustCall(::unlink(workspace_.Path("stop").c_str()), "unlink");
  const Started busy = BeginScript(std::string("touch ready; ") + kUntilStopped);
  WaitUntilExists("ready");
  const std::string pid = std::to_string(busy.pid);
  EXPECT_THAT(WithStore({"status"}).out,
              HasSubstr("in use       by session " + pid + ", in step 3: sh -c 'touch ready;"));
  const Json status = Must(ParseJson(WithStore({"status", "--json"}).out, 1 << 20));
  Stop(busy);
  ASSERT_NE(status.Find("session"), nullptr);
  EXPECT_EQ(status.Find("session")->GetInt("pid").value(), busy.pid);
  EXPECT_EQ(status.Find("session")->Find("open_step")->GetInt("id").value(), 3);
}

TEST_F(SessionRequests, ARefusedRunNamesTheSessionAndNotItsBridge) {
  const Started idle = BeginIdle();
  const std::string words =
      "a session (process " + std::to_string(idle.pid) + ") is using the undo store";
  EXPECT_THAT(WithStore({"run", "--", "true"}).err, HasSubstr(words));
  EXPECT_THAT(WithStore({"run", "--stage", "--discard", "--", "true"}).err, HasSubstr(words));
  Stop(idle);
}

}  // namespace
}  // namespace sandglass::test
