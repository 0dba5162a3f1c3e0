// Whatever a client says, it gets a structured error, and the next line is read as usual.
#include <gmock/gmock.h>

#include "tests/api/serve_fixture.h"

namespace sandglass::test {
namespace {

using ServeBadInput = ServeFixture;

TEST_F(ServeBadInput, WhatIsNoRequestIsRefusedAndTheChannelLivesOn) {
  const std::pair<std::string, std::string> lines[] = {
      {"nonsense", "parse_error"},
      {"{\"type\":\"\xff\xfe\"}", "parse_error"},
      {std::string("{\"type\":\"a\0b\"}", 14), "parse_error"},
      {std::string(200, '['), "parse_error"},
      {R"({"type":"fs.list","type":"fs.list"})", "parse_error"},
      {std::string(2 << 20, 'x'), "too_long"},
      {"[]", "invalid_request"},
      {R"({"type":"session.status"})", "invalid_request"},
      {R"({"type":"session.status","request_id":17})", "invalid_request"},
  };
  for (const auto& [line, code] : lines) {
    client_->SendLine(line);
    EXPECT_EQ(JsonlClient::CodeOf(client_->ResponseWithoutId()), code) << line.substr(0, 80);
    EXPECT_EQ(client_->Result("session.status").GetString("state").value(), "stopped");
  }
  EXPECT_EQ(client_->Wait(), 0);
}

TEST_F(ServeBadInput, SA_02_UnknownOperations) {
  const Json response = client_->Ask("session.dance");
  EXPECT_EQ(JsonlClient::CodeOf(response), "unknown_operation");
  EXPECT_NE(response.Find("error")->GetString("message").value().find("session.dance"),
            std::string::npos);
}

TEST_F(ServeBadInput, SA_03_WrongPayloadsNameTheMember) {
  const std::pair<const char*, const char*> payloads[] = {
      {R"({})", "working_directories"},
      {R"({"working_directories":[]})", "working_directories"},
      {R"({"working_directories":[{}]})", "working_directories[0].path"},
      {R"({"working_directories":[{"path":1}]})", "working_directories[0].path"},
      {R"({"working_directories":[{"path":"/a\u0000b"}]})", "working_directories[0].path"},
      {R"({"working_directories":[{"path":"/a","access":"all"}]})",
       "working_directories[0].access"},
      {R"({"working_directories":[{"path":"/a"}],"colour":"red"})", "colour"},
  };
  for (const auto& [payload, field] : payloads) {
    const Json response = client_->Ask("session.start", payload);
    EXPECT_EQ(JsonlClient::CodeOf(response), "invalid_argument") << payload;
    EXPECT_EQ(response.Find("error")->Find("data")->GetString("field").value(), field);
  }
}

TEST_F(ServeBadInput, SA_04_AnotherProtocolVersionIsRefusedAndOursIsOffered) {
  const Json response = client_->Ask("protocol.negotiate", R"({"versions":[7,8]})");
  EXPECT_EQ(JsonlClient::CodeOf(response), "unsupported_protocol");
  EXPECT_EQ(WriteJson(*response.Find("error")->Find("data")->Find("supported")), "[1]");
  EXPECT_EQ(
      client_->Result("protocol.negotiate", R"({"versions":[2,1]})").GetInt("version").value(), 1);
}

TEST_F(ServeBadInput, OperationsBeforeTheStartAndAfterTheStop) {
  EXPECT_EQ(client_->Code("agent.execute", R"({"command":"true"})"), "not_started");
  EXPECT_EQ(client_->Code("undo.rollback"), "not_started");
  EXPECT_EQ(client_->Code("fs.list"), "not_started");
  Start();
  EXPECT_EQ(client_->Code("session.start", StartPayload()), "already_started");
  EXPECT_EQ(client_->Code("agent.cancel"), "no_command");
  EXPECT_EQ(client_->Code("agent.input", R"({"data":"x"})"), "no_command");
  client_->Result("session.stop");
  EXPECT_EQ(client_->Code("fs.list"), "not_started");
  client_->Result("session.stop");
}

std::string ExecuteWith(const std::string& command, Json environment) {
  return WriteJson(Json::Object({{"command", command}, {"env", std::move(environment)}}));
}

Json Entry(const std::string& name, const std::string& value) {
  return Json::Object({{"name", name}, {"value", value}});
}

TEST_F(ServeBadInput, ACommandThatCannotBeBegunDoesNotEndTheSession) {
  Start();
  Execute("echo here > ~/kept");
  const Json named =
      client_->Ask("agent.execute", ExecuteWith("true", Json::Array({Entry("A=B", "x")})));
  EXPECT_EQ(JsonlClient::CodeOf(named), "invalid_argument");
  EXPECT_EQ(named.Find("error")->Find("data")->GetString("field").value(), "env[0].name");
  EXPECT_EQ(client_->Code("agent.execute", ExecuteWith("true", Json::Array({Entry("", "x")}))),
            "invalid_argument");
  EXPECT_EQ(client_->Code("agent.execute",
                          ExecuteWith("true", Json::Array({Entry("A", "1"), Entry("A", "2")}))),
            "invalid_argument");
  // A control character takes six bytes of the message to the world, and fewer of the client's.
  const std::string controls = Base64Encode(std::string(65'000, '\x01'));
  Json long_ones = Json::Array();
  for (int i = 0; i < 5; ++i)
    long_ones.Append(Json::Object(
        {{"name", fmt::format("E{}", i)}, {"value", Json::Object({{"base64", controls}})}}));
  EXPECT_EQ(client_->Code("agent.execute", ExecuteWith("true", std::move(long_ones))), "limit");
  EXPECT_EQ(client_->Result("session.status").GetString("state").value(), "idle");
  EXPECT_EQ(Execute("cat ~/kept").GetInt("exit_code").value(), 0);  // the same world
}

TEST_F(ServeBadInput, ALongEnvironmentReachesTheCommand) {
  Start();
  Json entries = Json::Array();
  for (int i = 0; i < 110; ++i)
    entries.Append(Entry(fmt::format("E{}", i), std::string(9'000, 'v')));
  const Json done =
      client_->Result("agent.execute", ExecuteWith("test ${#E109} = 9000", std::move(entries)));
  EXPECT_EQ(done.GetInt("exit_code").value(), 0);
}

TEST_F(ServeBadInput, ATerminalOfAnotherKindIsTheClientsChoice) {
  Start();
  const std::string id = SendExecute(
      "echo $TERM", R"(,"pty":{"rows":24,"columns":80},"env":[{"name":"TERM","value":"dumb"}])");
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
  EXPECT_EQ(client_->Output(id), "dumb\r\n");
}

TEST_F(ServeBadInput, TwoCommandsAtOnce) {
  Start();
  const std::string first = SendExecute("touch begun; sleep 60");
  WaitUntilExists("begun");
  EXPECT_EQ(client_->Code("agent.execute", R"({"command":"true"})"), "command_running");
  EXPECT_EQ(client_->Code("fs.write", R"({"path":"a","content":"b"})"), "command_running");
  EXPECT_EQ(client_->Code("undo.configure", R"({"max_step_count":3})"), "command_running");
  EXPECT_EQ(client_->Code("undo.rollback"), "busy");
  EXPECT_EQ(client_->Result("session.status").GetString("state").value(), "running");
  EXPECT_EQ(client_->Result("fs.read", R"({"path":"keep.txt"})").GetString("content").value(),
            "kept\n");
  client_->Result("undo.history");
  client_->Result("agent.cancel");
  const Json response = client_->Response(first);
  EXPECT_EQ(response.Find("payload")->GetString("ending").value(), "cancelled");
  EXPECT_EQ(client_->Result("undo.rollback").Find("steps")->AsArray()->size(), 1u);
  EXPECT_FALSE(workspace_.Exists("begun"));
}

TEST_F(ServeBadInput, WhatIsNotThereYetSaysSo) {
  EXPECT_EQ(client_->Code("session.start", StartPayload(R"(,"network_policy":"open")")),
            "unsupported");
  EXPECT_EQ(client_->Code("session.start", StartPayload(R"(,"world":"vm")")), "unsupported");
}

}  // namespace
}  // namespace sandglass::test
