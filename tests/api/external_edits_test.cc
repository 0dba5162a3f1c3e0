// What a person does to a project that a session works on: told at once where it is watched, and never lost unasked, watched or not.
#include <gmock/gmock.h>
#include <sys/syscall.h>

#include <set>
#include <tuple>

#include "tests/api/serve_fixture.h"
#include "tests/support/deny_call.h"

namespace sandglass::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExternalEdits : public ServeFixture {
 protected:
  // The watcher begins a moment after the first command: a person who is not heard saves again.
  Json EditUntilTold(const std::string& path) {
    for (int i = 0; i < 200; ++i) {
      workspace_.WriteFile(path, fmt::format("by a person, {}\n", i));
      ::usleep(100'000);
      client_->Result("session.status");
      while (const auto event = client_->TakeEvent("event.external_modification")) {
        const std::vector<std::string> paths =
            Texts(event->Find("payload")->Find("affected_paths"));
        if (std::ranges::find(paths, path) != paths.end()) return *event;
      }
    }
    ADD_FAILURE() << "nobody told of " << path;
    return Json::Object({{"payload", Json::Object()}});
  }
  std::vector<std::string> Barriers() {
    std::vector<std::string> paths;
    const Json history = client_->Result("undo.history");
    for (const Json& entry : *history.Find("steps")->AsArray()) {
      if (entry.GetString("type").value() != "barrier") continue;
      for (const std::string& path : Texts(entry.Find("affected_paths"))) paths.push_back(path);
    }
    return paths;
  }
};

TEST_F(ExternalEdits, EB_01_EB_04_FW_01_AnEditIsToldAtOnceAndIsABarrierInTheHistory) {
  Start();
  Execute("echo 1 >made.txt");
  const Json event = EditUntilTold("keep.txt");
  const Json& payload = *event.Find("payload");
  EXPECT_EQ(payload.GetInt("directory").value(), 0);
  EXPECT_EQ(payload.GetInt("after_step").value(), 1);
  EXPECT_THAT(Texts(payload.Find("kinds")), Contains("modified"));
  EXPECT_THAT(payload.GetString("message").value(), HasSubstr("keep.txt"));
  EXPECT_THAT(Barriers(), Contains("keep.txt"));
}

TEST_F(ExternalEdits, AnEditBesideARunningCommandIsToldWhileItRuns) {
  Start();
  const std::string id = SendExecute("echo 1 >made.txt; while [ ! -e go ]; do sleep 0.05; done");
  WaitUntilExists("made.txt");
  EditUntilTold("keep.txt");
  EXPECT_EQ(client_->Result("session.status").GetString("state").value(), "running");
  workspace_.WriteFile("go", "");
  client_->Response(id);
}

TEST_F(ExternalEdits, StepsThatTouchNoneOfThePathsCanStillBeTakenBack) {
  Start();
  Execute("echo 1 >keep.txt");
  EditUntilTold("notes.txt");
  Execute("echo 2 >src/main.c");
  EXPECT_THAT(Barriers(), Contains("notes.txt"));
  client_->Result("undo.rollback", R"({"count":2})");
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
  EXPECT_EQ(workspace_.ReadFile("src/main.c"), "int main;\n");
  EXPECT_THAT(workspace_.ReadFile("notes.txt"), HasSubstr("by a person"));
}

TEST_F(ExternalEdits, EB_05_FW_02_WhatCommandsDoIsNotTold) {
  Start();
  Execute("echo 1 >made.txt");
  EditUntilTold("keep.txt");
  Execute(
      "for i in $(seq 200); do mkdir -p d/$i; echo $i >d/$i/f; mv d/$i e$i; done; rm -r e1*; "
      "sed -i s/2/3/ e2/f; chmod 600 e3/f");
  client_->Result("undo.rollback");
  EditUntilTold("again.txt");
  for (const std::string& path : Barriers())
    EXPECT_TRUE(path == "keep.txt" || path == "again.txt") << path;
}

TEST_F(ExternalEdits, EB_08_UnderThePolicyWarnItIsToldAndBlocksNothing) {
  Start(R"(,"external_modifications":"warn")");
  Execute("echo 1 >made.txt");
  const Json event = EditUntilTold("keep.txt");
  EXPECT_TRUE(event.Find("payload")->Find("after_step")->is_null());
  EXPECT_THAT(Barriers(), ElementsAre());
  client_->Result("undo.rollback");
}

TEST_F(ExternalEdits, EB_09_ThePolicyLockIsRefusedWithTheReason) {
  const Json response =
      client_->Ask("session.start", StartPayload(R"(,"external_modifications":"lock")"));
  EXPECT_EQ(JsonlClient::CodeOf(response), "unsupported");
  EXPECT_THAT(response.Find("error")->GetString("message").value(),
              HasSubstr("cannot be locked out"));
}

TEST_F(ExternalEdits, FW_03_SwitchedOffInTheUsersFileNothingIsTold) {
  WriteConfig("[file_watcher]\nenabled = false\n");
  Start();
  Execute("echo 1 >made.txt; sleep 0.3");
  workspace_.WriteFile("keep.txt", "by a person");
  ::usleep(500'000);
  client_->Result("session.status");
  EXPECT_FALSE(client_->HasEvent("event.external_modification"));
}

// --- Whatever a person does between two steps, and whoever watches meanwhile, undo does not cross it unasked.

enum class Deed : uint8_t { kEdits, kReplaces, kDeletes, kChangesMode };
enum class Watched : uint8_t { kRunning, kStopped, kOff, kDead };
constexpr std::string_view kDeedNames[] = {"Edits", "ReplacesByRename", "Deletes", "ChangesMode"};
constexpr std::string_view kWatchedNames[] = {"SessionRunning", "SessionStopped", "WatcherOff",
                                              "WatcherDead"};

class BetweenTwoSteps : public ExternalEdits,
                        public ::testing::WithParamInterface<std::tuple<Deed, Watched>> {
 protected:
  void Do(Deed deed) {
    const std::string path = workspace_.Path("keep.txt");
    switch (deed) {
      case Deed::kEdits:
        return workspace_.WriteFile("keep.txt", "by a person\n");
      case Deed::kReplaces:
        workspace_.WriteFile("keep.new", "by a person\n");
        MustCall(::rename(workspace_.Path("keep.new").c_str(), path.c_str()), "rename");
        return;
      case Deed::kDeletes:
        MustCall(::unlink(path.c_str()), "unlink");
        return;
      case Deed::kChangesMode:
        MustCall(::chmod(path.c_str(), 0600), "chmod");
        return;
    }
  }
  void StartAs(Watched watched) {
    if (watched == Watched::kOff) {
      WriteConfig("[file_watcher]\nenabled = false\n");
    }
    if (watched == Watched::kDead) {
      place_.before_start = [] {
        DenyCall(SYS_inotify_init1);
        DenyCall(SYS_fanotify_init);
      };
      Restart();
    }
    Start();
  }
};

TEST_P(BetweenTwoSteps, UndoRefusesNamesTheFileAndWithForceSaysWhatItOverwrote) {
  const auto [deed, watched] = GetParam();
  const TreeSnapshot before = workspace_.Snapshot();
  StartAs(watched);
  Execute("echo 1 >keep.txt; sleep 0.2");
  if (watched == Watched::kStopped) client_->Result("session.stop");
  Do(deed);
  const TreeSnapshot as_left = workspace_.Snapshot();
  if (watched == Watched::kStopped) Start();
  Execute("echo 2 >src/main.c");

  const Json refused = client_->Ask("undo.rollback", R"({"count":2})");
  EXPECT_EQ(JsonlClient::CodeOf(refused), "conflict");
  EXPECT_THAT(WriteJson(*refused.Find("error")), HasSubstr("keep.txt"));
  EXPECT_EQ(workspace_.ReadFile("src/main.c"), "2\n") << "something was touched";
  // The newer step has nothing to do with that.
  client_->Result("undo.rollback");
  EXPECT_EQ(Diff(as_left, workspace_.Snapshot()), std::vector<std::string>());

  const Json forced = client_->Result("undo.rollback", R"({"force":true})");
  std::set<std::string> named;
  for (const Json& conflict : *forced.Find("conflicts")->AsArray())
    named.insert(conflict.GetString("path").value());
  EXPECT_THAT(named, ElementsAre("keep.txt")) << WriteJson(forced);
  // Of what the step had changed there is nothing left to be overwritten if a person has put something else in its place or removed it.
  const bool overwrites = deed == Deed::kEdits || deed == Deed::kChangesMode;
  EXPECT_EQ(forced.GetInt("total_changes").value(), overwrites ? 1 : 0);
  EXPECT_EQ(Diff(overwrites ? before : as_left, workspace_.Snapshot()), std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Matrix, BetweenTwoSteps,
                         ::testing::Combine(::testing::Values(Deed::kEdits, Deed::kReplaces,
                                                              Deed::kDeletes, Deed::kChangesMode),
                                            ::testing::Values(Watched::kRunning, Watched::kStopped,
                                                              Watched::kOff, Watched::kDead)),
                         [](const auto& info) {
                           return fmt::format(
                               "{}_{}", kDeedNames[static_cast<size_t>(std::get<0>(info.param))],
                               kWatchedNames[static_cast<size_t>(std::get<1>(info.param))]);
                         });

}  // namespace
}  // namespace sandglass::test
