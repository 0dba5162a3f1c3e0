#include "undo/gitignore.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace sandglass::undo {
namespace {

using std::string_literals::operator""s;

// ---- Rules ----

Verdict MatchFile(std::string_view rules, std::string_view path) {
  return GitignoreRules::Parse(rules).Match(path, PathKind::kFile);
}
Verdict MatchDir(std::string_view rules, std::string_view path) {
  return GitignoreRules::Parse(rules).Match(path, PathKind::kDir);
}

struct Case {
  std::string rules;
  std::string path;
  Verdict verdict;
};

void ExpectAll(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(MatchFile(c.rules, c.path), c.verdict)
        << "rules: " << c.rules << "\npath: " << c.path;
  }
}

constexpr Verdict kYes = Verdict::kIgnored;
constexpr Verdict kNo = Verdict::kNone;

TEST(GitignoreRules, EmptyLinesAndCommentsSayNothing) {
  EXPECT_TRUE(GitignoreRules::Parse("").empty());
  EXPECT_TRUE(GitignoreRules::Parse("\n\n# comment\n   \n\r\n/\n!\n!/\n//\n").empty());
}

TEST(GitignoreRules, LinesAreReadAsGitReadsThem) {
  ExpectAll({
      {"foo", "foo", kYes},
      {"foo\r\nbar", "foo", kYes},
      {"foo\nbar\r", "bar", kYes},
      {"foo\r\r\n", "foo\r", kYes},
      {"\xef\xbb\xbf"
       "foo",
       "foo", kYes},
      {"a\n\xef\xbb\xbf"
       "foo",
       "foo", kNo},
      {"foo  \t ", "foo  \t", kYes},
      {"foo   ", "foo", kYes},
      {"foo\\ ", "foo ", kYes},
      {"foo\\  ", "foo ", kYes},
      {"foo\\", "foo", kNo},
      {"foo\\", "foo\\", kNo},
      {" foo", "foo", kNo},
      {" foo", " foo", kYes},
      {"#foo", "#foo", kNo},
      {"\\#foo", "#foo", kYes},
      {"\\!foo", "!foo", kYes},
      {"foo\0bar"s, "foo", kYes},
      {"foo\0bar\nbaz"s, "baz", kYes},
  });
}

TEST(GitignoreRules, TheLastMatchingRuleDecides) {
  EXPECT_EQ(MatchFile("*.log\n!keep.log", "keep.log"), Verdict::kIncluded);
  EXPECT_EQ(MatchFile("!keep.log\n*.log", "keep.log"), Verdict::kIgnored);
  EXPECT_EQ(MatchFile("*.log\n!keep.log", "a/other.log"), Verdict::kIgnored);
  EXPECT_EQ(MatchFile("*.log\n!keep.log", "main.cc"), Verdict::kNone);
}

TEST(GitignoreRules, ASlashBeforeTheEndAnchorsThePattern) {
  ExpectAll({
      {"foo", "a/b/foo", kYes},
      {"/foo", "foo", kYes},
      {"/foo", "a/foo", kNo},
      {"a/foo", "a/foo", kYes},
      {"a/foo", "b/a/foo", kNo},
      {"a/foo", "a/foo/b", kNo},
      {"*/foo", "a/foo", kYes},
      {"*/foo", "a/b/foo", kNo},
      {"//foo", "foo", kNo},
  });
}

TEST(GitignoreRules, ATrailingSlashMatchesDirectoriesOnly) {
  EXPECT_EQ(MatchFile("foo/", "foo"), kNo);
  EXPECT_EQ(MatchDir("foo/", "foo"), kYes);
  EXPECT_EQ(MatchDir("foo/", "a/foo"), kYes);
  EXPECT_EQ(MatchDir("/foo/", "a/foo"), kNo);
  EXPECT_EQ(MatchDir("a/**/", "a/b/c"), kYes);
}

TEST(GitignoreRules, WildcardsStopAtSlashes) {
  ExpectAll({
      {"*", "a/b", kYes},
      {"/*", "a/b", kNo},
      {"*.c", "x/main.c", kYes},
      {"a*z", "abcz", kYes},
      {"a*z", "az", kYes},
      {"/a*z", "a/z", kNo},
      {"a?c", "abc", kYes},
      {"a?c", "ac", kNo},
      {"/a?c", "a/c", kNo},
      {"?", "\xff", kYes},
      {"??", "\xc3\xa9", kYes},
      {"a\\*c", "a*c", kYes},
      {"a\\*c", "abc", kNo},
      {"a\\bc", "abc", kYes},
      {"FOO", "foo", kNo},
  });
}

TEST(GitignoreRules, DoubleStarsCrossDirectories) {
  ExpectAll({
      {"**/foo", "foo", kYes},
      {"**/foo", "a/b/foo", kYes},
      {"**/foo", "a/xfoo", kNo},
      {"**/a/foo", "x/y/a/foo", kYes},
      {"a/**", "a/b/c", kYes},
      {"a/**", "a", kNo},
      {"a/**/b", "a/b", kYes},
      {"a/**/b", "a/x/y/b", kYes},
      {"a/**/b", "ax/b", kNo},
      {"a/***/b", "a/x/b", kYes},
      {"a/**b", "a/x/b", kNo},
      {"a/**b", "a/xb", kYes},
      {"a/x*/**/b*/c", "a/x1/q/b/b2/c", kYes},
      {"**/a/**/b/**/c", "z/a/c/b/a/b/x/c", kYes},
      {"**", "a/b", kYes},
      {"/**", "a/b", kYes},
      {"a/**\\/b", "a/x/b", kYes},
      {"a/**\\/b", "a/b", kNo},
      // The literal start is compared apart, so the stars that follow it count as the pattern's
      // start.
      {"/ab**/c", "abX/Y/c", kYes},
      {"/a?b**/c", "axbX/Y/c", kNo},
  });
}

TEST(GitignoreRules, SetsFollowGit) {
  ExpectAll({
      {"[abc]", "b", kYes},
      {"[a-c]x", "bx", kYes},
      {"[!a-c]", "d", kYes},
      {"[^a-c]", "a", kNo},
      {"[]-]", "]", kYes},
      {"[]-]", "-", kYes},
      {"[!]]", "]", kNo},
      {"[a-]", "-", kYes},
      {"[\\]]", "]", kYes},
      {"[\\a-\\c]", "b", kYes},
      {"[z-a]", "m", kNo},
      {"[a-c-e]", "d", kNo},
      {"[a-c-e]", "-", kYes},
      {"[[:digit:]]", "7", kYes},
      {"[![:digit:]]", "7", kNo},
      {"[[:digit:]-z]", "-", kYes},
      {"[[:digit:]-z]", "m", kNo},
      {"[[:nosuch:]]", "n", kNo},
      {"[[::]]", ":", kNo},
      {"[[:]", ":", kYes},
      {"[[:]", "[", kYes},
      {"[[:alpha]", "[", kYes},
      {"[a", "a", kNo},
      {"[", "[", kNo},
      {"[]", "]", kNo},
      {"[a\\", "a", kNo},
      {"[a-\\", "a", kNo},
      {"x/a[/]b", "x/a/b", kNo},
      {"x/a[!z]b", "x/a/b", kNo},
      {"x/a[.-0]b", "x/a/b", kNo},
      {"[\x80-\xff]", "\xc3", kYes},
  });
}

TEST(GitignoreRules, BadPatternsLeaveTheOthersAlone) {
  ExpectAll({
      {"[b-d]\n[a\n[[:x:]]\nq[z]", "qz", kYes},
      {"[b-d]\n[a\n[[:x:]]\nq[z]", "c", kYes},
      {"[b-d]\n[a\n[[:x:]]\nq[z]", "a", kNo},
  });
}

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

TEST(GitignoreRules, ManyStarsDoNotBlowUp) {
  std::string stars;
  std::string deep = "/";
  for (int i = 0; i < 60; ++i) {
    stars += "*a";
    deep += "**/a*a/";
  }
  std::string path;
  for (int i = 0; i < 800; ++i) path += "aaaa/";
  const double start = CpuSeconds();
  EXPECT_EQ(MatchFile(stars + "*b", std::string(255, 'a')), kNo);
  EXPECT_EQ(MatchFile("/x\n" + deep + "b", path + "c"), kNo);
  EXPECT_EQ(MatchFile("**/" + stars + "b/c", path + "c"), kNo);
  EXPECT_LT(CpuSeconds() - start, 1.0);
}

TEST(GitignoreRules, RulesThatAllowEverythingOverrideWhateverStandsBefore) {
  std::mt19937 rng(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t size = rng() % 40; size > 0; --size)
      text += "*?[]!-\\/ab:\n\r #^\0\xff"[rng() % 18];
    const std::string path = round % 2 == 0 ? "a/b" : "a]";
    EXPECT_EQ(MatchFile(text + "\n*", path), Verdict::kIgnored) << text;
    EXPECT_EQ(MatchFile(text + "\n!*", path), Verdict::kIncluded) << text;
  }
}

}  // namespace
}  // namespace sandglass::undo
