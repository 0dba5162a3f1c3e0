// UH-01..14: the history as a front end shows it: a line for each step with its details, barriers between them, and what going back does to
// it.
#include <gmock/gmock.h>

#include "tests/api/serve_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class UndoHistory : public ServeFixture {
 protected:
  void SetUp() override {
    ServeFixture::SetUp();
    if (!IsSkipped()) Start();
  }
  Json::Items History(std::string_view payload = "{}") {
    const Json history = client_->Result("undo.history", payload);
    return *history.Find("steps")->AsArray();
  }
  std::vector<int64_t> Ids(std::string_view payload = "{}") {
    std::vector<int64_t> ids;
    for (const Json& entry : History(payload)) {
      if (const auto id = entry.GetInt("step_id"); id.ok()) ids.push_back(*id);
    }
    return ids;
  }
  Json Newest() {
    const Json::Items entries = History();
    EXPECT_FALSE(entries.empty());
    return entries.empty() ? Json::Object() : entries.back();
  }
};

TEST_F(UndoHistory, UH_01_IsEmptyAtFirst) {
  const Json history = client_->Result("undo.history");
  EXPECT_EQ(history.GetInt("total").value(), 0);
  EXPECT_EQ(history.GetInt("redo_steps").value(), 0);
  EXPECT_THAT(*history.Find("steps")->AsArray(), IsEmpty());
}

TEST_F(UndoHistory, UH_02_EachCommandIsAnEntryInOrder) {
  for (const char* name : {"a", "b", "c"}) Execute(fmt::format("echo x >{}", name));
  EXPECT_THAT(Ids(), ElementsAre(1, 2, 3));
}

TEST_F(UndoHistory, UH_03_AnEntrySaysItsCommandAndWhen) {
  Execute("echo x >a");
  const Json entry = Newest();
  EXPECT_EQ(entry.GetString("type").value(), "command");
  EXPECT_EQ(entry.GetString("command").value(), "echo x >a");
  const std::string begun = entry.GetString("started").value();
  const std::string ended = entry.GetString("timestamp").value();
  EXPECT_THAT(begun, testing::StartsWith("20"));
  EXPECT_LE(begun, ended);
}

TEST_F(UndoHistory, UH_04_AnEntryCountsWhatItDid) {
  Execute("echo x >a; echo y >>keep.txt; rm src/main.c; mv a b");
  const Json entry = Newest();
  const Json& counts = *entry.Find("counts");
  EXPECT_EQ(counts.GetInt("created").value(), 1);
  EXPECT_EQ(counts.GetInt("modified").value(), 1);
  EXPECT_EQ(counts.GetInt("deleted").value(), 1);
  EXPECT_THAT(Texts(entry.Find("affected_paths")), Contains("keep.txt"));
}

TEST_F(UndoHistory, UH_05_PagesCountFromTheNewest) {
  for (int i = 0; i < 5; ++i) Execute(fmt::format("echo {} >a", i));
  EXPECT_THAT(Ids(R"({"limit":2})"), ElementsAre(4, 5));
  EXPECT_THAT(Ids(R"({"limit":2,"offset":2})"), ElementsAre(2, 3));
  EXPECT_THAT(Ids(R"({"limit":2,"offset":9})"), IsEmpty());
  EXPECT_EQ(client_->Result("undo.history", R"({"limit":1})").GetInt("total").value(), 5);
}

TEST_F(UndoHistory, UH_06_TheDetailsOfAStepAreAllItsChanges) {
  Execute("for i in $(seq 30); do echo $i >f$i; done");
  EXPECT_EQ(Newest().Find("affected_paths")->AsArray()->size(), 20u);
  EXPECT_EQ(Newest().GetInt("total_paths").value(), 30);
  const Json changes = client_->Result("undo.changes", R"({"step_id":1})");
  EXPECT_EQ(changes.Find("changes")->AsArray()->size(), 30u);
}

TEST_F(UndoHistory, UH_07_ACommandThatChangedNothingIsAnEntryToo) {
  Execute("true");
  EXPECT_THAT(Ids(), ElementsAre(1));
  EXPECT_EQ(Newest().GetInt("total_paths").value(), 0);
}

TEST_F(UndoHistory, UH_08_AWriteOfTheClientsOwnIsAnEntryOfItsKind) {
  client_->Result("fs.write", R"({"path":"made","content":"x"})");
  EXPECT_EQ(Newest().GetString("type").value(), "api");
  EXPECT_THAT(Texts(Newest().Find("affected_paths")), ElementsAre("made"));
}

TEST_F(UndoHistory, UH_09_WhatIsTakenBackLeavesItAndCanBeRedone) {
  Execute("echo 1 >a");
  Execute("echo 2 >b");
  client_->Result("undo.rollback");
  EXPECT_THAT(Ids(), ElementsAre(1));
  EXPECT_EQ(client_->Result("undo.history").GetInt("redo_steps").value(), 1);
  client_->Result("undo.redo");
  EXPECT_THAT(Ids(), ElementsAre(1, 2));
  EXPECT_EQ(client_->Result("undo.history").GetInt("redo_steps").value(), 0);
}

TEST_F(UndoHistory, UH_10_ANewStepEndsWhatCouldBeRedone) {
  Execute("echo 1 >a");
  client_->Result("undo.rollback");
  Execute("echo 2 >b");
  EXPECT_EQ(client_->Result("undo.history").GetInt("redo_steps").value(), 0);
  EXPECT_EQ(History().size(), 1u);
}

TEST_F(UndoHistory, UH_11_MoreThanThereIsCannotBeTakenBack) {
  Execute("echo 1 >a");
  EXPECT_NE(client_->Code("undo.rollback", R"({"count":2})"), "");
  EXPECT_TRUE(workspace_.Exists("a"));
  EXPECT_THAT(Ids(), ElementsAre(1));
}

TEST_F(UndoHistory, UH_12_AnEditByAPersonStandsInTheWayUntilForced) {
  Execute("echo 1 >keep.txt");
  workspace_.WriteFile("keep.txt", "a person's\n");
  EXPECT_EQ(client_->Code("undo.rollback"), "conflict");
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "a person's\n");
  client_->Result("undo.rollback", R"({"force":true})");
  EXPECT_EQ(workspace_.ReadFile("keep.txt"), "kept\n");
  EXPECT_THAT(Ids(), IsEmpty());
}

TEST_F(UndoHistory, UH_13_AStepShowsItsDiff) {
  Execute("echo more >>keep.txt");
  const std::string diff =
      client_->Result("undo.diff", R"({"step_id":1})").GetString("diff").value();
  EXPECT_THAT(diff, HasSubstr("keep.txt"));
  EXPECT_THAT(diff, HasSubstr("+more"));
}

TEST_F(UndoHistory, UH_14_ItOutlivesTheProgram) {
  Execute("echo 1 >a");
  Execute("echo 2 >b");
  client_->Result("session.stop");
  Restart();
  Start();
  EXPECT_THAT(Ids(), ElementsAre(1, 2));
  client_->Result("undo.rollback", R"({"count":2})");
  EXPECT_FALSE(workspace_.Exists("a"));
  EXPECT_FALSE(workspace_.Exists("b"));
}

}  // namespace
}  // namespace sandglass::test
