// History, undo, redo, restore, limits and versions over the interface for programs.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/api/serve_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ServeUndo = ServeFixture;

TEST_F(ServeUndo, RollbackAndRedoAreExact) {
  const TreeSnapshot before = workspace_.Snapshot();
  Start();
  Execute("rm -r src; echo x >>keep.txt; mkdir d; echo y >d/f");
  const TreeSnapshot after = workspace_.Snapshot();
  EXPECT_EQ(client_->Result("undo.rollback", R"({"dry_run":true})").GetInt("total_changes").value(),
            5);
  client_->Result("undo.rollback");
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
  EXPECT_EQ(client_->Result("undo.history").GetInt("redo_steps").value(), 1);
  client_->Result("undo.redo");
  EXPECT_EQ(Diff(after, workspace_.Snapshot()), std::vector<std::string>());
  EXPECT_EQ(client_->Code("undo.rollback", R"({"count":0})"), "invalid_argument");
}

TEST_F(ServeUndo, HistoryChangesAndDiff) {
  Start();
  Execute("echo two >>keep.txt");
  Execute("for i in $(seq 150); do echo $i >f$i; done");
  const Json completed = client_->Event("event.step_completed");
  const Json history = client_->Result("undo.history", R"({"limit":1})");
  EXPECT_EQ(history.GetInt("total").value(), 2);
  const Json& newest = history.Find("steps")->AsArray()->front();
  EXPECT_EQ(newest.GetInt("step_id").value(), 2);
  EXPECT_EQ(newest.GetString("type").value(), "command");
  EXPECT_EQ(newest.GetInt("total_paths").value(), 150);
  EXPECT_EQ(newest.Find("affected_paths")->AsArray()->size(), 20u);
  const Json page = client_->Result("undo.changes", R"({"step_id":2,"offset":100,"limit":100})");
  EXPECT_EQ(page.GetInt("total").value(), 150);
  EXPECT_EQ(page.Find("changes")->AsArray()->size(), 50u);
  EXPECT_THAT(client_->Result("undo.diff", R"({"step_id":1})").GetString("diff").value(),
              HasSubstr("+two"));
  EXPECT_EQ(client_->Code("undo.diff", R"({"step_id":99})"), "not_found");
  const Json big = client_->Event("event.step_completed");
  EXPECT_EQ(big.Find("payload")->Find("affected_paths")->AsArray()->size(), 100u);
}

TEST_F(ServeUndo, AStepThatChangedNothingIsThereAsSoonAsItIsTold) {
  Start();
  for (int64_t step = 1; step <= 3; ++step) {
    EXPECT_EQ(Execute("true").GetInt("step_id").value(), step);
    const Json history = client_->Result("undo.history", R"({"limit":1})");
    EXPECT_EQ(history.GetInt("total").value(), step);
    EXPECT_EQ(history.Find("steps")->AsArray()->back().GetInt("step_id").value(), step);
  }
  Execute("true");
  EXPECT_EQ(client_->Result("undo.changes", R"({"step_id":4})").GetInt("total").value(), 0);
  Execute("true");
  EXPECT_EQ(client_->Result("undo.diff", R"({"step_id":5})").GetInt("total_bytes").value(), 0);
}

TEST_F(ServeUndo, SinglePathsComeBack) {
  Start();
  Execute("echo x >keep.txt; echo y >src/main.c");
  client_->Result("undo.restore", R"({"step_id":1,"paths":["keep.txt"]})");
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
  EXPECT_EQ(workspace_.ReadFile("src/main.c"), "y\n");
  EXPECT_EQ(client_->Code("undo.restore", R"({"step_id":1,"paths":["../x"]})"), "outside_root");
}

TEST_F(ServeUndo, EB_02_EB_03_AnEditByAPersonIsNotLostUnasked) {
  Start();
  Execute("echo x >keep.txt");
  workspace_.WriteFile("keep.txt", "a person's\n");
  const Json refused = client_->Ask("undo.rollback");
  EXPECT_EQ(JsonlClient::CodeOf(refused), "conflict");
  const Json& conflict = refused.Find("error")->Find("data")->Find("conflicts")->AsArray()->front();
  EXPECT_EQ(conflict.GetString("path").value(), "keep.txt");
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "a person's\n");
  const Json forced = client_->Result("undo.rollback", R"({"force":true})");
  EXPECT_EQ(forced.Find("conflicts")->AsArray()->front().GetString("path").value(), "keep.txt");
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
}

TEST_F(ServeUndo, EB_04_EB_05_HistoryShowsABarrierForAPersonsEditAndNoneForOurs) {
  Start();
  Execute("echo x >keep.txt");
  Execute("echo y >keep.txt");
  EXPECT_EQ(client_->Result("undo.history").GetInt("total").value(), 2);
  workspace_.WriteFile("keep.txt", "a person's\n");
  Execute("echo z >>keep.txt");
  const Json history = client_->Result("undo.history");
  const Json& barrier = (*history.Find("steps")->AsArray())[2];
  EXPECT_EQ(barrier.GetString("type").value(), "barrier");
  EXPECT_THAT(Texts(barrier.Find("affected_paths")), ElementsAre("keep.txt"));
  EXPECT_FALSE(barrier.GetString("timestamp").value().empty());
}

class ServeConfigured : public ServeUndo {
 protected:
  // A person edits a file between two commands; whether the history has a barrier then.
  bool EditMakesABarrier() {
    Execute("echo x >keep.txt");
    workspace_.WriteFile("keep.txt", "a person's\n");
    Execute("echo z >>keep.txt");
    const Json history = client_->Result("undo.history", R"({"limit":2})");
    return history.Find("steps")->AsArray()->front().GetString("type").value() == "barrier";
  }
  void WriteUserConfig(std::string_view text) const {
    std::ofstream(place_.state + "/sandglass.toml") << text;
  }
};

TEST_F(ServeConfigured, WhatTheClientChoosesCountsAlsoAfterAConfiguration) {
  Start(R"(,"external_modifications":"warn")");
  EXPECT_FALSE(EditMakesABarrier());
  client_->Result("undo.configure", R"({"max_step_count":50})");
  EXPECT_FALSE(EditMakesABarrier());
  client_->Result("session.stop");
  Start(R"(,"external_modifications":"barrier")");
  EXPECT_TRUE(EditMakesABarrier());
  client_->Result("undo.configure", R"({"max_step_count":50})");
  EXPECT_TRUE(EditMakesABarrier());
}

TEST_F(ServeConfigured, WhatTheUsersFileSaysCountsUnlessTheClientChooses) {
  WriteUserConfig("[external_modifications]\npolicy = \"warn\"\n");
  Start();
  EXPECT_FALSE(EditMakesABarrier());
  client_->Result("session.stop");
  Start(R"(,"external_modifications":"barrier")");
  EXPECT_TRUE(EditMakesABarrier());
}

TEST_F(ServeUndo, UI_18_EvictionIsAWarning) {
  Start();
  client_->Result("undo.configure", R"({"max_step_count":2})");
  for (int i = 0; i < 3; ++i) Execute(fmt::format("echo {} >f{}", i, i));
  EXPECT_THAT(client_->Event("event.warning").Find("payload")->GetString("message").value(),
              HasSubstr("cannot be undone any more"));
  EXPECT_EQ(client_->Result("undo.history").GetInt("total").value(), 2);
}

TEST_F(ServeConfigured, ALimitThatIsNotGivenStaysAsTheUsersFileSays) {
  WriteUserConfig("[undo]\nmax_step_count = 2\n");
  client_->Result("undo.configure", R"({"max_log_size_bytes":1000000000})");
  Start();
  client_->Result("undo.configure", R"({"max_single_step_size_bytes":100000000})");
  for (int i = 0; i < 4; ++i) Execute(fmt::format("echo {} >f{}", i, i));
  EXPECT_EQ(client_->Result("undo.history").GetInt("total").value(), 2);
}

TEST_F(ServeUndo, UL_04_UL_05_AO_13_AnUndoLogOfAnotherVersionMustBeDiscardedFirst) {
  Start();
  Execute("echo x >keep.txt");
  client_->Result("session.stop");
  std::string version;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place_.state)) {
    if (entry.path().filename() == "version") version = entry.path();
  }
  ASSERT_FALSE(version.empty());
  std::ofstream(version) << "999\n";
  EXPECT_EQ(Start().GetString("state").value(), "undo_unavailable");
  client_->Event("event.undo_version_mismatch");
  EXPECT_EQ(client_->Code("agent.execute", R"({"command":"true"})"), "undo_unavailable");
  EXPECT_EQ(client_->Code("undo.rollback"), "undo_unavailable");
  EXPECT_EQ(client_->Result("undo.discard").GetString("state").value(), "idle");
  EXPECT_EQ(client_->Result("undo.history").GetInt("total").value(), 0);
  Execute("echo y >keep.txt");
  client_->Result("undo.rollback");
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "x\n");
  EXPECT_EQ(client_->Code("undo.discard"), "conflict");
}

// What is new needs no copy, so the limit of a step is not reached by it: it stays protected, and nobody waits for it.
TEST_F(ServeUndo, DOS_01_EndlessNewFilesCostTheLogLittleAndTheProgramStaysResponsive) {
  const TreeSnapshot before = workspace_.Snapshot();
  Start();
  client_->Result("undo.configure", R"({"max_single_step_size_bytes":65536})");
  const std::string id =
      SendExecute("mkdir many; for i in $(seq 3000); do echo $i$i$i$i$i$i$i$i >many/$i; done");
  WaitUntilExists("many/100");
  EXPECT_EQ(client_->Result("session.status").GetString("state").value(), "running");
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
  const Json history = client_->Result("undo.history");
  EXPECT_TRUE(history.Find("steps")->AsArray()->back().GetBool("protected").value());
  client_->Result("undo.rollback");
  EXPECT_EQ(Diff(before, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeUndo, OtherProgramsMayAskAnIdleSession) {
  Start();
  Execute("echo x >keep.txt");
  const pid_t pid = MustCall(::fork(), "fork");
  if (pid == 0) {
    ::setenv("SANDGLASS_HOME", place_.state.c_str(), 1);
    if (::chdir(workspace_.project().c_str()) != 0 ||
        ::freopen("/dev/null", "w", stdout) == nullptr)
      ::_exit(99);
    ::execl(SANDGLASS_BINARY, SANDGLASS_BINARY, "undo", nullptr);
    ::_exit(99);
  }
  int status = -1;
  MustCall(::waitpid(pid, &status, 0), "waitpid");
  EXPECT_EQ(status, 0);
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
}

TEST_F(ServeUndo, AProcessThatACommandLeftBehindCanBeEndedForAnUndo) {
  Start();
  const Json done =
      Execute("exec 3>log; sh -c 'while :; do echo x >&3; sleep 0.1; done' & echo y >keep.txt");
  EXPECT_EQ(done.GetInt("exit_code").value(), 0);
  // What it wrote after the command's own step is a step too, or several.
  constexpr int kMostSteps = 10;
  for (int i = 0; i < kMostSteps && workspace_.ReadFile("keep.txt") == "y\n"; ++i)
    client_->Result("undo.rollback", R"({"stop_processes":true})");
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
}

TEST_F(ServeUndo, AnUndoThatWaitsIsAnsweredWhenTheBridgeDies) {
  Start();
  const std::string command = SendExecute("trap '' TERM; echo x >keep.txt; touch begun; sleep 60");
  WaitUntilExists("begun");
  const std::string waits = client_->Send("undo.rollback", R"({"stop_processes":true})");
  client_->Result("session.status");  // so it waits
  MustCall(::kill(Bridge(), SIGKILL), "kill the bridge");
  EXPECT_EQ(client_->Response(waits).GetString("status").value(), "error");
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(command)), "session_lost");
}

TEST_F(ServeUndo, AnUndoThatWaitsForWhatWasLeftBehindIsAnsweredWhenTheBridgeDies) {
  Start();
  Execute("exec 3>log; (trap '' TERM; while :; do echo x >&3; sleep 0.1; done) & echo y >keep.txt");
  const std::string waits = client_->Send("undo.rollback", R"({"stop_processes":true})");
  client_->Result("session.status");  // so it waits
  MustCall(::kill(Bridge(), SIGKILL), "kill the bridge");
  EXPECT_EQ(client_->Response(waits).GetString("status").value(), "error");
}

}  // namespace
}  // namespace sandglass::test
