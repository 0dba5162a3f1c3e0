// The Model Context Protocol by a Unix socket: alone, and beside the interface for programs in one session.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/api/mcp_fixture.h"
#include "tests/api/serve_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;

// A client of the socket, which speaks as one that started the program would.
class SocketClient : public McpClient {
 public:
  explicit SocketClient(const std::string& path) : McpClient(Connected(path)) {}

 private:
  static Fd Connected(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    for (int i = 0; i < 1000; ++i) {
      Fd socket(MustCall(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
      const auto* generic = reinterpret_cast<const sockaddr*>(&address);
      if (::connect(socket.get(), generic, sizeof(address)) == 0) return socket;
      ::usleep(10'000);
    }
    ADD_FAILURE() << "nobody serves " << path;
    return Fd();
  }
};

class McpSocket : public McpFixture {
 protected:
  void SetUp() override {
    McpFixture::SetUp();
    if (IsSkipped()) return;
    client_.reset();
    path_ = workspace_.root() + "/socket";
  }
  void Start() { program_.emplace(place_, std::vector<std::string>{"mcp", "--socket", path_}); }

  std::string path_;
  std::optional<LineClient> program_;
};

TEST_F(McpSocket, OnlyItsOwnerCanUseItAndItGoesWithTheProgram) {
  Start();
  SocketClient client(path_);
  struct stat info{};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  client.Initialize();
  client.Result("list_directory");
  ::kill(program_->pid(), SIGTERM);
  EXPECT_EQ(program_->Wait(), 0) << program_->Log();
  EXPECT_NE(::lstat(path_.c_str(), &info), 0);
}

TEST_F(McpSocket, ASocketThatWasLeftBehindIsReplacedAndOneInUseIsNot) {
  Start();
  SocketClient first(path_);
  LineClient second(place_, {"mcp", "--socket", path_});
  EXPECT_NE(second.Wait(), 0);
  EXPECT_THAT(second.Log(), HasSubstr("another program serves"));
  EXPECT_NE(first.Ask("ping").Find("result"), nullptr);
  ::kill(program_->pid(), SIGKILL);
  program_->Wait();
  struct stat info{};
  ASSERT_EQ(::lstat(path_.c_str(), &info), 0);
  Start();
  EXPECT_NE(SocketClient(path_).Ask("ping").Find("result"), nullptr);
}

TEST_F(McpSocket, WhatIsNoSocketIsLeftAlone) {
  path_ = workspace_.project() + "/keep.txt";
  Start();
  EXPECT_NE(program_->Wait(), 0);
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
}

TEST_F(McpSocket, MC_07_AClientWithoutItsTokenIsRefused) {
  const std::string token_file = workspace_.root() + "/token";
  place_.words.push_back("--token-file");
  place_.words.push_back(token_file);
  Start();
  SocketClient stranger(path_);
  EXPECT_EQ(stranger.ErrorNumber("initialize", R"({"protocolVersion":"2025-11-25"})"), -32012);
  EXPECT_TRUE(stranger.IsClosedSoon());
  std::string token(AsText(Must(ReadFully(
      Fd(MustCall(::open(token_file.c_str(), O_RDONLY | O_CLOEXEC), token_file)).get(), 100))));
  token.pop_back();
  SocketClient known(path_);
  const Json answer = known.Ask(
      "initialize",
      fmt::format(R"({{"protocolVersion":"2025-11-25","_meta":{{"sandglass/token":"{}"}}}})",
                  token));
  EXPECT_NE(answer.Find("result"), nullptr) << WriteJson(answer);
  known.Result("list_directory");
}

TEST_F(McpSocket, AClientThatLeavesEndsItsCommandAndOthersGoOn) {
  Start();
  SocketClient stays(path_);
  stays.Initialize();
  {
    SocketClient leaves(path_);
    leaves.Initialize();
    leaves.Send("tools/call",
                McpClient::CallParams("execute_command",
                                      Json::Object({{"command", "touch began; sleep 100"}})));
    WaitUntilExists("began");
    EXPECT_EQ(stays.Result("get_session_status").GetString("state").value(), "running");
  }
  for (int i = 0; i < 1000; ++i) {
    if (stays.Result("get_session_status").GetString("state").value() == "idle") break;
    ::usleep(10'000);
  }
  EXPECT_EQ(stays.Result("execute_command", Json::Object({{"command", "echo on"}}))
                .GetString("stdout")
                .value(),
            "on\n");
}

class McpBesideStdio : public ServeFixture {
 protected:
  void SetUp() override {
    ServeFixture::SetUp();
    if (IsSkipped()) return;
    for (int i = 0; i < 20; ++i) workspace_.WriteFile(fmt::format("old/{:02}", i), "x");
    before_ = workspace_.Snapshot();
    path_ = workspace_.root() + "/socket";
    Restart({"--mcp-socket", path_});
    mcp_.emplace(path_);
    mcp_->Initialize();
  }

  std::string path_;
  std::optional<SocketClient> mcp_;
  TreeSnapshot before_;
};

TEST_F(McpBesideStdio, TheSessionIsThatOfTheOtherProgram) {
  EXPECT_THAT(mcp_->Failure("execute_command", Json::Object({{"command", "true"}})),
              HasSubstr("not_started"));
  Start();
  mcp_->Result("execute_command", Json::Object({{"command", "echo x > made"}}));
  EXPECT_EQ(client_->Result("undo.history").GetInt("total").value(), 1);
  EXPECT_EQ(client_->Wait(), 0) << client_->Log();
  struct stat info{};
  EXPECT_NE(::lstat(path_.c_str(), &info), 0);
}

TEST_F(McpBesideStdio, MC_06_ASafeguardThatAToolTriggersIsToldAndAnsweredOnTheOtherInterface) {
  Start();
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  for (const bool allows : {false, true}) {
    const Json id = mcp_->Send(
        "tools/call",
        McpClient::CallParams("execute_command", Json::Object({{"command", "rm -r old"}})));
    const Json asked = client_->Event("event.safeguard_triggered");
    client_->Result("safeguard.confirm",
                    fmt::format(R"({{"safeguard_id":"{}","action":"{}"}})",
                                asked.Find("payload")->GetString("safeguard_id").value(),
                                allows ? "allow" : "deny"));
    const Json result = *mcp_->Answer(id).Find("result");
    EXPECT_EQ(result.GetBool("isError").value(), !allows) << WriteJson(result);
    if (!allows) EXPECT_THAT(McpClient::TextOf(result), HasSubstr("`sandglass approve sg_001`"));
    EXPECT_EQ(workspace_.Exists("old"), !allows);
  }
  mcp_->Result("undo");
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(McpBesideStdio, MC_08_TwoInterfacesAtOnceShareUndoAndSafeguardState) {
  Start();
  for (int i = 0; i < 20; ++i) {
    const Json tool = mcp_->Send(
        "tools/call",
        McpClient::CallParams("write_file",
                              Json::Object({{"path", fmt::format("mcp{}", i)}, {"content", "x"}})));
    const std::string request =
        client_->Send("fs.write", fmt::format(R"({{"path":"stdio{}","content":"x"}})", i));
    EXPECT_FALSE(mcp_->Answer(tool).Find("result")->GetBool("isError").value());
    EXPECT_EQ(client_->Response(request).GetString("status").value(), "ok");
  }
  EXPECT_EQ(client_->Result("undo.history").GetInt("total").value(), 40);
  EXPECT_EQ(mcp_->Result("get_undo_history").GetInt("total").value(), 40);
  mcp_->Result("undo", Json::Object({{"count", 20}}));
  client_->Result("undo.rollback", R"({"count":20})");
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
}

}  // namespace
}  // namespace sandglass::test
