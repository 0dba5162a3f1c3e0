// AO-01..15: one life of each of the founding fifteen operations, from the request to what it leaves on disk and in the other operations'
// answers (undo.discard: serve_undo_test.cc). What is refused has its own files.
#include <gmock/gmock.h>

#include "tests/api/serve_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Orchestrator : public ServeFixture {
 protected:
  std::string State() { return client_->Result("session.status").GetString("state").value(); }
  int64_t Steps() { return client_->Result("undo.history").GetInt("total").value(); }
};

TEST_F(Orchestrator, AO_01_StartMakesAWorldOnTheWorkingDirectory) {
  EXPECT_EQ(State(), "stopped");
  EXPECT_EQ(Start().GetString("state").value(), "idle");
  EXPECT_GT(Bridge(), 0);
  EXPECT_EQ(client_->Code("session.start", StartPayload()), "already_started");
}

TEST_F(Orchestrator, AO_02_StopEndsTheWorldAndKeepsTheHistory) {
  Start();
  Execute("echo x >made");
  EXPECT_EQ(client_->Result("session.stop").GetString("state").value(), "stopped");
  EXPECT_LT(Bridge(), 0);
  Start();
  EXPECT_EQ(Steps(), 1);
  client_->Result("undo.rollback");
  EXPECT_FALSE(workspace_.Exists("made"));
}

TEST_F(Orchestrator, AO_03_ResetForgetsTheWorldsOwnFilesAndNothingElse) {
  Start();
  Execute("echo x >made; echo y >/tmp/own");
  EXPECT_EQ(client_->Result("session.reset").GetString("state").value(), "idle");
  EXPECT_NE(Execute("cat /tmp/own").GetInt("exit_code").value(), 0);
  EXPECT_EQ(workspace_.ReadFile("made"), "x\n");
}

TEST_F(Orchestrator, AO_04_StatusTellsWhatRuns) {
  Start();
  const std::string id = SendExecute("echo x >made; while [ ! -e go ]; do sleep 0.02; done");
  WaitUntilExists("made");
  const Json status = client_->Result("session.status");
  EXPECT_EQ(status.GetString("state").value(), "running");
  EXPECT_EQ(status.Find("command")->GetInt("step_id").value(), 1);
  workspace_.WriteFile("go", "");
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
  EXPECT_EQ(State(), "idle");
}

TEST_F(Orchestrator, AO_05_ExecuteRunsACommandAsAStep) {
  Start();
  const std::string id = SendExecute("echo out; echo err >&2; echo x >made; exit 3");
  const Json done = *client_->Response(id).Find("payload");
  EXPECT_EQ(done.GetInt("exit_code").value(), 3);
  EXPECT_EQ(done.GetInt("step_id").value(), 1);
  EXPECT_THAT(Texts(done.Find("affected_paths")), ElementsAre("made"));
  EXPECT_THAT(client_->Output(id), HasSubstr("out\n"));
  EXPECT_THAT(client_->Output(id), HasSubstr("err\n"));
  EXPECT_TRUE(client_->HasEvent("event.step_completed"));
}

TEST_F(Orchestrator, AO_06_PromptRunsTheConfiguredAgent) {
  WriteConfig("[agent]\ncommand = [\"sh\", \"-c\", \"cat >prompt.txt\"]\n");
  Start();
  EXPECT_EQ(client_->Result("agent.prompt", R"({"prompt":"do it"})").GetInt("exit_code").value(),
            0);
  EXPECT_THAT(workspace_.ReadFile("prompt.txt"), HasSubstr("do it"));
  client_->Result("undo.rollback");
  EXPECT_FALSE(workspace_.Exists("prompt.txt"));
}

TEST_F(Orchestrator, AO_07_ListShowsAFolder) {
  Start();
  const Json list = client_->Result("fs.list", R"({"path":"src"})");
  ASSERT_EQ(list.GetInt("total").value(), 1);
  EXPECT_EQ(list.Find("entries")->AsArray()->front().GetString("name").value(), "main.c");
}

TEST_F(Orchestrator, AO_08_ReadGivesAFile) {
  Start();
  const Json read = client_->Result("fs.read", R"({"path":"src/main.c"})");
  EXPECT_EQ(read.GetString("content").value(), "int main;\n");
  EXPECT_EQ(read.GetInt("size").value(), 10);
}

TEST_F(Orchestrator, AO_09_StatusOfTheFileSystem) {
  Start();
  const Json status = client_->Result("fs.status");
  EXPECT_FALSE(status.GetString("backend").value().empty());
  EXPECT_THAT(Texts(status.Find("warnings")), IsEmpty());
}

TEST_F(Orchestrator, AO_10_RollbackTakesSeveralStepsBack) {
  Start();
  const TreeSnapshot before = workspace_.Snapshot();
  for (const char* command : {"echo 1 >a", "mv a b; chmod 600 b", "rm -r src b"}) Execute(command);
  const Json report = client_->Result("undo.rollback", R"({"count":3})");
  EXPECT_EQ(report.Find("steps")->AsArray()->size(), 3u);
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(Orchestrator, AO_11_HistoryListsTheStepsInOrder) {
  Start();
  Execute("echo 1 >a");
  Execute("echo 2 >b");
  const Json history = client_->Result("undo.history");
  std::vector<std::string> commands;
  for (const Json& step : *history.Find("steps")->AsArray())
    commands.push_back(step.GetString("command").value());
  EXPECT_THAT(commands, ElementsAre("echo 1 >a", "echo 2 >b"));
}

TEST_F(Orchestrator, AO_12_ConfigureLimitsTheLog) {
  Start();
  client_->Result("undo.configure", R"({"max_step_count":2})");
  for (const char* command : {"echo 1 >a", "echo 2 >b", "echo 3 >c"}) Execute(command);
  for (int i = 0; i < 100 && Steps() > 2; ++i) ::usleep(20'000);
  EXPECT_EQ(Steps(), 2);
}

TEST_F(Orchestrator, AO_14_ConfiguredSafeguardsAsk) {
  for (int i = 0; i < 9; ++i) workspace_.WriteFile(fmt::format("old/{}", i), "x");
  Start();
  client_->Result("safeguard.configure", R"({"delete_threshold":null})");
  Execute("rm -r old");
  client_->Result("undo.rollback");
  client_->Result("safeguard.configure", R"({"delete_threshold":3})");
  const std::string id = SendExecute("rm -r old");
  const Json asked = *client_->Event("event.safeguard_triggered").Find("payload");
  client_->Result("safeguard.confirm",
                  WriteJson(Json::Object({{"safeguard_id", asked.GetString("safeguard_id").value()},
                                          {"action", "allow"}})));
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
}

TEST_F(Orchestrator, AO_15_ConfirmDeniesAndNothingOfTheStepRemains) {
  for (int i = 0; i < 9; ++i) workspace_.WriteFile(fmt::format("old/{}", i), "x");
  const TreeSnapshot before = workspace_.Snapshot();
  Start();
  client_->Result("safeguard.configure", R"({"delete_threshold":3})");
  const std::string id = SendExecute("echo new >made; rm -r old");
  const Json asked = *client_->Event("event.safeguard_triggered").Find("payload");
  client_->Result("safeguard.confirm",
                  WriteJson(Json::Object({{"safeguard_id", asked.GetString("safeguard_id").value()},
                                          {"action", "deny"}})));
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(id)), "denied");
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
  EXPECT_EQ(Steps(), 0);
}

}  // namespace
}  // namespace sandglass::test
