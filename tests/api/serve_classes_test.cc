// What the words of a command look like is shown to people.
#include <gmock/gmock.h>

#include "tests/api/serve_fixture.h"

namespace sandglass::test {
namespace {

using ServeClasses = ServeFixture;

TEST_F(ServeClasses, AStepSaysWhatItsCommandLookedLike) {
  Start();
  EXPECT_EQ(Execute("ls -l").GetString("command_class").value(), "read_only");
  EXPECT_EQ(Execute("touch a").GetString("command_class").value(), "write");
  EXPECT_EQ(Execute("ls; rm -rf nothing").GetString("command_class").value(), "destructive");
  EXPECT_FALSE(client_->HasEvent("event.warning"));
}

TEST_F(ServeClasses, ThePatternsOfNoOrdinaryCommandAreFlaggedAndRunAllTheSame) {
  Start();
  const std::string id = SendExecute("sudo true 2>/dev/null; echo ran");
  client_->Response(id);
  const Json event = client_->Event("event.warning");
  EXPECT_EQ(event.Find("payload")->GetString("code").value(), "danger.privilege");
  EXPECT_EQ(event.Find("payload")->GetString("request_id").value(), id);
  EXPECT_EQ(client_->Output(id), "ran\n");
}

TEST_F(ServeClasses, TheUsersFileReplacesTheLists) {
  WriteConfig("[command_classifier]\ndestructive_commands = [\"ls\"]\n");
  Start();
  EXPECT_EQ(Execute("ls").GetString("command_class").value(), "destructive");
}

}  // namespace
}  // namespace sandglass::test
