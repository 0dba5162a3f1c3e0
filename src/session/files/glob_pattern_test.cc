#include "session/files/glob_pattern.h"

#include <gtest/gtest.h>

namespace sandglass::session::files {
namespace {

struct Case {
  std::string_view pattern, path;
  bool matches;
  GlobAnchor anchor = GlobAnchor::kPath;
};

constexpr Case kCases[] = {
    {"a.cc", "a.cc", true},
    {"a.cc", "axcc", false},
    {"*.cc", "a.cc", true},
    {"*.cc", "d/a.cc", false},
    {"*.cc", "d/e/a.cc", true, GlobAnchor::kNameOrPath},
    {"d/*.cc", "x/d/a.cc", false, GlobAnchor::kNameOrPath},
    {"**/*.cc", "a.cc", true},
    {"**/*.cc", "d/e/a.cc", true},
    {"src/**", "src/a/b", true},
    {"src/**", "src", false},
    {"src/**/b", "src/b", true},
    {"src/**/b", "src/x/y/b", true},
    {"src/**/b", "src/xb", false},
    {"**", "a/b/c", true},
    {"a**b", "axxb", true},
    {"a**b", "ax/xb", false},
    {"?.cc", "a.cc", true},
    {"?.cc", "\xC3\xA4.cc", true},
    {"?.cc", "ab.cc", false},
    {"a?b", "a/b", false},
    {"[a-c]x", "bx", true},
    {"[!a-c]x", "bx", false},
    {"[!a-c]x", "dx", true},
    {"[^a-c]x", "dx", true},
    {"[]x]", "]", true},
    {"[a-]", "-", true},
    {"[\\]]", "]", true},
    {"[\xC3\xA4o]", "\xC3\xA4", true},
    {"[.-0]", "/", false},
    {"[!a]b", "/b", false},
    {"*.{cc,h}", "a.h", true},
    {"*.{cc,h}", "a.hh", false},
    {"{src,tests/{a,b}}/*.cc", "tests/b/x.cc", true},
    {"{**/,}x", "d/x", true},
    {"{**,a}/x", "d/e/x", true},
    {"a,b", "a,b", true},
    {"a}", "a}", true},
    {"\\*", "*", true},
    {"\\*", "a", false},
    {"a+(b)$^|", "a+(b)$^|", true},
    {"./a", "a", true},
    {"*", "\xFF\xFE", true},
    {"*", "a\nb", true},
};

TEST(GlobPattern, MatchesWhatTheTableSays) {
  for (const Case& c : kCases) {
    const auto pattern = GlobPattern::Compile(c.pattern, c.anchor);
    ASSERT_TRUE(pattern.ok()) << c.pattern;
    EXPECT_EQ(pattern->Matches(c.path), c.matches) << c.pattern << " and " << c.path;
  }
}

TEST(GlobPattern, RefusesWhatIsNoPattern) {
  for (const std::string_view pattern :
       {"", "{a", "[a", "[b-a]", "\\", "[a/b]", "[!\xC3\xA4]", "/etc/*", "[\xC3"}) {
    const auto compiled = GlobPattern::Compile(pattern, GlobAnchor::kPath);
    ASSERT_FALSE(compiled.ok()) << pattern;
    EXPECT_EQ(compiled.error().code(), Code::kInvalid);
  }
  EXPECT_FALSE(GlobPattern::Compile(std::string(5'000, 'a'), GlobAnchor::kPath).ok());
  EXPECT_FALSE(GlobPattern::Compile(std::string(100, '{'), GlobAnchor::kPath).ok());
}

TEST(GlobPattern, KnowsTheFolderThatEveryMatchLiesIn) {
  const auto folder = [](std::string_view pattern) {
    return GlobPattern::Compile(pattern, GlobAnchor::kPath)->literal_folder();
  };
  EXPECT_EQ(folder("src/lib/*.cc"), "src/lib");
  EXPECT_EQ(folder("src/l*b/x.cc"), "src");
  EXPECT_EQ(folder("*.cc"), "");
  EXPECT_EQ(folder("src/main.cc"), "src");
}

TEST(GlobPattern, KnowsWhetherItNamesSomethingHidden) {
  const auto hidden = [](std::string_view pattern) {
    return GlobPattern::Compile(pattern, GlobAnchor::kPath)->names_hidden();
  };
  EXPECT_TRUE(hidden(".github/*.yml"));
  EXPECT_TRUE(hidden("**/.env"));
  EXPECT_TRUE(hidden("{a,.b}"));
  EXPECT_FALSE(hidden("a.cc"));
}

}  // namespace
}  // namespace sandglass::session::files
