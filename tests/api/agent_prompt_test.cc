// agent.prompt: any program is the coding agent, and runs in the world like a command.
#include <gmock/gmock.h>

#include "tests/api/serve_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;

class AgentPrompt : public ServeFixture {
 protected:
  void Configure(std::string_view command) {
    WriteConfig(fmt::format("[agent]\ncommand = {}\n", command));
    Start();
  }
  std::string Said() {
    std::string text;
    while (const auto event = client_->TakeEvent("event.agent_output"))
      text += event->Find("payload")->GetString("data").value();
    return text;
  }
};

TEST_F(AgentPrompt, ItsInputIsThePromptAndWhatItWritesIsTheAgentsOutput) {
  const TreeSnapshot before = workspace_.Snapshot();
  Configure(R"(["sh", "-c", "read line; echo working on: $line; cat; echo \"$line\" >keep.txt"])");
  const Json done = client_->Result("agent.prompt", R"({"prompt":"make it so\nand more\n"})");
  EXPECT_EQ(done.GetInt("exit_code").value(), 0);
  EXPECT_EQ(Said(), "working on: make it so\nand more\n");
  EXPECT_FALSE(client_->HasEvent("event.terminal_output"));
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "make it so\n");
  const Json history = client_->Result("undo.history");
  EXPECT_EQ(history.Find("steps")->AsArray()->front().GetString("command").value(),
            "agent: make it so");
  client_->Result("undo.rollback");
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(AgentPrompt, ThePromptMayStandInItsWordsAndIsNoShellsBusiness) {
  Configure(R"(["printf", "%s|", "--ask", "{prompt}"])");
  client_->Result("agent.prompt", R"_({"prompt":"a b; rm -r src $(id)"})_");
  EXPECT_EQ(Said(), "--ask|a b; rm -r src $(id)|");
  EXPECT_TRUE(workspace_.Exists("src/main.c"));
}

TEST_F(AgentPrompt, ItCanBeCancelledAndItsFailureIsAnAnswer) {
  Configure(R"(["sh", "-c", "echo begun; read x; echo $x >begun; sleep 100"])");
  const std::string id = client_->Send("agent.prompt", R"({"prompt":"go"})");
  WaitUntilExists("begun");
  EXPECT_EQ(client_->Code("agent.execute", R"({"command":"true"})"), "command_running");
  client_->Result("agent.cancel");
  const Json response = client_->Response(id);
  EXPECT_EQ(response.Find("payload")->GetString("ending").value(), "cancelled");
  client_->Result("session.stop");
  Configure(R"(["/nonexistent/agent"])");
  const Json missing = client_->Result("agent.prompt", R"({"prompt":"go"})");
  EXPECT_EQ(missing.GetString("ending").value(), "not_started");
}

TEST_F(AgentPrompt, WithoutAConfiguredAgentItSaysWhatToDo) {
  Start();
  const Json response = client_->Ask("agent.prompt", R"({"prompt":"hello"})");
  EXPECT_EQ(JsonlClient::CodeOf(response), "unsupported");
  EXPECT_THAT(response.Find("error")->GetString("message").value(), HasSubstr("[agent]"));
}

TEST_F(AgentPrompt, ALongPromptArrivesWhole) {
  Configure(R"(["wc", "-c"])");
  client_->Result("agent.prompt", fmt::format(R"({{"prompt":"{}"}})", std::string(500'000, 'x')));
  EXPECT_EQ(Said(), "500000\n");
}

}  // namespace
}  // namespace sandglass::test
