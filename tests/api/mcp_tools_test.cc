// Each tool once for real, and what a model can run into.
#include <gmock/gmock.h>

#include "tests/api/mcp_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class McpTools : public McpFixture {
 protected:
  void SetUp() override {
    McpFixture::SetUp();
    if (!IsSkipped()) client_->Initialize();
  }
  Json Write(const std::string& path, const std::string& content) {
    return client_->Result("write_file", Json::Object({{"path", path}, {"content", content}}));
  }
};

TEST_F(McpTools, MC_02_MCP_02_ACommandsExitCodeAndOutputArriveUnchanged) {
  const Json result =
      client_->Call("execute_command",
                    Json::Object({{"command", "echo out; echo err >&2; echo x > new; exit 3"}}));
  const Json& structured = *result.Find("structuredContent");
  EXPECT_EQ(structured.GetInt("exit_code").value(), 3);
  EXPECT_EQ(structured.GetString("stdout").value(), "out\n");
  EXPECT_EQ(structured.GetString("stderr").value(), "err\n");
  EXPECT_EQ(structured.GetInt("step_id").value(), 1);
  EXPECT_FALSE(result.GetBool("isError").value());
  EXPECT_THAT(McpClient::TextOf(result), HasSubstr("exit code 3; step 1: 1 created (new)"));
}

TEST_F(McpTools, MC_03_MC_04_MCP_04_AWriteIsAStepOfKindApiThatUndoTakesBack) {
  const TreeSnapshot before = workspace_.Snapshot();
  EXPECT_EQ(Write("keep.txt", "new\n").GetInt("step_id").value(), 1);
  client_->Result("write_file",
                  Json::Object({{"path", "a/b"}, {"content", "x"}, {"create_parents", true}}));
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "new\n");
  const Json history = client_->Result("get_undo_history");
  EXPECT_EQ((*history.Find("steps")->AsArray())[0].GetString("type").value(), "api");
  client_->Result("undo", Json::Object({{"count", 2}}));
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(McpTools, MC_05_AWriteOutsideOfTheRootIsAnErrorAndMakesNoStep) {
  for (const char* path : {"../x", "/etc/passwd", "src/../../x"})
    EXPECT_THAT(client_->Failure("write_file", Json::Object({{"path", path}, {"content", "x"}})),
                HasSubstr("outside_root"));
  EXPECT_EQ(client_->Result("get_undo_history").GetInt("total").value(), 0);
}

TEST_F(McpTools, MCP_03_FilesAreReadByLinesAndBytes) {
  workspace_.WriteFile("lines", "one\ntwo\nthree\n");
  const Json lines = client_->Call(
      "read_file", Json::Object({{"path", "lines"}, {"first_line", 2}, {"line_count", 1}}));
  EXPECT_EQ(lines.Find("structuredContent")->GetString("content").value(), "two\n");
  EXPECT_THAT(McpClient::TextOf(lines), HasSubstr("first_line 3"));
  workspace_.WriteFile("large", std::string(100 << 10, 'x'));
  const Json large = client_->Result("read_file", Json::Object({{"path", "large"}}));
  EXPECT_EQ(large.GetInt("next_offset").value(), 64 << 10);
  EXPECT_THAT(client_->Failure("read_file", Json::Object({{"path", "missing"}})),
              HasSubstr("list_directory"));
}

TEST_F(McpTools, MCP_05_AnEditReplacesOnePlace) {
  const Json edit =
      Json::Object({{"path", "keep.txt"}, {"old_text", "kept"}, {"new_text", "edited"}});
  EXPECT_EQ(client_->Result("edit_file", edit).GetInt("replaced").value(), 1);
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "edited\n");
  EXPECT_THAT(client_->Failure("edit_file", edit), HasSubstr("not_found"));
  client_->Result("undo");
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
}

TEST_F(McpTools, MCP_06_MCP_07_MCP_08_FilesAreListedAndFound) {
  const Json listed = client_->Call("list_directory");
  EXPECT_EQ(listed.Find("structuredContent")->GetInt("total").value(), 2);
  EXPECT_THAT(McpClient::TextOf(listed), HasSubstr("src/\n"));
  EXPECT_EQ(McpClient::TextOf(client_->Call("glob", Json::Object({{"pattern", "**/*.c"}}))),
            "src/main.c\n");
  EXPECT_EQ(McpClient::TextOf(client_->Call("grep", Json::Object({{"pattern", "^int"}}))),
            "src/main.c:1:int main;\n");
  client_->Result("glob", Json::Object({{"pattern", "*"}}));
  client_->Result("grep", Json::Object({{"pattern", "in(t"}, {"literal", true}}));
  EXPECT_THAT(client_->Failure("grep", Json::Object({{"pattern", "("}})),
              HasSubstr("invalid_argument"));
}

TEST_F(McpTools, MCP_09_MCP_10_UndoAndRedoAreExact) {
  const TreeSnapshot before = workspace_.Snapshot();
  Execute("rm -r src; mv keep.txt kept.txt; chmod 600 kept.txt");
  const TreeSnapshot after = workspace_.Snapshot();
  EXPECT_THAT(McpClient::TextOf(client_->Call("undo", Json::Object({{"dry_run", true}}))),
              HasSubstr("nothing was changed"));
  EXPECT_EQ(Diff(after, workspace_.Snapshot()), std::vector<std::string>());
  const Json undone = client_->Result("undo");
  EXPECT_GT(undone.GetInt("total_changes").value(), 0);
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
  client_->Result("redo");
  EXPECT_EQ(Diff(after, workspace_.Snapshot()), std::vector<std::string>());
  EXPECT_THAT(client_->Failure("redo"), HasSubstr("not_found"));
}

TEST_F(McpTools, MCP_11_MCP_12_MCP_13_HistoryDiffAndStatus) {
  Execute("echo more >> keep.txt");
  const Json history = client_->Call("get_undo_history");
  EXPECT_THAT(McpClient::TextOf(history), HasSubstr("echo more >> keep.txt [1 modified]"));
  EXPECT_THAT(McpClient::TextOf(client_->Call("get_step_diff", Json::Object({{"step_id", 1}}))),
              HasSubstr("+more"));
  client_->Result("get_undo_history");
  client_->Result("get_step_diff", Json::Object({{"step_id", 1}}));
  EXPECT_THAT(client_->Failure("get_step_diff", Json::Object({{"step_id", 99}})),
              HasSubstr("get_undo_history"));
  EXPECT_EQ(client_->Result("get_session_status").GetString("state").value(), "idle");
}

TEST_F(McpTools, ALongOutputIsCutInItsMiddleAndSaysSo) {
  const Json result = client_->Call(
      "execute_command",
      Json::Object({{"command", "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo last"}}));
  const Json& structured = *result.Find("structuredContent");
  const std::string out = structured.GetString("stdout").value();
  EXPECT_LT(out.size(), 60'000u);
  EXPECT_TRUE(out.starts_with("first\n"));
  EXPECT_TRUE(out.ends_with("last\n"));
  EXPECT_GT(structured.GetInt("left_out_bytes").value(), 4'900'000);
  EXPECT_THAT(McpClient::TextOf(result), HasSubstr("read_file"));
}

TEST_F(McpTools, ProgressIsToldToWhoAsksForIt) {
  const Json id = client_->Send(
      "tools/call",
      McpClient::CallParams("execute_command", Json::Object({{"command", "echo half; sleep 1.5"}}),
                            Json("token")));
  const Json first = *client_->Notification("notifications/progress").Find("params");
  const Json second = *client_->Notification("notifications/progress").Find("params");
  EXPECT_EQ(first.GetString("progressToken").value(), "token");
  EXPECT_LT(first.GetInt("progress").value(), second.GetInt("progress").value());
  EXPECT_EQ(second.GetString("message").value(), "half");
  EXPECT_NE(client_->Answer(id).Find("result"), nullptr);
}

TEST_F(McpTools, WhatIsCancelledEndsAndHasNoAnswer) {
  const Json id = client_->Send(
      "tools/call", McpClient::CallParams("execute_command",
                                          Json::Object({{"command", "touch began; sleep 100"}})));
  WaitUntilExists("began");
  EXPECT_EQ(client_->Result("get_session_status").GetString("state").value(), "running");
  EXPECT_THAT(client_->Failure("execute_command", Json::Object({{"command", "true"}})),
              HasSubstr("command_running"));
  client_->Notify("notifications/cancelled",
                  fmt::format(R"({{"requestId":{},"reason":"enough"}})", WriteJson(id)));
  for (int i = 0; i < 500; ++i) {
    if (client_->Result("get_session_status").GetString("state").value() == "idle") break;
    ::usleep(10'000);
  }
  EXPECT_EQ(Execute("echo on").GetString("stdout").value(), "on\n");
  for (const std::string& line : client_->lines())
    EXPECT_THAT(line, Not(HasSubstr(fmt::format(R"("id":{},)", WriteJson(id)))));
  client_->Result("undo");
  EXPECT_FALSE(workspace_.Exists("began"));
}

TEST_F(McpTools, APersonsEditIsAConflictThatNoToolCrosses) {
  Execute("echo mine > keep.txt");
  workspace_.WriteFile("keep.txt", "a person's\n");
  const std::string text = client_->Failure("undo");
  EXPECT_THAT(text, HasSubstr("conflict"));
  EXPECT_THAT(text, HasSubstr("keep.txt"));
  EXPECT_THAT(text, HasSubstr("Tell the user"));
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "a person's\n");
  EXPECT_THAT(client_->Failure("undo", Json::Object({{"force", true}})), HasSubstr("force"));
}

TEST_F(McpTools, AWorldThatDiedIsStartedAgain) {
  Execute("true");
  for (const pid_t child : ChildrenOf(client_->pid())) ::kill(child, SIGKILL);
  std::string first;
  for (int i = 0; i < 300; ++i) {  // until that is noticed
    const Json result = client_->Call("execute_command", Json::Object({{"command", "echo on"}}));
    if (!result.GetBool("isError").value()) break;
    first = McpClient::TextOf(result);
    ::usleep(10'000);
  }
  EXPECT_EQ(Execute("echo on").GetString("stdout").value(), "on\n") << first;
}

TEST_F(McpTools, TheEndOfInputLetsACommandFinishAndEndsTheWorld) {
  const Json id = client_->Send(
      "tools/call", McpClient::CallParams("execute_command",
                                          Json::Object({{"command", "sleep 0.3; echo x > late"}})));
  EXPECT_EQ(client_->Wait(), 0) << client_->Log();
  EXPECT_EQ(workspace_.ReadFile("late"), "x\n");
  EXPECT_NE(client_->Answer(id).Find("result"), nullptr);
}

}  // namespace
}  // namespace sandglass::test
