// Starts, ends, crashes.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/api/serve_fixture.h"

namespace sandglass::test {
namespace {

using ServeLifecycle = ServeFixture;

TEST_F(ServeLifecycle, SL_01_AnInvalidFolderIsAStructuredError) {
  EXPECT_EQ(client_->Code("session.start", R"({"working_directories":[{"path":"/no/such"}]})"),
            "not_found");
  EXPECT_EQ(
      client_->Code("session.start", fmt::format(R"({{"working_directories":[{{"path":"{}"}}]}})",
                                                 workspace_.Path("keep.txt"))),
      "invalid_argument");
  EXPECT_EQ(client_->Code("session.start", R"({"working_directories":[{"path":"/"}]})"), "denied");
  Start();
}

TEST_F(ServeLifecycle, SL_02_SeveralFolders) {
  const std::string other = workspace_.root() + "/other", fixed = workspace_.root() + "/fixed";
  MustCall(::mkdir(other.c_str(), 0755), other);
  MustCall(::mkdir(fixed.c_str(), 0755), fixed);
  const Json status = client_->Result(
      "session.start",
      fmt::format(R"({{"working_directories":[{{"path":"{}"}},{{"path":"{}","label":"lib"}},)"
                  R"({{"path":"{}","access":"read_only"}}]}})",
                  workspace_.project(), other, fixed));
  const Json::Items& shown = *status.Find("working_directories")->AsArray();
  ASSERT_EQ(shown.size(), 3u);
  EXPECT_EQ(shown[1].GetString("mount_tag").value(), "working1");
  const Json done = Execute(fmt::format("echo a >a; echo b >{}/b; ! touch {}/c", other, fixed));
  EXPECT_EQ(done.GetInt("exit_code").value(), 0);
  EXPECT_EQ(Texts(done.Find("affected_paths")), std::vector<std::string>{"a"});
  EXPECT_EQ(Texts((*done.Find("directories")->AsArray())[1].Find("affected_paths")),
            std::vector<std::string>{"b"});
  client_->Result("undo.rollback", R"({"directory":"lib"})");
  EXPECT_TRUE(workspace_.Exists("a"));
  EXPECT_FALSE(std::filesystem::exists(other + "/b"));
  EXPECT_EQ(client_->Code("undo.rollback", R"({"directory":2})"), "denied");
  EXPECT_EQ(client_->Code("fs.write", R"({"directory":2,"path":"x","content":""})"), "denied");
  EXPECT_EQ(client_->Code("fs.list", R"({"directory":3})"), "not_found");
  client_->Result("fs.list", R"({"directory":2})");
}

TEST_F(ServeLifecycle, SL_03_SL_04_SL_05_WhatAWorldKeeps) {
  Start();
  Execute("echo mine >~/note; cat ~/note");
  client_->Result("session.stop");
  Start();
  EXPECT_EQ(Execute("test -e ~/note").GetInt("exit_code").value(), 0) << "SL-03";
  client_->Result("session.reset");
  EXPECT_EQ(Execute("test -e ~/note").GetInt("exit_code").value(), 1) << "SL-05";
  client_->Result("session.stop");
  Start(R"(,"vm_mode":"ephemeral")");
  Execute("echo mine >~/note");
  client_->Result("session.stop");
  Start(R"(,"vm_mode":"ephemeral")");
  EXPECT_EQ(Execute("test -e ~/note").GetInt("exit_code").value(), 1) << "SL-04";
}

// As of a machine: what is to be the world's first process is none, or ends at once.
TEST_F(ServeLifecycle, SL_06_AWorldThatDoesNotStartIsAnErrorEventAndNoHang) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(workspace_.root()) / "broken";
  fs::create_directories(folder);
  fs::copy_file(SANDGLASS_BINARY, folder / "sandglass");
  place_.program = folder / "sandglass";
  Restart();
  EXPECT_EQ(client_->Code("session.start", StartPayload()), "not_found");
  EXPECT_EQ(client_->Result("session.status").GetString("state").value(), "stopped");

  fs::copy_file("/bin/false", folder / "sandglass-shim");
  client_->Ask("session.start", StartPayload());
  EXPECT_EQ(client_->Event("event.error").Find("payload")->GetString("code").value(),
            "session_lost");
  EXPECT_EQ(client_->Result("session.status").GetString("state").value(), "error");
  EXPECT_EQ(client_->Code("agent.execute", R"({"command":"true"})"), "session_lost");

  fs::remove(folder / "sandglass-shim");
  fs::copy_file(fs::path(SANDGLASS_BINARY).parent_path() / "sandglass-shim",
                folder / "sandglass-shim");
  Start();
  EXPECT_EQ(Execute("true").GetInt("exit_code").value(), 0);
}

TEST_F(ServeLifecycle, SL_07_AWorldThatDiesIsAnErrorStateUntilTheNextStart) {
  Start();
  const std::string id = SendExecute("touch begun; sleep 60");
  WaitUntilExists("begun");
  MustCall(::kill(Bridge(), SIGKILL), "kill the bridge");
  EXPECT_EQ(client_->Event("event.error").Find("payload")->GetString("code").value(),
            "session_lost");
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(id)), "session_lost");
  EXPECT_EQ(client_->Result("session.status").GetString("state").value(), "error");
  EXPECT_EQ(client_->Code("fs.list"), "session_lost");
  Start();
  const Json recovery = client_->Event("event.recovery");
  EXPECT_EQ(recovery.Find("payload")->GetInt("step_id").value(), 1);
  EXPECT_EQ(recovery.Find("payload")->GetInt("restored_paths").value(), 1);
  EXPECT_FALSE(workspace_.Exists("begun"));
  EXPECT_EQ(Execute("true").GetInt("exit_code").value(), 0);
}

TEST_F(ServeLifecycle, AWorldThatIsKilledUnderACommandIsALostSession) {
  Start();
  const std::string id = SendExecute("touch begun; sleep 60");
  WaitUntilExists("begun");
  for (const pid_t child : ChildrenOf(client_->pid()))
    if (child != Bridge()) MustCall(::kill(child, SIGKILL), "kill the world");
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(id)), "session_lost");
  EXPECT_EQ(client_->Result("session.status").GetString("state").value(), "error");
}

TEST_F(ServeLifecycle, AnIdleWorldThatDiesIsNoticed) {
  Start();
  MustCall(::kill(Bridge(), SIGKILL), "kill the bridge");
  client_->Event("event.error");
  client_->Result("session.stop");
  Start();
}

TEST_F(ServeLifecycle, SL_08_AfterTheStopNothingIsLeft) {
  Start();
  Execute("setsid sleep 4711 >/dev/null 2>&1 & echo started");
  client_->Result("session.stop");
  EXPECT_THAT(ChildrenOf(client_->pid()), ::testing::IsEmpty());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place_.state))
    EXPECT_FALSE(entry.is_socket()) << entry.path();
  EXPECT_EQ(client_->Wait(), 0);
}

TEST_F(ServeLifecycle, CR_04_AStepThatWasInterruptedIsRolledBackAndTold) {
  Start();
  const TreeSnapshot before = workspace_.Snapshot();
  SendExecute("rm keep.txt; touch begun; sleep 60");
  WaitUntilExists("begun");
  MustCall(::kill(client_->pid(), SIGKILL), "kill");
  Restart();
  Start();
  const Json recovery = client_->Event("event.recovery");
  EXPECT_EQ(recovery.Find("payload")->GetInt("step_id").value(), 1);
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeLifecycle, TheEndOfInputLetsACommandEnd) {
  Start();
  const std::string id = SendExecute("sleep 1; echo done >done");
  client_->CloseInput();
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
  EXPECT_EQ(client_->Wait(), 0);
  EXPECT_EQ(workspace_.ReadFile("done"), "done\n");
}

TEST_F(ServeLifecycle, SigtermEndsTheCommandAndClosesItsStep) {
  Start();
  const std::string id = SendExecute("touch begun; sleep 60");
  WaitUntilExists("begun");
  MustCall(::kill(client_->pid(), SIGTERM), "kill");
  EXPECT_EQ(client_->Response(id).Find("payload")->GetString("ending").value(), "cancelled");
  EXPECT_EQ(client_->Wait(), 0);
  Restart();
  Start();
  client_->Result("undo.rollback");
  EXPECT_FALSE(workspace_.Exists("begun"));
}

TEST_F(ServeLifecycle, AClientThatIsGoneLeavesNothingBehind) {
  Start();
  SendExecute("touch begun; sleep 60");
  WaitUntilExists("begun");
  client_->CloseOutput();
  EXPECT_EQ(client_->Wait(), 0);
  Restart();
  Start();
  EXPECT_FALSE(client_->HasEvent("event.recovery"));
  EXPECT_EQ(client_->Result("undo.history").GetInt("total").value(), 1);
}

TEST_F(ServeLifecycle, AnotherSessionOnTheProjectIsRefused) {
  Start();
  JsonlClient second(place_);
  EXPECT_EQ(second.Code("session.start", StartPayload()), "locked");
}

}  // namespace
}  // namespace sandglass::test
