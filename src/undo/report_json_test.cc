#include "undo/report_json.h"

#include <gtest/gtest.h>

namespace sandglass::undo {
namespace {

RewindReport FullReport() {
  return {.steps = {StepId{3}, StepId{-1}},
          .changes = {{.kind = ChangeKind::kCreated, .path = "a\xff", .new_size = 5},
                      {.kind = ChangeKind::kRenamed,
                       .path = "b",
                       .old_path = "c\xfe",
                       .old_size = 1,
                       .new_size = 2}},
          .conflicts = {{ConflictKind::kBusy, "d", "why"},
                        {ConflictKind::kCorrupt, "", "cannot be read", StepId{2}}},
          .kept = {"e"},
          .warnings = {"f"}};
}

TEST(ReportJson, AReportSurvivesTheWayThere) {
  const Json json = ToJson(FullReport());
  const auto back = RewindReportFromJson(*ParseJson(WriteJson(json)));
  ASSERT_TRUE(back.ok()) << back.error().ToString();
  EXPECT_EQ(ToJson(*back), json);
  EXPECT_EQ(back->conflicts[1].step, StepId{2});
}

TEST(ReportJson, WhatIsNoReportIsRefused) {
  for (const char* text :
       {"null", "[]", "{}", R"({"steps":7})", R"({"steps":["x"],"changes":[]})",
        R"({"steps":[],"changes":[{"change":"eaten","path":"a","old_size":0,"new_size":0}]})",
        R"({"steps":[],"changes":[],"conflicts":[{"conflict":"busy"}],"kept":[],"warnings":[]})"}) {
    EXPECT_FALSE(RewindReportFromJson(*ParseJson(text)).ok()) << text;
  }
}

TEST(ReportJson, NamesThatAreNoUtf8SurviveJson) {
  const Json json = ToJson(Change{.kind = ChangeKind::kRenamed, .path = "\xff", .old_path = "b"});
  EXPECT_EQ(
      WriteJson(json),
      R"({"change":"renamed","path":{"base64":"/w=="},"old_path":"b","old_size":0,"new_size":0})");
}

TEST(ReportJson, AStepsJsonHasItsCounts) {
  const Json json =
      ToJson(StepInfo{.id = {3}, .label = "make", .counts = {.created = 1, .renamed = 2}});
  EXPECT_EQ(json.GetInt("step_id").value(), 3);
  EXPECT_EQ(json.GetString("kind").value(), "command");
  EXPECT_EQ(json.GetUint("renamed").value(), 2u);
  EXPECT_TRUE(json.GetBool("protected").value());
}

}  // namespace
}  // namespace sandglass::undo
