// The Model Context Protocol by HTTP: who may talk, sessions, and streams that survive their connection.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "tests/api/http_client.h"
#include "tests/api/mcp_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kInitialize =
    R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}})";

// The program as `sandglass mcp --http`, which says where it is.
class HttpProgram : public LineClient {
 public:
  explicit HttpProgram(const Place& place) : LineClient(place, {"mcp", "--http"}) {
    while (came_.empty() && ReadMore(20'000)) {
    }
    if (came_.empty()) return;
    said_ = came_.front();
    const std::string url = said_.GetString("url").value();
    port_ = static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  }
  uint16_t port() const { return port_; }
  const Json& said() const { return said_; }

 private:
  Json said_;
  uint16_t port_ = 0;
};

// What a process has computed so far.
double CpuSeconds(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

class McpHttp : public McpFixture {
 protected:
  void SetUp() override {
    McpFixture::SetUp();
    if (IsSkipped()) return;
    client_.reset();
    Start();
  }
  void Start() {
    program_.emplace(place_);
    ASSERT_NE(program_->port(), 0) << program_->Log();
    if (const Json* token = program_->said().Find("token")) token_ = *token->AsString();
  }

  struct Sent {
    std::string method = "POST";
    std::string body = "";
    std::string host = "localhost";
    std::string more = "";  // headers
    std::string path = "/mcp";
  };
  std::string Text(const Sent& sent) const {
    std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n",
                                   sent.method, sent.path, sent.host, sent.body.size());
    text += "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    if (!token_.empty()) text += fmt::format("Authorization: Bearer {}\r\n", token_);
    if (!session_.empty()) text += fmt::format("Mcp-Session-Id: {}\r\n", session_);
    return text + sent.more + "\r\n" + sent.body;
  }
  HttpAnswer Ask(const Sent& sent) {
    HttpClient client(program_->port());
    client.SendRaw(Text(sent));
    return client.Read();
  }
  HttpAnswer Post(const std::string& body) { return Ask({.body = body}); }
  void Initialize() {
    const HttpAnswer answer = Post(kInitialize);
    ASSERT_EQ(answer.status, 200) << answer.body;
    session_ = answer.Header("Mcp-Session-Id");
    ASSERT_FALSE(session_.empty());
    EXPECT_EQ(Post(R"({"jsonrpc":"2.0","method":"notifications/initialized"})").status, 202);
  }
  static std::string CallText(int id, std::string_view tool, const Json& arguments) {
    return fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{}}})", id,
                       McpClient::CallParams(tool, arguments, Json(id)));
  }
  static std::string Command(int id, const std::string& command) {
    return CallText(id, "execute_command", Json::Object({{"command", command}}));
  }

  std::optional<HttpProgram> program_;
  std::string token_, session_;
};

TEST_F(McpHttp, MC_07_AConnectionWithoutItsTokenIsRefused) {
  const std::string token = std::exchange(token_, "");
  const HttpAnswer without = Post(kInitialize);
  EXPECT_EQ(without.status, 401);
  EXPECT_THAT(without.Header("WWW-Authenticate"), HasSubstr("Bearer"));
  for (const std::string& wrong : {token.substr(1), token + "x", std::string(token.size(), '0')}) {
    token_ = wrong;
    EXPECT_EQ(Post(kInitialize).status, 401) << wrong;
  }
  token_ = token;
  EXPECT_EQ(Post(kInitialize).status, 200);
  EXPECT_THAT(program_->Log(), ::testing::Not(HasSubstr(token)));
}

TEST_F(McpHttp, OtherNamesAndOriginsAreRefused) {
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "",
                           "localhost:x", "[::1", "10.0.0.1:80"})
    EXPECT_EQ(Ask({.body = kInitialize, .host = host}).status, 403) << host;
  for (const char* origin : {"http://evil.example", "null", "http://localhost.evil.example",
                             "file://localhost", "http://localhost@evil.example"})
    EXPECT_EQ(Ask({.body = kInitialize, .more = fmt::format("Origin: {}\r\n", origin)}).status, 403)
        << origin;
  for (const char* host : {"localhost", "LOCALHOST:1234", "127.0.0.1:80", "[::1]:8080"})
    EXPECT_EQ(
        Ask({.body = kInitialize, .host = host, .more = fmt::format("Origin: http://{}\r\n", host)})
            .status,
        200)
        << host;
  EXPECT_EQ(Ask({.body = kInitialize, .more = "Host: localhost\r\n"}).status, 403);
}

TEST_F(McpHttp, WhatIsNoRequestOfTheProtocolIsRefused) {
  EXPECT_EQ(Ask({.body = kInitialize, .path = "/"}).status, 404);
  EXPECT_EQ(Ask({.method = "PUT", .body = kInitialize}).status, 405);
  EXPECT_EQ(Post("nonsense").status, 400);
  EXPECT_EQ(Post(R"({"jsonrpc":"2.0","id":1,"method":"ping"})").status, 400);
  EXPECT_EQ(Ask({.body = kInitialize, .more = "MCP-Protocol-Version: 1999-01-01\r\n"}).status, 400);
  HttpClient untyped(program_->port());
  untyped.SendRaw(
      fmt::format("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
                  "Authorization: Bearer {}\r\n\r\n{{}}",
                  token_));
  EXPECT_EQ(untyped.Read().status, 415);
  for (const char* bad : {"nonsense\r\n\r\n", "GET /mcp HTTP/9.9\r\n\r\n",
                          "POST /mcp HTTP/1.1\r\nContent-Length: x\r\n\r\n"}) {
    HttpClient client(program_->port());
    client.SendRaw(bad);
    EXPECT_EQ(client.Read().status, 400) << bad;
    EXPECT_TRUE(client.IsClosed());
  }
  Initialize();
  EXPECT_EQ(Post(R"({"jsonrpc":"2.0","id":9,"method":"no/such"})").status, 200);
  session_ = "0123";
  EXPECT_EQ(Post(R"({"jsonrpc":"2.0","id":1,"method":"ping"})").status, 404);
}

TEST_F(McpHttp, WhatIsTooLongIsRefusedAndOthersGoOn) {
  Initialize();
  EXPECT_EQ(Post(std::string(3 << 20, ' ')).status, 413);
  EXPECT_EQ(Ask({.more = "X-Long: " + std::string(64 << 10, 'x') + "\r\n"}).status, 431);
  EXPECT_EQ(Post(R"({"jsonrpc":"2.0","id":1,"method":"ping"})").status, 200);
}

TEST_F(McpHttp, MoreConnectionsThanAreServedWaitForTheirTurn) {
  Initialize();
  std::vector<std::unique_ptr<HttpClient>> silent;
  for (int i = 0; i < 64; ++i) silent.push_back(std::make_unique<HttpClient>(program_->port()));
  HttpClient waiting(program_->port());
  waiting.SendRaw(Text({.body = R"({"jsonrpc":"2.0","id":1,"method":"ping"})"}));
  silent.pop_back();
  EXPECT_EQ(waiting.Read().status, 200);
}

TEST_F(McpHttp, AConnectionIsUsedForManyRequests) {
  Initialize();
  HttpClient client(program_->port());
  const std::string ping = Text({.body = R"({"jsonrpc":"2.0","id":1,"method":"ping"})"});
  client.SendRaw(ping + ping);
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.Read().status, 200);
  client.SendRaw(Text({.body = Command(2, "echo hi")}));
  EXPECT_THAT(client.Read().body, HasSubstr("hi\\n"));
  client.SendRaw(ping);
  EXPECT_EQ(client.Read().status, 200);
}

TEST_F(McpHttp, ACommandStreamsItsProgressAndItsResult) {
  Initialize();
  const HttpAnswer answer = Post(Command(7, "echo half; sleep 1.2; echo x > made"));
  EXPECT_EQ(answer.Header("Content-Type"), "text/event-stream");
  const std::vector<std::string> events = answer.Events();
  ASSERT_GE(events.size(), 4u);
  EXPECT_EQ(events.front(), "");
  EXPECT_THAT(events[1], HasSubstr("notifications/progress"));
  const Json last = Must(ParseJson(events.back()));
  EXPECT_EQ(last.GetInt("id").value(), 7);
  EXPECT_EQ(workspace_.ReadFile("made"), "x\n");
}

TEST_F(McpHttp, AStreamThatLostItsConnectionIsResumed) {
  Initialize();
  {
    HttpClient client(program_->port());
    client.SendRaw(Text({.body = Command(7, "touch began; sleep 1; echo done")}));
    EXPECT_THAT(client.Read("retry").body, HasSubstr("id: 3-0\n"));
    WaitUntilExists("began");
  }
  const HttpAnswer rest = Ask({.method = "GET", .more = "Last-Event-ID: 3-0\r\n"});
  EXPECT_EQ(rest.status, 200);
  EXPECT_THAT(rest.Events().back(), HasSubstr("done\\n"));
  EXPECT_EQ(Ask({.method = "GET", .more = "Last-Event-ID: 99-0\r\n"}).status, 404);
}

TEST_F(McpHttp, AStreamThatIsListenedToIsResumedToo) {
  Initialize();
  const Sent again{.method = "GET", .more = "Last-Event-ID: 3-0\r\n"};
  {
    HttpClient listening(program_->port());
    listening.SendRaw(Text({.method = "GET"}));
    EXPECT_THAT(listening.Read("retry").body, HasSubstr("id: 3-0\n"));
    EXPECT_EQ(Ask(again).status, 409);
  }
  HttpClient resumed(program_->port());
  resumed.SendRaw(Text(again));
  EXPECT_EQ(Ask({.method = "GET"}).status, 409);
  EXPECT_EQ(Ask({.method = "DELETE"}).status, 204);
  const HttpAnswer rest = resumed.Read();
  EXPECT_EQ(rest.status, 200);
  EXPECT_EQ(rest.body, "");
}

TEST_F(McpHttp, AClientThatLeavesBehindAnEmptyLineCostsNoTime) {
  Initialize();
  {
    HttpClient client(program_->port());
    client.SendRaw(Text({.body = Command(7, "touch began; sleep 2; echo done")}) + "\r\n");
    (void)client.Read("retry");  // else it would be a reset
    WaitUntilExists("began");
  }
  const double before = CpuSeconds(program_->pid());
  ::sleep(1);
  EXPECT_LT(CpuSeconds(program_->pid()) - before, 0.2);
  EXPECT_THAT(Ask({.method = "GET", .more = "Last-Event-ID: 3-0\r\n"}).Events().back(),
              HasSubstr("done\\n"));
}

TEST_F(McpHttp, SessionsShareTheWorldAndNotTheirIds) {
  Initialize();
  const std::string first = session_;
  session_.clear();
  Initialize();
  EXPECT_NE(session_, first);
  HttpClient running(program_->port());
  running.SendRaw(Text({.body = Command(1, "touch began; sleep 1; echo end")}));
  WaitUntilExists("began");
  session_ = first;
  EXPECT_THAT(Post(Command(1, "true")).body, HasSubstr("command_running"));
  EXPECT_THAT(Post(CallText(1, "get_session_status", Json::Object())).body, HasSubstr("running"));
  EXPECT_THAT(running.Read().body, HasSubstr("end\\n"));
}

TEST_F(McpHttp, ASessionThatIsDeletedEndsItsCommand) {
  Initialize();
  HttpClient running(program_->port());
  running.SendRaw(Text({.body = Command(1, "touch began; sleep 100")}));
  WaitUntilExists("began");
  HttpClient listening(program_->port());
  listening.SendRaw(Text({.method = "GET"}));
  EXPECT_THAT(listening.Read("retry").head, HasSubstr("text/event-stream"));
  EXPECT_EQ(Ask({.method = "GET"}).status, 409);
  EXPECT_EQ(Ask({.method = "DELETE"}).status, 204);
  EXPECT_EQ(Ask({.method = "DELETE"}).status, 404);
  running.Read();
  EXPECT_EQ(listening.ReadOn("never"), "");
  session_.clear();
  Initialize();
  EXPECT_THAT(Post(CallText(1, "get_session_status", Json::Object())).body, HasSubstr("idle"));
}

constexpr const char* kEnvelope =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})";

TEST_F(McpHttp, AClientWithoutASessionSaysAllInItsHeaders) {
  const std::string body = fmt::format(
      R"({{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"execute_command","arguments":{{"command":"echo hi"}},{}}}}})",
      kEnvelope);
  const std::string version = "MCP-Protocol-Version: 2026-07-28\r\n";
  const std::string method = "Mcp-Method: tools/call\r\n", name = "Mcp-Name: execute_command\r\n";
  const HttpAnswer good = Ask({.body = body, .more = version + method + name});
  EXPECT_EQ(good.status, 200);
  EXPECT_EQ(good.Header("Mcp-Session-Id"), "");
  EXPECT_THAT(good.body, HasSubstr("hi\\n"));
  EXPECT_THAT(good.body, ::testing::Not(HasSubstr("\nid: ")));
  for (const std::string& headers :
       {method + name, version + name, version + method, std::string(),
        version + "Mcp-Method: tools/list\r\n" + name, version + method + "Mcp-Name: undo\r\n",
        "MCP-Protocol-Version: 2025-11-25\r\n" + method + name}) {
    const HttpAnswer refused = Ask({.body = body, .more = headers});
    EXPECT_EQ(refused.status, 400) << headers;
    EXPECT_EQ(McpClient::NumberOf(refused.Parsed()), -32020) << headers;
  }
  const HttpAnswer bare =
      Ask({.body = R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})", .more = version});
  EXPECT_EQ(bare.status, 400);
  EXPECT_EQ(McpClient::NumberOf(bare.Parsed()), -32602);
}

TEST_F(McpHttp, ErrorsOfTheProtocolAreErrorsOfHttpWithoutASession) {
  const auto ask = [this](std::string_view method, std::string_view version) {
    std::string envelope = kEnvelope;
    envelope.replace(envelope.find("2026-07-28"), 10, version);
    return Ask(
        {.body = fmt::format(R"({{"jsonrpc":"2.0","id":1,"method":"{}","params":{{{}}}}})", method,
                             envelope),
         .more = fmt::format("MCP-Protocol-Version: {}\r\nMcp-Method: {}\r\n", version, method)});
  };
  EXPECT_EQ(ask("server/discover", "2026-07-28").status, 200);
  EXPECT_EQ(ask("no/such", "2026-07-28").status, 404);
  const HttpAnswer unknown = ask("tools/list", "2099-01-01");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(McpClient::NumberOf(unknown.Parsed()), -32022);
}

TEST_F(McpHttp, WhoLeavesWithoutASessionCancels) {
  {
    HttpClient client(program_->port());
    client.SendRaw(Text(
        {.body = fmt::format(
             R"({{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"execute_command","arguments":{{"command":"touch began; sleep 100"}},{}}}}})",
             kEnvelope),
         .more = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                 "Mcp-Name: execute_command\r\n"}));
    WaitUntilExists("began");
  }
  Initialize();
  for (int i = 0; i < 1000; ++i) {
    if (Post(CallText(1, "get_session_status", Json::Object())).body.find("idle") !=
        std::string::npos)
      break;
    ::usleep(10'000);
  }
  EXPECT_THAT(Post(Command(1, "echo on")).body, HasSubstr("on\\n"));
}

TEST_F(McpHttp, ASignalEndsItAndTheWorld) {
  Initialize();
  HttpClient running(program_->port());
  running.SendRaw(Text({.body = Command(1, "touch began; sleep 100")}));
  WaitUntilExists("began");
  const std::vector<pid_t> children = ChildrenOf(program_->pid());
  EXPECT_FALSE(children.empty());
  ::kill(program_->pid(), SIGTERM);
  EXPECT_EQ(program_->Wait(), 0) << program_->Log();
  for (const pid_t child : children) EXPECT_NE(::kill(child, 0), 0);
}

TEST_F(McpHttp, ATokenFileIsMadeOnceAndNeverTakenFromOthers) {
  program_.reset();
  const std::string path = workspace_.root() + "/token";
  place_.words.push_back("--token-file");
  place_.words.push_back(path);
  token_.clear();
  Start();
  EXPECT_EQ(program_->said().Find("token"), nullptr);
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const int file = MustCall(::open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
  token_ = AsText(Must(ReadFully(Fd(file).get(), 100)));
  token_.pop_back();
  EXPECT_EQ(Post(kInitialize).status, 200);
  program_.reset();
  Start();
  EXPECT_EQ(Post(kInitialize).status, 200);
  program_.reset();
  MustCall(::chmod(path.c_str(), 0644), "chmod");
  LineClient refused(place_, {"mcp", "--http"});
  EXPECT_NE(refused.Wait(), 0);
  EXPECT_THAT(refused.Log(), HasSubstr("others"));
  MustCall(::unlink(path.c_str()), "unlink");
  MustCall(::mkfifo(path.c_str(), 0600), "mkfifo");
  LineClient waits_for_nobody(place_, {"mcp", "--http"});
  EXPECT_NE(waits_for_nobody.Wait(), 0);
  EXPECT_THAT(waits_for_nobody.Log(), HasSubstr("no regular file"));
}

}  // namespace
}  // namespace sandglass::test
