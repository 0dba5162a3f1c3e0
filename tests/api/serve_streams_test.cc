// What goes over the three streams, and how.
#include <gmock/gmock.h>

#include <sstream>

#include "tests/api/serve_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;

using ServeStreams = ServeFixture;

std::vector<Json> LogLines(const std::string& log) {
  std::vector<Json> lines;
  std::istringstream stream(log);
  for (std::string line; std::getline(stream, line);) {
    const auto json = ParseJson(line);
    EXPECT_TRUE(json.ok()) << line;
    if (json.ok()) lines.push_back(*json);
  }
  return lines;
}

TEST_F(ServeStreams, SA_05_SA_06_EventsAndResponsesInterleaveAndCanBeToldApart) {
  Start();
  const std::string slow = SendExecute("for i in 1 2 3 4 5; do echo $i; sleep 0.1; done");
  std::vector<std::string> quick;
  for (int i = 0; i < 20; ++i) quick.push_back(client_->Send("session.status"));
  for (const std::string& id : quick)
    EXPECT_EQ(client_->Response(id).GetString("request_id").value(), id);
  client_->Response(slow);
  EXPECT_EQ(client_->Output(slow), "1\n2\n3\n4\n5\n");
}

TEST_F(ServeStreams, SA_07_SA_08_OB_01_OB_02_OB_03_LogsAreOnTheErrorStreamOnly) {
  Start();
  const std::string id = SendExecute("echo out; echo err >&2; echo a >a");
  client_->Response(id);
  client_->Code("session.dance");
  EXPECT_EQ(client_->Wait(), 0);
  bool has_request = false, has_step = false;
  for (const Json& line : LogLines(client_->Log())) {
    for (const char* key : {"timestamp", "level", "component"})
      EXPECT_NE(line.Find(key), nullptr) << WriteJson(line);
    has_request |= line.Find("request_id") != nullptr && *line.Find("request_id")->AsString() == id;
    has_step |= line.Find("step_id") != nullptr;
  }
  EXPECT_TRUE(has_request);
  EXPECT_TRUE(has_step);
  for (const std::string& line : client_->lines()) {
    const Json message = Must(ParseJson(line));
    EXPECT_EQ(message.Find("level"), nullptr) << line;
    EXPECT_EQ(message.Find("component"), nullptr) << line;
    EXPECT_NE(message.Find("type"), nullptr) << line;
  }
}

TEST_F(ServeStreams, OB_05_TheLogLevelFilters) {
  place_.before = {"--log-level", "warn"};
  Restart();
  Start();
  Execute("true");
  client_->Code("fs.read", R"({"path":"missing"})");
  EXPECT_EQ(client_->Wait(), 0);
  const auto lines = LogLines(client_->Log());
  ASSERT_FALSE(lines.empty());
  for (const Json& line : lines) EXPECT_EQ(line.GetString("level").value(), "warn");
}

TEST_F(ServeStreams, SA_09_ACommandWaitsForAClientThatDoesNotReadAndMemoryStaysBounded) {
  Start();
  const std::string id = SendExecute("head -c 50000000 /dev/zero | tr '\\0' x; echo done >done");
  ::usleep(1'000'000);
  EXPECT_FALSE(workspace_.Exists("done"));
  const std::string status =
      Must(ReadFileAt(AT_FDCWD, fmt::format("/proc/{}/status", client_->pid()).c_str(), 1 << 16));
  const size_t at = status.find("VmRSS:");
  EXPECT_LT(std::stoul(status.substr(at + 6)), 64u << 10) << "KiB";
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
  EXPECT_EQ(client_->Output(id).size(), 50'000'000u);
}

TEST_F(ServeStreams, SA_09_AfterTheStallTimeoutTheWorldGoesOn) {
  Restart({"--stall-timeout", "500ms"});
  Start();
  const std::string id = SendExecute("head -c 5000000 /dev/zero | tr '\\0' x; echo done >done");
  WaitUntilExists("done");
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
  const std::string output = client_->Output(id);
  EXPECT_LT(output.size(), 5'000'000u);
  uint64_t dropped = 0;
  for (const std::string& line : client_->lines()) {
    const Json message = Must(ParseJson(line));
    if (message.GetString("type").value() != "event.terminal_output") continue;
    if (const Json* count = message.Find("payload")->Find("dropped_bytes"))
      dropped += *count->AsUint();
  }
  EXPECT_EQ(output.size() + dropped, 5'000'000u);
}

TEST_F(ServeStreams, SigtermDoesNotWaitForAClientThatDoesNotRead) {
  Start();
  SendExecute("touch begun; yes");
  WaitUntilExists("begun");
  ::usleep(500'000);
  const auto before = std::chrono::steady_clock::now();
  MustCall(::kill(client_->pid(), SIGTERM), "kill");
  siginfo_t info{};  // what it said is read only after its end
  MustCall(::waitid(P_PID, static_cast<id_t>(client_->pid()), &info, WEXITED | WNOWAIT), "waitid");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(15));
  EXPECT_EQ(client_->Wait(), 0);
}

TEST_F(ServeStreams, BytesArriveAsTheyAre) {
  Start();
  const std::string id =
      SendExecute("printf 'h\\303'; sleep 0.2; printf '\\251llo\\n'; printf '\\377\\000' >&2");
  client_->Response(id);
  EXPECT_EQ(client_->Output(id), std::string("h\xc3\xa9llo\n\xff\0", 9));
}

TEST_F(ServeStreams, InputAndItsEnd) {
  Start();
  const std::string id = SendExecute("cat; echo end", R"(,"input":true)");
  client_->Result("agent.input", R"({"data":"one\n"})");
  client_->Result("agent.input", R"({"data":{"base64":"AP8="},"eof":true})");
  EXPECT_EQ(client_->Code("agent.input", R"({"data":"more"})"), "invalid_argument");
  client_->Response(id);
  EXPECT_EQ(client_->Output(id), std::string("one\n\0\xff"
                                             "end\n",
                                             10));
  const std::string none = SendExecute("cat; echo end");
  client_->Response(none);
  EXPECT_EQ(client_->Output(none), "end\n");
}

TEST_F(ServeStreams, ATerminalHasASizeThatCanBeChanged) {
  Start();
  const std::string id = SendExecute("stty size; read line; stty size; echo got $line",
                                     R"(,"pty":{"rows":10,"columns":20})");
  while (client_->Output(id).find("10 20") == std::string::npos)
    client_->Event("event.terminal_output");
  client_->Result("agent.resize", R"({"rows":30,"columns":40})");
  client_->Result("agent.input", R"({"data":"text\n"})");
  client_->Response(id);
  EXPECT_THAT(client_->Output(id), HasSubstr("30 40"));
  EXPECT_THAT(client_->Output(id), HasSubstr("got text"));
}

TEST_F(ServeStreams, TimeoutsEnvironmentAndFolder) {
  Start();
  const std::string late = SendExecute("sleep 60", R"(,"timeout_ms":200)");
  EXPECT_EQ(client_->Response(late).Find("payload")->GetString("ending").value(), "timed_out");
  const std::string id =
      SendExecute("echo $COLOUR; pwd", R"(,"env":[{"name":"COLOUR","value":"red"}],"cwd":"src")");
  client_->Response(id);
  EXPECT_EQ(client_->Output(id), "red\n" + workspace_.project() + "/src\n");
}

}  // namespace
}  // namespace sandglass::test
