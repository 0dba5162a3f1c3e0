// `sandglass approve`: a person outside of the world answers what a safeguard of a running session holds.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/api/serve_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;

class Approve : public ServeFixture {
 protected:
  struct Said {
    int exit_code = -1;
    std::string out, err;
  };
  void SetUp() override {
    ServeFixture::SetUp();
    if (IsSkipped()) return;
    for (int i = 0; i < 20; ++i) workspace_.WriteFile(fmt::format("old/{:02}", i), "x");
    before_ = workspace_.Snapshot();
    Start();
    client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  }
  // Another terminal, in the project.
  Said Sandglass(std::vector<std::string> words) {
    const Fd out(MustCall(::memfd_create("out", MFD_CLOEXEC), "memfd"));
    const Fd err(MustCall(::memfd_create("err", MFD_CLOEXEC), "memfd"));
    words.insert(words.begin(), SANDGLASS_BINARY);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t pid = MustCall(::fork(), "fork");
    if (pid == 0) {
      ::setenv("SANDGLASS_HOME", place_.state.c_str(), 1);
      ::setenv("HOME", place_.home.c_str(), 1);
      if (::dup2(out.get(), 1) < 0 || ::dup2(err.get(), 2) < 0 ||
          ::chdir(workspace_.project().c_str()) != 0)
        ::_exit(99);
      ::execv(argv[0], argv.data());
      ::_exit(99);
    }
    int status = 0;
    MustCall(::waitpid(pid, &status, 0), "waitpid");
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Content(out), Content(err)};
  }
  static std::string Content(const Fd& file) {
    MustCall(::lseek(file.get(), 0, SEEK_SET), "rewind");
    return std::string(AsText(Must(ReadFully(file.get(), 1 << 20))));
  }
  std::string Hold(const std::string& command) {
    std::string id = SendExecute(command);
    client_->Event("event.safeguard_triggered");
    return id;
  }

  TreeSnapshot before_;
};

TEST_F(Approve, ListsWhatIsHeldAndLetsItHappen) {
  EXPECT_EQ(Sandglass({"approve"}).out, "nothing is held\n");
  const std::string id = Hold("rm -r old; echo done >done");
  const Said list = Sandglass({"approve"});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_THAT(list.out, HasSubstr("sg_001  step 1 is about to delete 5 files or folders"));
  EXPECT_THAT(list.out, HasSubstr("  old/"));
  const Json json = Must(ParseJson(Sandglass({"approve", "--json"}).out));
  ASSERT_EQ(json.Find("held")->AsArray()->size(), 1u);
  EXPECT_EQ((*json.Find("held")->AsArray())[0].GetString("id").value(), "sg_001");
  EXPECT_THAT(Sandglass({"status"}).out, HasSubstr("held         sg_001: step 1 is about to"));

  const Said allowed = Sandglass({"approve", "sg_001"});
  EXPECT_EQ(allowed.exit_code, 0);
  EXPECT_EQ(allowed.out, "sg_001: allowed; it goes on\n");
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
  EXPECT_FALSE(workspace_.Exists("old"));
  EXPECT_TRUE(workspace_.Exists("done"));
  EXPECT_EQ(client_->Code("safeguard.confirm", R"({"safeguard_id":"sg_001","action":"deny"})"),
            "not_found");
  client_->Result("undo.rollback");
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(Approve, DeniedTheWholeStepIsTakenBack) {
  const std::string id = Hold("echo a >keep.txt; rm -r old");
  const Said denied = Sandglass({"approve", "sg_001", "--deny"});
  EXPECT_EQ(denied.exit_code, 0);
  EXPECT_THAT(denied.out, HasSubstr("denied"));
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(id)), "denied");
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(Approve, ADaemonOfAnEarlierCommandIsAnsweredBetweenTwoCommands) {
  Execute("( sleep 1; rm -r old; echo done >done ) >/dev/null 2>&1 & exit 0");
  client_->Event("event.safeguard_triggered");
  EXPECT_THAT(Sandglass({"approve"}).out, HasSubstr("an earlier command left behind"));
  EXPECT_EQ(Sandglass({"approve", "sg_001"}).exit_code, 0);
  WaitUntilExists("done");
}

TEST_F(Approve, WhatNobodyWaitsForIsAnError) {
  const Said unknown = Sandglass({"approve", "sg_999"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("nothing is held under the name sg_999"));
  EXPECT_EQ(Sandglass({"approve", "--deny"}).exit_code, 2);
  EXPECT_EQ(Sandglass({"approve", std::string(100, 'x')}).exit_code, 1);
  client_->Result("session.stop");
  EXPECT_EQ(Sandglass({"approve"}).out, "nothing is held\n");
  EXPECT_THAT(Sandglass({"approve", "sg_001"}).err, HasSubstr("no session runs"));
}

TEST_F(Approve, InsideTheWorldThereIsNoWayToTheSession) {
  Execute("echo a >a");
  std::string socket;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place_.state)) {
    if (entry.is_socket()) socket = entry.path();
  }
  ASSERT_FALSE(socket.empty());
  ASSERT_EQ(Sandglass({"approve"}).out, "nothing is held\n");
  // Where the world can see it, wherever it was built.
  std::filesystem::copy_file(SANDGLASS_BINARY, workspace_.Path("program"));
  const std::string id = SendExecute(fmt::format(
      "SANDGLASS_HOME='{}' ./program approve sg_001; echo \"exit $?\"; ls '{}' || echo no socket",
      place_.state, socket));
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
  const std::string output = client_->Output(id);
  EXPECT_THAT(output, HasSubstr("nothing has been recorded"));
  EXPECT_THAT(output, HasSubstr("exit 1"));
  EXPECT_THAT(output, HasSubstr("no socket"));
}

}  // namespace
}  // namespace sandglass::test
