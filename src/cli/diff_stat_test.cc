#include "cli/diff_stat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "undo/text_diff.h"

namespace sandglass::cli {
namespace {

using ::testing::HasSubstr;
using undo::Change;
using undo::ChangeKind;

constexpr size_t kColumns = 80;

std::string Created(std::string_view path, std::string_view content) {
  return undo::UnifiedDiff({.path = path, .content = {}, .presence = undo::FilePresence::kAbsent},
                           {.path = path, .content = content});
}
std::string Modified(std::string_view path, std::string_view before, std::string_view after) {
  return undo::UnifiedDiff({.path = path, .content = before}, {.path = path, .content = after});
}

TEST(DiffStat, CountsLinesOfEachPathAndAllTogether) {
  const std::string diff =
      Modified("notes.txt", "first\nsecond\n", "first\nchanged\nmore\n") + Created("a/b", "x\n");
  EXPECT_EQ(DiffStat({{ChangeKind::kModified, "notes.txt", "", 13, 19},
                      {ChangeKind::kCreated, "a", ""},
                      {ChangeKind::kCreated, "a/b", "", 0, 2}},
                     diff, kColumns),
            " notes.txt | 3 ++-\n"
            " a         | 0\n"
            " a/b       | 1 +\n"
            " 3 paths changed, 3 insertions(+), 1 deletion(-)\n");
}

TEST(DiffStat, ContentThatLooksLikeADiffIsContent) {
  const std::string text = "-- a/x\n++ b/x\n@@ -1 +1 @@\ndiff --git a/y b/y\n# x: \n";
  EXPECT_THAT(DiffStat({{ChangeKind::kModified, "x", "", 0, 0}}, Modified("x", text, ""), kColumns),
              HasSubstr(" x | 5 -----\n"));
}

TEST(DiffStat, OfBinaryFilesItTellsTheSizes) {
  const std::string binary("a\0b", 3);
  EXPECT_THAT(DiffStat({{ChangeKind::kModified, "image", "", 3, 1}}, Modified("image", binary, "x"),
                       kColumns),
              HasSubstr(" image | Bin 3 -> 1 bytes\n"));
  EXPECT_THAT(DiffStat({{ChangeKind::kDeleted, "huge", "", 5'000'000, 7}},
                       "# huge: too large to be compared\n", kColumns),
              HasSubstr(" huge | Bin 5000000 -> 0 bytes\n"));
}

TEST(DiffStat, PathsThatTheDiffLeavesOutHaveTheirSizesToo) {
  EXPECT_EQ(DiffStat({{ChangeKind::kCreated, "folder", ""}, {ChangeKind::kCreated, "b", "", 0, 9}},
                     "# and 1 more paths\n", kColumns),
            " folder |   0\n"
            " b      | Bin 0 -> 9 bytes\n"
            " 2 paths changed\n");
}

TEST(DiffStat, AnyNameIsOneLineAndFoundInTheDiff) {
  for (const std::string name : {"two words", "a\nb", "\xff", "quote\"", "ends in space ", "ü"}) {
    const std::string stat =
        DiffStat({{ChangeKind::kCreated, name, "", 0, 2}}, Created(name, "x\n"), kColumns);
    EXPECT_THAT(stat, HasSubstr(" | 1 +\n")) << name;
    EXPECT_EQ(std::ranges::count(stat, '\n'), 2) << name;
  }
  EXPECT_THAT(
      DiffStat({{ChangeKind::kCreated, "empty file", ""}}, Created("empty file", ""), kColumns),
      HasSubstr(" empty file | 0\n"));
}

TEST(DiffStat, ARenameHasBothNames) {
  const std::string diff =
      undo::UnifiedDiff({.path = "old name", .content = "a\n"}, {.path = "new", .content = "b\n"});
  EXPECT_THAT(DiffStat({{ChangeKind::kRenamed, "new", "old name", 2, 2}}, diff, kColumns),
              HasSubstr(" old name => new | 2 +-\n"));
}

TEST(DiffStat, LinesStayWithinTheirColumns) {
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "line\n";
  const std::string deep = std::string(60, 'd') + "/\xc3\xbc/" + std::string(60, 'f');
  const std::string stat = DiffStat(
      {{ChangeKind::kCreated, deep, "", 0, many.size()}, {ChangeKind::kCreated, "b", "", 0, 2}},
      Created(deep, many) + Created("b", "x\n"), kColumns);
  std::istringstream lines(stat);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kColumns) << line;
  EXPECT_THAT(stat, HasSubstr(" ..."));
  EXPECT_THAT(stat, HasSubstr(" |    1 +\n")) << "one line is seen beside thousands";
}

}  // namespace
}  // namespace sandglass::cli
