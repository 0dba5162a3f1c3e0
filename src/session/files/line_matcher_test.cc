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

TEST(LineMatcher, RequiredTextsAreInEveryMatch) {
  using testing::ElementsAre;
  using testing::IsEmpty;
  EXPECT_THAT(RequiredTexts("foo\\s+barbaz"), ElementsAre("barbaz"));
  EXPECT_THAT(RequiredTexts("foobar?"), ElementsAre("fooba"));
  EXPECT_THAT(RequiredTexts("foobar*x"), ElementsAre("fooba"));
  EXPECT_THAT(RequiredTexts("foo+"), ElementsAre("foo"));
  EXPECT_THAT(RequiredTexts("fo{0,2}x"), IsEmpty());
  EXPECT_THAT(RequiredTexts("foo|barx"), ElementsAre("foo", "barx"));
  EXPECT_THAT(RequiredTexts("foo|b"), IsEmpty());
  EXPECT_THAT(RequiredTexts("foo(bar|baz)"), ElementsAre("foo"));
  EXPECT_THAT(RequiredTexts("x(?:bar|bazz)[|]"), ElementsAre("bar", "bazz"));
  EXPECT_THAT(RequiredTexts("(bar|baz)?foo"), IsEmpty());
  EXPECT_THAT(RequiredTexts("(barr|)x+foo"), ElementsAre("foo"));
  EXPECT_THAT(RequiredTexts("[|]foo"), IsEmpty());
  EXPECT_THAT(RequiredTexts("foo[|]|bar"), ElementsAre("foo", "bar"));
  EXPECT_THAT(RequiredTexts("foo[]|[:alpha:]]|b"), IsEmpty());
  EXPECT_THAT(RequiredTexts("foo(bar)?"), ElementsAre("foo"));
  EXPECT_THAT(RequiredTexts("foo[ab]*"), ElementsAre("foo"));
  EXPECT_THAT(RequiredTexts("(?i)foo"), IsEmpty());
  EXPECT_THAT(RequiredTexts("foo(?i)x|bar"), IsEmpty());
  EXPECT_THAT(RequiredTexts("\\Qa|b\\Efoo"), IsEmpty());
  EXPECT_THAT(RequiredTexts("a\\.b\\wc"), ElementsAre("a.b"));
  EXPECT_THAT(RequiredTexts("xy\xC3\xA4?"), ElementsAre("xy"));
  EXPECT_THAT(RequiredTexts("\\x41bc"), IsEmpty());
}

TEST(LineMatcher, FindsTheFirstOfSeveralTexts) {
  const std::string gap(20'000, '.');
  EXPECT_EQ(Find({"(needle|hay)[0-9]"}, gap + "needle hay1"), gap.size() + 7);
  EXPECT_EQ(Find({"needle|hay"}, gap + "hay needle"), gap.size());
  EXPECT_EQ(Find({"needle|hay"}, gap + "\nneed hey"), std::nullopt);
  // Across the edge of a block.
  const std::string edge(8'190, '.');
  EXPECT_EQ(Find({"needle|hay"}, edge + "needle"), edge.size());
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
