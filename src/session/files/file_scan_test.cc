#include "session/files/file_scan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sandglass::session::files {
namespace {

// "3:text" for a match, "3-text" for context, "~" behind what was cut.
std::string Scanned(std::string_view pattern, ScanOptions options,
                    const std::vector<std::string>& pieces) {
  const auto matcher = LineMatcher::Compile({pattern});
  FileScan scan(*matcher, options);
  for (const std::string& piece : pieces) {
    if (!scan.done()) scan.Feed(piece);
  }
  std::string out;
  for (const GrepLine& line : scan.lines()) {
    out += fmt::format("{}{}{}{} ", line.number, line.kind == LineKind::kMatch ? ':' : '-',
                       line.text, line.cut ? "~" : "");
  }
  return out;
}

uint64_t Count(std::string_view pattern, const std::string& text) {
  const auto matcher = LineMatcher::Compile({pattern});
  const ScanOptions options{.mode = GrepMode::kCount};
  FileScan scan(*matcher, options);
  scan.Feed(text);
  return scan.matches();
}

TEST(FileScan, NumbersMatchingLines) {
  EXPECT_EQ(Scanned("x", {}, {"a\nx\nb\nxx\n"}), "2:x 4:xx ");
  EXPECT_EQ(Scanned("x", {}, {"x"}), "1:x ");
  EXPECT_EQ(Scanned("x", {}, {""}), "");
  EXPECT_EQ(Scanned("x", {}, {"x\r\n"}), "1:x ");
}

TEST(FileScan, AnEmptyMatchIsInEveryLineAndBehindNone) {
  EXPECT_EQ(Count("x*", "a\nb\n"), 2u);
  EXPECT_EQ(Count("x*", "a\nb"), 2u);
  EXPECT_EQ(Count("^$", "a\n\nb\n"), 1u);
  EXPECT_EQ(Count("^$", "a\n"), 0u);
  EXPECT_EQ(Count("$", "a"), 1u);
  EXPECT_EQ(Count("x*", "\n"), 1u);
}

TEST(FileScan, ShowsContextOnce) {
  const std::string text = "1\n2\nx\n4\n5\nx\n7\n8\n9\n";
  EXPECT_EQ(Scanned("x", {.before = 1, .after = 1}, {text}), "2-2 3:x 4-4 5-5 6:x 7-7 ");
  EXPECT_EQ(Scanned("x", {.before = 5, .after = 5}, {text}),
            "1-1 2-2 3:x 4-4 5-5 6:x 7-7 8-8 9-9 ");
  EXPECT_EQ(Scanned("x", {.after = 1}, {"x\nx\na\nb\n"}), "1:x 2:x 3-a ");
}

TEST(FileScan, PiecesMakeNoDifference) {
  const std::vector<std::string> lines = {"1\n", "2\n", "x\n", "4\n", "5\n", "x\n", "7\n", "8\n"};
  std::string whole;
  for (const std::string& line : lines) whole += line;
  for (size_t before = 0; before < 4; ++before) {
    for (size_t after = 0; after < 4; ++after) {
      const ScanOptions options{.before = before, .after = after};
      EXPECT_EQ(Scanned("x", options, lines), Scanned("x", options, {whole}));
    }
  }
}

TEST(FileScan, EndsWithTheLastWantedMatch) {
  EXPECT_EQ(Scanned("x", {.after = 1, .max_matches = 1}, {"x\na\nx\n"}), "1:x 2-a ");
  EXPECT_EQ(Scanned("x", {.after = 2, .max_matches = 1}, {"x\na\nx\n"}), "1:x 2-a ");
}

TEST(FileScan, GoesOnBehindALine) {
  EXPECT_EQ(Scanned("x", {.before = 1, .after_line = 1}, {"x\na\nx\nb\nx\n"}), "2-a 3:x 4-b 5:x ");
  EXPECT_EQ(Scanned("x", {.after = 3, .after_line = 1}, {"x\na\nx\nb\nx\n"}), "3:x 4-b 5:x ");
}

TEST(FileScan, LongLinesAreCutAroundTheMatch) {
  const std::string line = std::string(50, 'a') + "x" + std::string(50, 'b');
  EXPECT_EQ(Scanned("x", {.max_line_bytes = 8}, {line}), "1:aaxbbbbb~ ");
  EXPECT_EQ(Scanned("a", {.max_line_bytes = 4}, {"abcdef"}), "1:abcd~ ");
  // Not within a character.
  EXPECT_EQ(Scanned("x", {.max_line_bytes = 4}, {"x\xC3\xA4\xC3\xA4"}), "1:x\xC3\xA4~ ");
}

}  // namespace
}  // namespace sandglass::session::files
