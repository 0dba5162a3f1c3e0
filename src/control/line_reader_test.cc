#include "control/line_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace sandglass::control {
namespace {

using Strings = std::vector<std::string>;

// What comes out of one read; "!" for a line that was refused.
Strings Feed(LineReader& reader, std::string_view bytes) {
  Strings lines;
  while (const auto line = reader.Next(bytes)) {
    lines.emplace_back(line->ok() ? std::string(**line) : "!");
    if (!line->ok()) EXPECT_EQ(line->error().code(), Code::kLimit);
  }
  EXPECT_TRUE(bytes.empty());
  return lines;
}

TEST(LineReader, CutsMergedReadsAndJoinsSplitOnes) {
  LineReader reader;
  EXPECT_EQ(Feed(reader, "one\ntwo\nth"), (Strings{"one", "two"}));
  EXPECT_TRUE(reader.inside_line());
  EXPECT_EQ(Feed(reader, "re"), Strings{});
  EXPECT_EQ(Feed(reader, "e\nfour\n"), (Strings{"three", "four"}));
  EXPECT_FALSE(reader.inside_line());
  EXPECT_EQ(Feed(reader, ""), Strings{});
}

TEST(LineReader, ALineThatEndsAReadIsNotCutOff) {
  LineReader reader;
  Feed(reader, "ab");
  std::string_view bytes = "c\n";
  EXPECT_EQ(*reader.Next(bytes).value(), "abc");
  EXPECT_FALSE(reader.inside_line());
}

TEST(LineReader, SkipsEmptyLines) {
  LineReader reader;
  EXPECT_EQ(Feed(reader, "\n\na\n\n"), Strings{"a"});
}

TEST(LineReader, ALineOfTheGreatestLengthPassesAndOneMoreByteDoesNot) {
  LineReader reader(4);
  EXPECT_EQ(Feed(reader, "abcd\nabcde\nx\n"), (Strings{"abcd", "!", "x"}));
  EXPECT_EQ(Feed(reader, "ab"), Strings{});
  EXPECT_EQ(Feed(reader, "cd\n"), Strings{"abcd"});
  EXPECT_EQ(Feed(reader, "abc"), Strings{});
  EXPECT_EQ(Feed(reader, "de"), Strings{"!"});
  EXPECT_TRUE(reader.inside_line());
  EXPECT_EQ(Feed(reader, "fghijklmn"), Strings{});
  EXPECT_EQ(Feed(reader, "op\nok\n"), Strings{"ok"});
}

TEST(LineReader, CC_04_AnOversizedMessageIsRefusedBeforeItIsHeldInMemory) {
  LineReader reader;
  const std::string read(64 << 10, 'x');
  size_t refused = 0;
  for (int i = 0; i < 1024; ++i) {  // 64 MiB without a newline
    refused += Feed(reader, read).size();
    EXPECT_LE(reader.held_bytes(), 2 * kMaxLineBytes);
  }
  EXPECT_EQ(refused, 1u);
  EXPECT_LT(reader.held_bytes(), 64u);
  EXPECT_EQ(Feed(reader, "\nnext\n"), Strings{"next"});
}

TEST(LineReader, HowBytesAreCutIntoReadsMakesNoDifference) {
  std::mt19937 random(7);
  std::string stream;
  for (int i = 0; i < 3000; ++i)
    stream += random() % 6 == 0 ? '\n' : static_cast<char>('a' + random() % 3);
  LineReader whole(8);
  const Strings expected = Feed(whole, stream);
  for (int round = 0; round < 50; ++round) {
    LineReader reader(8);
    Strings lines;
    for (std::string_view rest = stream; !rest.empty();) {
      const std::string piece(rest.substr(0, 1 + random() % 20));
      rest.remove_prefix(piece.size());
      for (std::string& line : Feed(reader, piece)) lines.push_back(std::move(line));
    }
    EXPECT_EQ(lines, expected);
  }
}

}  // namespace
}  // namespace sandglass::control
