// The exchanges that the project plan shows, word for word but for the paths and the network, which does not exist yet.
#include <gmock/gmock.h>

#include "tests/api/serve_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::Contains;

using ServeExamples = ServeFixture;

// Every member that the plan shows is there with that value; others may be.
void ExpectMembers(const Json& shown, const Json& message) {
  for (const JsonMember& member : *shown.AsObject()) {
    const Json* found = message.Find(member.key);
    ASSERT_NE(found, nullptr) << member.key << " in " << WriteJson(message);
    if (member.value.AsObject() != nullptr)
      ExpectMembers(member.value, *found);
    else
      EXPECT_EQ(WriteJson(*found), WriteJson(member.value)) << member.key;
  }
}
void ExpectShows(std::string_view shown, const Json& message) {
  ExpectMembers(Must(ParseJson(shown)), message);
}

TEST_F(ServeExamples, ASessionOnTwoWorkingDirectories) {
  const std::string shared = workspace_.root() + "/shared-lib";
  MustCall(::mkdir(shared.c_str(), 0755), shared);
  client_->SendLine(fmt::format(
      R"({{"type":"session.start","request_id":"1","payload":{{"working_directories": [{{"path": "{}", "label": "project", "access": "read_write"}}, {{"path": "{}", "label": "shared-lib", "access": "read_only"}}], "network_policy": "disabled", "vm_mode": "persistent"}}}})",
      workspace_.project(), shared));
  ExpectShows(R"({"type":"response","request_id":"1","status":"ok"})", client_->Response("1"));
}

TEST_F(ServeExamples, LimitsOfTheUndoLog) {
  for (const bool started : {false, true}) {
    if (started) Start();
    client_->SendLine(
        R"({"type":"undo.configure","request_id":"5","payload":{ "max_log_size_bytes": 1073741824, "max_step_count": 100, "max_single_step_size_bytes": 209715200 }})");
    EXPECT_EQ(WriteJson(client_->Response("5")),
              R"({"type":"response","request_id":"5","status":"ok"})");
  }
}

TEST_F(ServeExamples, ACommand) {
  Start();
  workspace_.WriteFile("npm", "");
  client_->SendLine(
      R"({"type":"agent.execute","request_id":"1","payload":{"command":"echo 'added 150 packages...'; echo {} >package-lock.json"}})");
  ExpectShows(
      R"({"type":"event.terminal_output","payload":{"stream":"stdout","data":"added 150 packages...\n"}})",
      client_->Event("event.terminal_output"));
  const Json completed = client_->Event("event.step_completed");
  ExpectShows(
      R"({"type":"event.step_completed","payload":{"step_id":1,"affected_paths":["package-lock.json"],"exit_code":0}})",
      completed);
  ExpectShows(R"({"type":"response","request_id":"1","status":"ok"})", client_->Response("1"));
}

TEST_F(ServeExamples, ASafeguard) {
  for (int i = 0; i < 87; ++i) workspace_.WriteFile(fmt::format("old/{}", i), "x");
  Start();
  client_->SendLine(
      R"({"type":"safeguard.configure","request_id":"2","payload":{ "delete_threshold": 50, "timeout_seconds": 30 }})");
  EXPECT_EQ(WriteJson(client_->Response("2")),
            R"({"type":"response","request_id":"2","status":"ok"})");
  const std::string id = SendExecute("rm -r old");
  const Json triggered = client_->Event("event.safeguard_triggered");
  ExpectShows(
      R"({"type":"event.safeguard_triggered","payload":{"step_id":1,"safeguard_id":"sg_001","delete_count":50,"message":"Step 1 is attempting to delete 50 files/directories. Awaiting confirmation."}})",
      triggered);
  EXPECT_EQ(triggered.Find("payload")->Find("sample_paths")->AsArray()->size(), 20u);
  client_->SendLine(
      R"({"type":"safeguard.confirm","request_id":"3","payload":{ "safeguard_id": "sg_001", "action": "allow" }})");
  EXPECT_EQ(WriteJson(client_->Response("3")),
            R"({"type":"response","request_id":"3","status":"ok"})");
  EXPECT_EQ(client_->Response(id).GetString("status").value(), "ok");
  EXPECT_FALSE(workspace_.Exists("old"));
}

}  // namespace
}  // namespace sandglass::test
