// Safeguards over the interface for programs: who answers, and what becomes of the step.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/api/serve_fixture.h"

namespace sandglass::test {
namespace {

class ServeSafeguards : public ServeFixture {
 protected:
  void SetUp() override {
    ServeFixture::SetUp();
    if (IsSkipped()) return;
    for (int i = 0; i < 20; ++i) workspace_.WriteFile(fmt::format("old/{:02}", i), "x");
    before_ = workspace_.Snapshot();
    Start();
  }
  size_t Left() {
    return static_cast<size_t>(
        client_->Result("fs.list", R"({"path":"old"})").GetInt("total").value());
  }

  TreeSnapshot before_;
};

TEST_F(ServeSafeguards, SG_01_SG_02_SG_09_ItAsksBeforeTheDeletionThatReachesTheThreshold) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  const std::string id = SendExecute("rm -r old; echo done >done");
  const Json triggered = client_->Event("event.safeguard_triggered");
  ::usleep(300'000);
  EXPECT_EQ(Left(), 16u);
  EXPECT_EQ(client_->Result("session.status").GetString("state").value(), "running");
  EXPECT_EQ(client_->Code("safeguard.confirm", R"({"safeguard_id":"sg_999","action":"allow"})"),
            "not_found");
  client_->Result("safeguard.confirm", R"({"safeguard_id":"sg_001","action":"allow"})");
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
  EXPECT_FALSE(workspace_.Exists("old"));
  EXPECT_EQ(client_->Code("safeguard.confirm", R"({"safeguard_id":"sg_001","action":"allow"})"),
            "not_found");
  client_->Result("undo.rollback");
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeSafeguards, SG_03_DeniedNothingOfTheStepRemainsAndNobodyIsLeftWhoCouldWrite) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  const std::string id = SendExecute(
      "echo a >keep.txt; sh -c 'while :; do echo x >more; sleep 0.01; done' & "
      "rm -r old; while :; do echo y >again; done");
  client_->Event("event.safeguard_triggered");
  client_->Result("safeguard.confirm", R"({"safeguard_id":"sg_001","action":"deny"})");
  const Json response = client_->Response(id);
  EXPECT_EQ(JsonlClient::CodeOf(response), "denied");
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
  EXPECT_EQ(client_->Result("undo.history").GetInt("total").value(), 0);
  Execute("echo b >keep.txt");
  EXPECT_EQ(client_->Result("undo.history").GetInt("total").value(), 1);
}

// What it writes through a descriptor that it has, nobody but the kernel sees.
TEST_F(ServeSafeguards, SG_01_WhileAStepIsHeldNobodyInTheWorldWrites) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  const std::string id = SendExecute(
      "exec 3>>log; while :; do echo x >&3; done & until test -s log; do :; done; "
      "rm -r old; kill $!; wait; echo done");
  client_->Event("event.safeguard_triggered");
  const std::string log = workspace_.ReadFile("log");
  ::usleep(300'000);
  EXPECT_EQ(workspace_.ReadFile("log").size(), log.size());
  client_->Result("safeguard.confirm", R"({"safeguard_id":"sg_001","action":"allow"})");
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
  EXPECT_EQ(client_->Output(id), "done\n");
  client_->Result("undo.rollback");
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
}

// They start one another faster than anybody could list them.
TEST_F(ServeSafeguards, SG_03_EveryProcessIsGoneBeforeADenialTakesEffect) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  const std::string id = SendExecute(
      "exec 3>>log; for i in 1 2 3 4; do "
      "sh -c 'f() { echo x >&3; f & exit; }; f' writer_of_a_denied_step & done; "
      "until test -s log; do :; done; rm -r old");
  client_->Event("event.safeguard_triggered");
  client_->Result("safeguard.confirm", R"({"safeguard_id":"sg_001","action":"deny"})");
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto line = ReadFileAt(AT_FDCWD, (entry.path() / "cmdline").c_str(), 1 << 20);
    EXPECT_FALSE(line.ok() && line->ends_with(std::string("writer_of_a_denied_step\0", 24)))
        << entry.path();
  }
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(id)), "denied");
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
  ::usleep(100'000);
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
}

// Each appends a byte through the descriptor that it inherited, starts the next one and ends.
constexpr char kChainOfProcesses[] =
    "exec 3>>log; python3 -c '\n"
    "import os\n"
    "while not os.path.exists(\"stop\"):\n"
    "  os.write(3, b\"x\")\n"
    "  if os.fork(): os._exit(0)\n"
    "' & until test -s log; do :; done; ";

// Who is about to be stopped has started the next one by then.
TEST_F(ServeSafeguards, SG_01_WhileAStepIsHeldProcessesThatStartOneAnotherStandStillToo) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  const std::string id =
      SendExecute(std::string(kChainOfProcesses) + "rm -r old; sleep 1; echo x >stop; echo done");
  client_->Event("event.safeguard_triggered");
  const size_t log = workspace_.ReadFile("log").size();
  ::usleep(500'000);
  EXPECT_EQ(workspace_.ReadFile("log").size(), log);
  client_->Result("safeguard.confirm", R"({"safeguard_id":"sg_001","action":"allow"})");
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
  EXPECT_EQ(client_->Output(id), "done\n");
  EXPECT_GT(workspace_.ReadFile("log").size(), log);
  client_->Result("undo.rollback");
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeSafeguards, SG_03_ADenialEndsProcessesThatStartOneAnotherAndNotTheSession) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  const std::string id = SendExecute(std::string(kChainOfProcesses) + "rm -r old");
  client_->Event("event.safeguard_triggered");
  client_->Result("safeguard.confirm", R"({"safeguard_id":"sg_001","action":"deny"})");
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(id)), "denied");
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
  ::usleep(100'000);
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
  Execute("echo precious >work.txt");
  EXPECT_TRUE(workspace_.Exists("work.txt"));
}

TEST_F(ServeSafeguards, SG_04_NoAnswerInTimeIsADenial) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5,"timeout_seconds":1})");
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(SendExecute("rm -r old"))), "denied");
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeSafeguards, SG_05_SG_06_OverwritingAndRenamingOver) {
  workspace_.WriteFile("large", std::string(100'000, 'x'));
  client_->Result("safeguard.configure",
                  R"({"overwrite_threshold_bytes":50000,"rename_over_threshold":1})");
  std::string id = SendExecute("echo x >large");
  EXPECT_EQ(client_->Event("event.safeguard_triggered").Find("payload")->GetInt("amount").value(),
            100'000);
  client_->Result("safeguard.confirm", R"({"safeguard_id":"sg_001","action":"deny"})");
  client_->Response(id);
  EXPECT_EQ(workspace_.ReadFile("large").size(), 100'000u);
  id = SendExecute("mv old/00 old/01");
  EXPECT_EQ(client_->Event("event.safeguard_triggered").Find("payload")->GetString("kind").value(),
            "rename_over");
  client_->Result("safeguard.confirm", R"({"safeguard_id":"sg_002","action":"allow"})");
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
}

TEST_F(ServeSafeguards, DenialReachesAllWorkingDirectories) {
  const std::string other = workspace_.root() + "/other";
  MustCall(::mkdir(other.c_str(), 0755), other);
  client_->Result("session.stop");
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  client_->Result("session.start",
                  fmt::format(R"({{"working_directories":[{{"path":"{}"}},{{"path":"{}"}}]}})",
                              workspace_.project(), other));
  const std::string id = SendExecute(fmt::format("echo a >{}/a; rm -r old", other));
  client_->Event("event.safeguard_triggered");
  client_->Result("safeguard.confirm", R"({"safeguard_id":"sg_001","action":"deny"})");
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(id)), "denied");
  EXPECT_NE(::access((other + "/a").c_str(), F_OK), 0);
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeSafeguards, AClientThatLeavesIsADenial) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5,"timeout_seconds":3})");
  SendExecute("rm -r old");
  client_->Event("event.safeguard_triggered");
  client_->CloseOutput();
  EXPECT_EQ(client_->Wait(), 0);
  Restart();
  Start();
  EXPECT_TRUE(workspace_.Exists("old/00"));
}

TEST_F(ServeSafeguards, ADeniedDaemonLeavesTheNextStepAlone) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5,"timeout_seconds":1})");
  Execute("( sleep 1; rm -r old; sleep 100 ) >/dev/null 2>&1 & exit 0");
  EXPECT_LT(client_->Event("event.safeguard_triggered").Find("payload")->GetInt("step_id").value(),
            0);
  ::usleep(2'000'000);
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
  Execute("echo precious >work.txt");
  EXPECT_TRUE(workspace_.Exists("work.txt"));
  EXPECT_EQ(Left(), 20u);
}

TEST_F(ServeSafeguards, WhileADaemonIsHeldNoCommandBegins) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  Execute("( sleep 1; rm -r old; echo done >done ) >/dev/null 2>&1 & exit 0");
  client_->Event("event.safeguard_triggered");
  EXPECT_EQ(client_->Code("agent.execute", R"({"command":"true"})"), "busy");
  client_->Result("safeguard.confirm", R"({"safeguard_id":"sg_001","action":"allow"})");
  WaitUntilExists("done");
  Execute("true");
}

TEST_F(ServeSafeguards, AStepStaysOpenWhileAnOperationOfItIsHeld) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  const std::string id = SendExecute("echo a >a; rm -r old & exit 0");
  client_->Event("event.safeguard_triggered");
  ::usleep(3'000'000);  // longer than a step waits for anything else
  client_->Result("safeguard.confirm", R"({"safeguard_id":"sg_001","action":"deny"})");
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(id)), "denied");
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
  Execute("echo precious >work.txt");
  EXPECT_TRUE(workspace_.Exists("work.txt"));
}

TEST_F(ServeSafeguards, WhatIsAllowedLateStillBelongsToItsStep) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  const std::string id = SendExecute("rm -r old & exit 0");
  client_->Event("event.safeguard_triggered");
  ::usleep(3'000'000);
  client_->Result("safeguard.confirm", R"({"safeguard_id":"sg_001","action":"allow"})");
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
  EXPECT_FALSE(workspace_.Exists("old"));
  EXPECT_EQ(client_->Result("undo.history").GetInt("total").value(), 1);
  client_->Result("undo.rollback");
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeSafeguards, ToCancelAHeldCommandIsToDenyItAtOnce) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  Execute("sleep 100 >/dev/null 2>&1 & exit 0");
  const std::string id = SendExecute("echo a >a; rm -r old");
  client_->Event("event.safeguard_triggered");
  const auto begin = std::chrono::steady_clock::now();
  client_->Result("agent.cancel");
  client_->Result("session.status");
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(id)), "denied");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeSafeguards, ACommandThatEndsWhileItIsHeldIsDeniedAtOnce) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  Execute("sleep 100 >/dev/null 2>&1 & exit 0");
  const std::string id = SendExecute("rm -r old", R"(,"timeout_ms":1000)");
  client_->Event("event.safeguard_triggered");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(id)), "denied");
  client_->Result("session.status");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
  Execute("echo precious >work.txt");
  EXPECT_TRUE(workspace_.Exists("work.txt"));
}

TEST_F(ServeSafeguards, ARollbackThatStopsAHeldCommandTakesNoOtherStep) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  Execute("echo base >base.txt");
  const std::string id = SendExecute("rm -r old");
  client_->Event("event.safeguard_triggered");
  const auto begin = std::chrono::steady_clock::now();
  client_->Result("undo.rollback", R"({"stop_processes":true})");
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(id)), "denied");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  Execute("echo precious >work.txt");
  EXPECT_TRUE(workspace_.Exists("work.txt"));
  EXPECT_EQ(Left(), 20u);
}

TEST_F(ServeSafeguards, AnEndWithAQuestionOpenComesAtOnce) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  SendExecute("echo a >a; rm -r old");
  client_->Event("event.safeguard_triggered");
  const auto begin = std::chrono::steady_clock::now();
  ::kill(client_->pid(), SIGTERM);
  client_->Wait();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeSafeguards, AnEndWithADaemonHeldComesAtOnce) {
  client_->Result("safeguard.configure", R"({"delete_threshold":5})");
  Execute("( sleep 1; rm -r old ) >/dev/null 2>&1 & exit 0");
  client_->Event("event.safeguard_triggered");
  const auto begin = std::chrono::steady_clock::now();
  ::kill(client_->pid(), SIGTERM);
  client_->Wait();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  EXPECT_EQ(Diff(before_, workspace_.Snapshot()), std::vector<std::string>());
}

TEST_F(ServeSafeguards, TheUsersFileTurnsThemOnAndARequestChangesOnlyWhatItNames) {
  client_->Result("session.stop");
  WriteConfig("[safeguards]\ndelete_threshold = 5\ntimeout_seconds = 9\n");
  Start();
  std::string id = SendExecute("rm -r old");
  const Json triggered = client_->Event("event.safeguard_triggered");
  EXPECT_EQ(triggered.Find("payload")->GetInt("timeout_seconds").value(), 9);
  client_->Result("safeguard.confirm", R"({"safeguard_id":"sg_001","action":"deny"})");
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(id)), "denied");
  client_->Result("safeguard.configure", R"({"timeout_seconds":1})");
  id = SendExecute("rm -r old");
  EXPECT_EQ(JsonlClient::CodeOf(client_->Response(id)), "denied");
  client_->Result("safeguard.configure", R"({"delete_threshold":null})");
  Execute("rm -r old");
  EXPECT_FALSE(workspace_.Exists("old"));
}

TEST_F(ServeSafeguards, WhatWasRefusedIsNotKept) {
  Execute("sleep 100 >/dev/null 2>&1 & exit 0");
  EXPECT_EQ(client_->Code("safeguard.configure", R"({"delete_threshold":1,"timeout_seconds":1})"),
            "busy");
  EXPECT_EQ(client_->Code("undo.configure", R"({"max_step_count":1})"), "busy");
  client_->Result("session.stop");
  Start();
  Execute("rm old/00");
  Execute("rm old/01");
  EXPECT_FALSE(client_->HasEvent("event.safeguard_triggered"));
  EXPECT_EQ(client_->Result("undo.history").GetInt("total").value(), 3);
}

}  // namespace
}  // namespace sandglass::test
