#include "cli/reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sandglass::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using undo::ChangeKind;

TEST(Reports, CountsNameOnlyWhatHappened) {
  EXPECT_EQ(CountsText({}), "no changes");
  EXPECT_EQ(CountsText({.created = 2, .deleted = 1}), "2 created, 1 deleted");
  EXPECT_EQ(CountsText({.modified = 3, .renamed = 4}), "3 modified, 4 renamed");
}

TEST(Reports, AChangeIsOneLine) {
  EXPECT_EQ(ChangeText({.kind = ChangeKind::kCreated, .path = "a", .new_size = 5}),
            "created   a (5 B)");
  EXPECT_EQ(ChangeText({.kind = ChangeKind::kDeleted, .path = "a\n", .old_size = 5}),
            "deleted   a\\n (5 B)");
  EXPECT_EQ(ChangeText({.kind = ChangeKind::kModified, .path = "a", .old_size = 5, .new_size = 6}),
            "modified  a (5 B -> 6 B)");
  EXPECT_EQ(ChangeText({.kind = ChangeKind::kRenamed,
                        .path = "b",
                        .old_path = "a",
                        .old_size = 5,
                        .new_size = 5}),
            "renamed   a -> b (5 B)");
  EXPECT_EQ(ChangeText({.kind = ChangeKind::kModified, .path = ""}),
            "modified  (the project folder) (0 B)");
}

TEST(Reports, AConflictSaysWhy) {
  EXPECT_EQ(ConflictText({undo::ConflictKind::kEdited, "a", "has been changed since"}),
            "edited    a: has been changed since");
  EXPECT_EQ(ConflictText({undo::ConflictKind::kMissing, "a", ""}), "missing   a");
  EXPECT_EQ(ConflictText({undo::ConflictKind::kEdited, "", ""}), "edited    (the project folder)");
  EXPECT_EQ(ConflictText({undo::ConflictKind::kCorrupt, "", "cannot be read", StepId{3}}),
            "corrupt   step 3: cannot be read");
}

TEST(Reports, LongListsAreCut) {
  undo::RewindReport report;
  for (int i = 0; i < 25; ++i)
    report.changes.push_back({.kind = ChangeKind::kCreated, .path = "f"});
  EXPECT_THAT(RewindText(report, "--json lists all"),
              EndsWith("created   f (0 B)\n  and 5 more; --json lists all\n"));
}

TEST(Reports, EveryPartOfARewindIsShown) {
  undo::RewindReport report;
  report.conflicts.push_back({undo::ConflictKind::kOccupied, "c", ""});
  report.kept = {"dir"};
  report.warnings = {"something odd"};
  const std::string text = RewindText(report, "");
  EXPECT_THAT(text, HasSubstr("conflicts:\n  occupied  c\n"));
  EXPECT_THAT(text, HasSubstr("not recorded:\n  dir\n"));
  EXPECT_THAT(text, HasSubstr("warnings:\n  something odd\n"));
}

TEST(Reports, RecoveryThatDidNothingIsSilent) {
  EXPECT_EQ(RecoveryText({}), "");
  EXPECT_EQ(RecoveryText({.recovered = true, .step = StepId{4}, .rewind = {}}),
            "the interrupted step 4 has been taken back\n");
  EXPECT_EQ(RecoveryText({.recovered = true, .step = StepId{-1}, .rewind = {}}),
            "the interrupted ambient step -1 has been closed\n");
  EXPECT_THAT(RecoveryText({.interrupted_rewind = true, .rewind = {}}), HasSubstr("put right"));
  const undo::Conflict aside{undo::ConflictKind::kCorrupt, "", "what it kept was set aside"};
  EXPECT_THAT(RecoveryText({.rewind = {.conflicts = {aside}}}), HasSubstr("set aside"));
}

}  // namespace
}  // namespace sandglass::cli
