// The Model Context Protocol itself: versions, errors, and what is no message.
#include <gmock/gmock.h>

#include "tests/api/mcp_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;

class McpProtocol : public McpFixture {
 protected:
  const Json* ToolNamed(const Json& listed, std::string_view name) {
    for (const Json& tool : *listed.Find("result")->Find("tools")->AsArray()) {
      if (*tool.Find("name")->AsString() == name) return &tool;
    }
    return nullptr;
  }
};

TEST_F(McpProtocol, EveryVersionIsNegotiatedWithWhatItHas) {
  struct Row {
    const char *asked, *spoken;
    bool annotations, structured, batches, faults_as_results;
  };
  constexpr Row kRows[] = {{"2024-11-05", "2024-11-05", false, false, false, false},
                           {"2025-03-26", "2025-03-26", true, false, true, false},
                           {"2025-06-18", "2025-06-18", true, true, false, false},
                           {"2025-11-25", "2025-11-25", true, true, false, true},
                           {"1999-01-01", "2025-11-25", true, true, false, true}};
  for (const Row& row : kRows) {
    client_.emplace(place_);
    const Json initialized = client_->Initialize(row.asked);
    EXPECT_EQ(initialized.GetString("protocolVersion").value(), row.spoken);
    EXPECT_NE(initialized.Find("capabilities")->Find("tools"), nullptr);
    EXPECT_THAT(initialized.GetString("instructions").value(), HasSubstr("undo"));
    const Json listed = client_->Ask("tools/list");
    const Json* tool = ToolNamed(listed, "execute_command");
    ASSERT_NE(tool, nullptr);
    EXPECT_EQ(tool->Find("annotations") != nullptr, row.annotations) << row.asked;
    EXPECT_EQ(tool->Find("outputSchema") != nullptr, row.structured) << row.asked;
    const Json status = client_->Call("get_session_status");
    EXPECT_EQ(status.Find("structuredContent") != nullptr, row.structured) << row.asked;
    const int64_t wrong =
        client_->ErrorNumber("tools/call", R"({"name":"undo","arguments":{"force":true}})");
    EXPECT_EQ(wrong, row.faults_as_results ? 0 : -32602) << row.asked;
    client_->SendLine(
        R"([{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"x"},3,{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"list_directory"}}])");
    if (row.batches)
      EXPECT_EQ(client_->Batch().AsArray()->size(), 3u);
    else
      EXPECT_EQ(McpClient::NumberOf(client_->Answer(Json())), -32600);
    EXPECT_EQ(client_->Wait(), 0) << client_->Log();
  }
}

TEST_F(McpProtocol, MC_01_IdsErrorsAndUnknownMethodsFollowJsonRpc) {
  EXPECT_EQ(client_->ErrorNumber("server/discover"), -32601);
  EXPECT_EQ(client_->ErrorNumber("tools/list"), -32600);
  EXPECT_EQ(McpClient::NumberOf(client_->Ask("ping")), 0);
  EXPECT_EQ(client_->ErrorNumber("initialize", "{}"), -32602);
  client_->Initialize();
  EXPECT_EQ(client_->ErrorNumber("initialize", R"({"protocolVersion":"2025-11-25"})"), -32600);
  EXPECT_EQ(client_->ErrorNumber("prompts/list"), -32601);
  EXPECT_EQ(client_->ErrorNumber("tools/call", "[]"), -32602);
  EXPECT_EQ(client_->ErrorNumber("tools/call", "{}"), -32602);
  EXPECT_EQ(client_->ErrorNumber("tools/call", R"({"name":"no_such_tool"})"), -32602);
  EXPECT_EQ(client_->ErrorNumber("tools/call", R"({"name":"undo","arguments":[]})"), -32602);
  EXPECT_EQ(client_->ErrorNumber("tools/list", R"({"cursor":"x"})"), -32602);
  client_->SendLine(R"({"jsonrpc":"2.0","id":"text","method":"ping"})");
  EXPECT_NE(client_->Answer(Json("text")).Find("result"), nullptr);
  client_->SendLine(R"({"jsonrpc":"1.0","id":77,"method":"ping"})");
  EXPECT_EQ(McpClient::NumberOf(client_->Answer(Json(77))), -32600);
  for (const char* line : {R"({"jsonrpc":"2.0","id":{},"method":"ping"})",
                           R"({"jsonrpc":"2.0","id":null,"method":"ping"})", R"("ping")", "[]"}) {
    client_->SendLine(line);
    EXPECT_EQ(McpClient::NumberOf(client_->Answer(Json())), -32600) << line;
  }
  // What has no answer: notifications, known or not, and answers.
  client_->Notify("notifications/unknown");
  client_->Notify("notifications/cancelled", R"({"requestId":12345})");
  client_->SendLine(R"({"jsonrpc":"2.0","id":5,"result":{}})");
  const size_t before = client_->lines().size();
  client_->Ask("ping");
  EXPECT_EQ(client_->lines().size(), before + 1);
}

TEST_F(McpProtocol, WhatIsNoMessageIsRefusedAndTheChannelLivesOn) {
  client_->Initialize();
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  for (const std::string& line :
       {std::string("nonsense"), std::string("{"), std::string("{\"id\":\"\xff\"}"),
        std::string("{\"id\":\"a\0b\"}", 12), std::string("{} {}"), deep,
        std::string(R"({"jsonrpc":"2.0","method":"ping","method":"ping"})")}) {
    client_->SendLine(line);
    EXPECT_EQ(McpClient::NumberOf(client_->Answer(Json())), -32700) << line;
  }
  client_->SendLine(std::string(2 << 20, 'x'));
  EXPECT_EQ(McpClient::NumberOf(client_->Answer(Json())), -32600);
  EXPECT_NE(client_->Ask("ping").Find("result"), nullptr);
  EXPECT_EQ(client_->Wait(), 0) << client_->Log();
}

TEST_F(McpProtocol, MCP_01_TheWorldStartsWithTheFirstToolThatNeedsIt) {
  client_->Initialize();
  client_->Ask("tools/list");
  EXPECT_EQ(client_->Result("get_session_status").GetString("state").value(), "stopped");
  EXPECT_TRUE(ChildrenOf(client_->pid()).empty());
  client_->Result("list_directory");
  EXPECT_FALSE(ChildrenOf(client_->pid()).empty());
  const Json status = client_->Result("get_session_status");
  EXPECT_EQ(status.GetString("state").value(), "idle");
  EXPECT_EQ(status.GetString("network_policy").value(), "disabled");
}

TEST_F(McpProtocol, ToolsSayWhatTheyDoAndNoneForces) {
  client_->Initialize();
  const Json listed = client_->Ask("tools/list");
  EXPECT_EQ(listed.Find("result")->Find("tools")->AsArray()->size(), api::mcp::AllTools().size());
  for (const Json& tool : *listed.Find("result")->Find("tools")->AsArray()) {
    EXPECT_EQ(tool.Find("inputSchema")->GetString("type").value(), "object");
    EXPECT_EQ(tool.Find("outputSchema")->GetString("type").value(), "object");
    const Json* properties = tool.Find("inputSchema")->Find("properties");
    for (const char* never : {"force", "stop_processes", "safeguard_id"})
      EXPECT_EQ(properties->Find(never), nullptr) << WriteJson(tool);
  }
  EXPECT_FALSE(*ToolNamed(listed, "undo")->Find("annotations")->Find("readOnlyHint")->AsBool());
  EXPECT_TRUE(*ToolNamed(listed, "grep")->Find("annotations")->Find("readOnlyHint")->AsBool());
}

// Of a client that names its version in every request.
class McpStateless : public McpProtocol {
 protected:
  static std::string Params(std::string_view more = "", std::string_view version = "2026-07-28",
                            std::string_view capabilities = "{}") {
    return fmt::format(
        R"({{{}"_meta":{{"io.modelcontextprotocol/protocolVersion":"{}","io.modelcontextprotocol/clientCapabilities":{}}}}})",
        more, version, capabilities);
  }
  Json Result(std::string_view method, std::string_view more = "") {
    const Json answer = client_->Ask(method, Params(more));
    const Json* result = answer.Find("result");
    if (result == nullptr) ADD_FAILURE() << WriteJson(answer);
    return result != nullptr ? *result : Json::Object();
  }
};

TEST_F(McpStateless, NothingComesBeforeTheFirstRequest) {
  const Json discovered = Result("server/discover");
  EXPECT_EQ(WriteJson(*discovered.Find("supportedVersions")), R"(["2026-07-28"])");
  EXPECT_NE(discovered.Find("capabilities")->Find("tools"), nullptr);
  EXPECT_THAT(discovered.GetString("instructions").value(), HasSubstr("undo"));
  const Json tools = Result("tools/list");
  EXPECT_EQ(tools.Find("tools")->AsArray()->size(), api::mcp::AllTools().size());
  EXPECT_EQ(tools.GetInt("ttlMs").value(), 0);
  EXPECT_EQ(tools.GetString("cacheScope").value(), "private");
  const Json called =
      Result("tools/call", R"("name":"execute_command","arguments":{"command":"echo hi"},)");
  EXPECT_EQ(called.Find("structuredContent")->GetString("stdout").value(), "hi\n");
  for (const Json& result : {discovered, tools, called}) {
    EXPECT_EQ(result.GetString("resultType").value(), "complete");
    const Json* server = result.Find("_meta")->Find("io.modelcontextprotocol/serverInfo");
    EXPECT_EQ(server->GetString("name").value(), "sandglass");
  }
  EXPECT_EQ(called.Find("ttlMs"), nullptr);
}

TEST_F(McpStateless, WhatIsWrongHasItsNumber) {
  const Json unknown = client_->Ask("tools/list", Params("", "2099-01-01"));
  EXPECT_EQ(McpClient::NumberOf(unknown), -32022);
  EXPECT_EQ(WriteJson(*unknown.Find("error")->Find("data")),
            R"({"supported":["2026-07-28"],"requested":"2099-01-01"})");
  EXPECT_EQ(client_->ErrorNumber("tools/list", Params("", "2026-07-28", "[]")), -32602);
  for (const char* method : {"initialize", "ping", "logging/setLevel", "no/such"})
    EXPECT_EQ(client_->ErrorNumber(method, Params()), -32601) << method;
  EXPECT_EQ(client_->ErrorNumber("tools/call", Params(R"("name":"undo","requestState":"x",)")),
            -32602);
  EXPECT_EQ(client_->ErrorNumber("tools/list"), -32600);
}

TEST_F(McpStateless, BothKindsOfClientsAreServedBySameProgram) {
  client_->Initialize("2025-06-18");
  EXPECT_EQ(Result("tools/list").GetString("resultType").value(), "complete");
  const Json listed = client_->Ask("tools/list");
  EXPECT_EQ(listed.Find("result")->Find("resultType"), nullptr);
}

}  // namespace
}  // namespace sandglass::test
