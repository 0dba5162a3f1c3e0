#include "base/printable.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <limits>
#include <string>

namespace sandglass {
namespace {

TEST(Printable, OrdinaryNamesStayAsTheyAre) {
  for (const std::string name :
       {"", "src/main.cc", "a b", "grün/日本.txt", "back\\slash", "\U0001F600"}) {
    EXPECT_EQ(PrintableName(name), name);
  }
}

TEST(Printable, WhatCouldSteerATerminalIsEscaped) {
  EXPECT_EQ(PrintableName("a\nb"), "a\\nb");
  EXPECT_EQ(PrintableName("a\tb"), "a\\tb");
  EXPECT_EQ(PrintableName("\033[2J"), "\\x1b[2J");
  EXPECT_EQ(PrintableName("del\x7f"), "del\\x7f");
  EXPECT_EQ(PrintableName("\xc2\x9b"
                          "31m"),
            "\\xc2\\x9b31m");
}

TEST(Printable, InvalidUtf8IsEscapedByteByByte) {
  EXPECT_EQ(PrintableName("x\xff\xfe"), "x\\xff\\xfe");
  EXPECT_EQ(PrintableName("cut\xe6\x97"), "cut\\xe6\\x97");
  EXPECT_EQ(PrintableName("\xc3\xa4\xff"), "\xc3\xa4\\xff");
}

TEST(Printable, TwoNamesNeverLookTheSame) { EXPECT_EQ(PrintableName("a\\n\n"), "a\\\\n\\n"); }

TEST(Printable, TextKeepsItsLines) {
  EXPECT_EQ(PrintableText("a\n\tb\\c\033x\r\n"), "a\n\tb\\c\\x1bx\\x0d\n");
}

TEST(Printable, SizesHaveOneDecimal) {
  EXPECT_EQ(PrintableSize(0), "0 B");
  EXPECT_EQ(PrintableSize(1023), "1023 B");
  EXPECT_EQ(PrintableSize(1024), "1.0 KiB");
  EXPECT_EQ(PrintableSize(1536), "1.5 KiB");
  EXPECT_EQ(PrintableSize((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(PrintableSize(5ull << 30), "5.0 GiB");
  EXPECT_EQ(PrintableSize(std::numeric_limits<uint64_t>::max()), "16.0 EiB");
}

TEST(Printable, TimesAreLocal) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  EXPECT_EQ(PrintableTime({1'700'000'000'999'999'999}), "2023-11-14 22:13:20");
  EXPECT_EQ(PrintableTime({0}), "1970-01-01 00:00:00");
}

}  // namespace
}  // namespace sandglass
