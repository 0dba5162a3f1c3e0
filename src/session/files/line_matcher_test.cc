#include "session/files/line_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace sandglass::session::files {
namespace {

std::optional<size_t> Find(LinePattern pattern, std::string_view text, size_t from = 0) {
  return LineMatcher::Compile(pattern)->Find(text, from);
}

TEST(LineMatcher, FindsTextAndExpressions) {
  EXPECT_EQ(Find({"b"}, "abc"), 1u);
  EXPECT_EQ(Find({"b+c"}, "abbc"), 1u);
  EXPECT_EQ(Find({"a.c", PatternKind::kLiteral}, "abc a.c"), 4u);
  EXPECT_EQ(Find({"a\\.c"}, "abc a.c"), 4u);
  EXPECT_EQ(Find({"B", PatternKind::kExpression, LetterCase::kInsensitive}, "abc"), 1u);
  EXPECT_EQ(Find({"b.", PatternKind::kLiteral, LetterCase::kInsensitive}, "bc B."), 3u);
  EXPECT_EQ(Find({"x"}, "abc"), std::nullopt);
  EXPECT_EQ(Find({"\xC3\xA4+"}, "a\xC3\xA4\xC3\xA4"), 1u);
}

TEST(LineMatcher, NeverMatchesAcrossLines) {
  EXPECT_EQ(Find({"a\\s*b"}, "a\nb"), std::nullopt);
  EXPECT_EQ(Find({"a[^x]b"}, "a\nb"), std::nullopt);
  EXPECT_EQ(Find({"(?s)a.b"}, "a\nb"), std::nullopt);
}

TEST(LineMatcher, AnchorsAreThoseOfLines) {
  EXPECT_EQ(Find({"^b$"}, "ab\nb\nbc"), 3u);
  EXPECT_EQ(Find({"^b"}, "ab\nb", 3), 3u);
  EXPECT_EQ(Find({"foo$"}, "foo bar\nfoo\n"), 8u);
  EXPECT_EQ(Find({"\\bfoo\\b"}, "xfoo foox foo"), 10u);
  EXPECT_EQ(Find({"^$"}, "a\n\nb"), 2u);
}

TEST(LineMatcher, WhatIsWrongWithAnExpressionIsTold) {
  for (const std::string_view text : {"(", "a**", "[z-a]", "(?<n>a)(", "\\", "a{2000}", "(?=a)"}) {
    const auto matcher = LineMatcher::Compile({text});
    ASSERT_FALSE(matcher.ok()) << text;
    EXPECT_EQ(matcher.error().code(), Code::kInvalid);
    EXPECT_THAT(matcher.error().message(), testing::HasSubstr(text));
  }
  EXPECT_FALSE(LineMatcher::Compile({"\xFF"}).ok());
  EXPECT_FALSE(LineMatcher::Compile({"a\nb"}).ok());
  // What is wrong alone must not become right behind what we put before it.
  EXPECT_FALSE(LineMatcher::Compile({"a)(b"}).ok());
}

TEST(LineMatcher, RequiredTextIsInEveryMatch) {
  EXPECT_EQ(RequiredText("foo\\s+barbaz"), "barbaz");
  EXPECT_EQ(RequiredText("foobar?"), "fooba");
  EXPECT_EQ(RequiredText("foobar*x"), "fooba");
  EXPECT_EQ(RequiredText("foo+"), "foo");
  EXPECT_EQ(RequiredText("fo{0,2}x"), "f");
  EXPECT_EQ(RequiredText("a|b"), "");
  EXPECT_EQ(RequiredText("foo(bar|baz)"), "");
  EXPECT_EQ(RequiredText("foo(bar)?"), "foo");
  EXPECT_EQ(RequiredText("foo[ab]*"), "foo");
  EXPECT_EQ(RequiredText("(?i)foo"), "");
  EXPECT_EQ(RequiredText("a\\.b\\wc"), "a.b");
  EXPECT_EQ(RequiredText("x\xC3\xA4?"), "x");
  EXPECT_EQ(RequiredText("\\x41bc"), "");
}

TEST(LineMatcher, HostileExpressionsTakeLinearTime) {
  const std::string text(1 << 20, 'a');
  const std::clock_t start = std::clock();
  EXPECT_EQ(Find({"(a+)+$x"}, text), std::nullopt);
  EXPECT_EQ(Find({"(a|aa)*b"}, text), std::nullopt);
  EXPECT_LT(std::clock() - start, 10 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace sandglass::session::files
