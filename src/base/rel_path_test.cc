#include "base/rel_path.h"

#include <gtest/gtest.h>

#include <climits>
#include <string>

namespace sandglass {
namespace {

using std::string_view_literals::operator""sv;

std::string Normal(std::string_view raw) {
  auto path = NormalizeRelPath(raw);
  return path.ok() ? *path : path.error().ToString();
}

Code CodeOf(std::string_view raw) {
  const auto path = NormalizeRelPath(raw);
  CHECK(!path.ok());
  return path.error().code();
}

TEST(NormalizeRelPath, KeepsAPathThatIsNormalAlready) {
  EXPECT_EQ(Normal("a"), "a");
  EXPECT_EQ(Normal("src/base/io.cc"), "src/base/io.cc");
  EXPECT_EQ(Normal("..."), "...");
  EXPECT_EQ(Normal(".hidden/..x/y.."), ".hidden/..x/y..");
}

TEST(NormalizeRelPath, CollapsesSlashesAndDots) {
  EXPECT_EQ(Normal("a//b"), "a/b");
  EXPECT_EQ(Normal("./a/./b/."), "a/b");
  EXPECT_EQ(Normal("a/b///"), "a/b");
}

TEST(NormalizeRelPath, TheRootItselfIsTheEmptyPath) {
  EXPECT_EQ(Normal(""), "");
  EXPECT_EQ(Normal("."), "");
  EXPECT_EQ(Normal(".//./"), "");
}

TEST(NormalizeRelPath, RefusesToLeaveTheRoot) {
  for (const auto raw : {"/", "/a", "//a", "..", "../a", "a/..", "a/../b", "a/b/../..", "./.."}) {
    EXPECT_EQ(CodeOf(raw), Code::kOutsideRoot) << raw;
  }
}

TEST(NormalizeRelPath, RefusesNulBytes) {
  EXPECT_EQ(CodeOf("\0"sv), Code::kInvalid);
  EXPECT_EQ(CodeOf("a\0b"sv), Code::kInvalid);
  EXPECT_EQ(CodeOf("a/b\0"sv), Code::kInvalid);
}

TEST(NormalizeRelPath, ANameMayHave255BytesAndNotOneMore) {
  const std::string longest(kMaxNameBytes, 'n');
  EXPECT_EQ(Normal("d/" + longest), "d/" + longest);
  EXPECT_EQ(CodeOf("d/" + longest + "n/x"), Code::kInvalid);
}

TEST(NormalizeRelPath, NamesAreBytes) {
  EXPECT_EQ(Normal("new\nline/\xff\xfe/tab\t \\"), "new\nline/\xff\xfe/tab\t \\");
}

TEST(NormalizeRelPath, APathMayBeLongerThanPathMax) {
  std::string path = "d";
  while (path.size() <= 10 * PATH_MAX) path += "/" + std::string(200, 'd');
  EXPECT_EQ(Normal(path), path);
}

TEST(JoinPath, TheRootAddsNoSlash) {
  EXPECT_EQ(JoinPath("", "a"), "a");
  EXPECT_EQ(JoinPath("a/b", "c"), "a/b/c");
  EXPECT_EQ(JoinPath("a", ""), "a");
  EXPECT_EQ(JoinPath("", ""), "");
}

TEST(ParentOf, TheParentOfATopLevelNameIsTheRoot) {
  EXPECT_EQ(ParentOf("a/b/c"), "a/b");
  EXPECT_EQ(ParentOf("a"), "");
  EXPECT_EQ(ParentOf(""), "");
}

TEST(BaseName, IsTheLastComponent) {
  EXPECT_EQ(BaseName("a/b/c"), "c");
  EXPECT_EQ(BaseName("a"), "a");
  EXPECT_EQ(BaseName(""), "");
}

TEST(IsBeneath, ComparesWholeComponents) {
  EXPECT_TRUE(IsBeneath("a/b", "a"));
  EXPECT_TRUE(IsBeneath("a/b/c", "a/b"));
  EXPECT_TRUE(IsBeneath("a", "a"));
  EXPECT_FALSE(IsBeneath("ab", "a"));
  EXPECT_FALSE(IsBeneath("a", "a/b"));
  EXPECT_FALSE(IsBeneath("b/a", "a"));
}

TEST(IsBeneath, EverythingIsBeneathTheRoot) {
  EXPECT_TRUE(IsBeneath("", ""));
  EXPECT_TRUE(IsBeneath("a/b", ""));
  EXPECT_FALSE(IsBeneath("", "a"));
}

TEST(PathBelow, IsWhatLeadsThereByWholeNames) {
  EXPECT_EQ(PathBelow("/a/b/c", "/a"), "b/c");
  EXPECT_EQ(PathBelow("/a//b", "/a"), "b");
  EXPECT_EQ(PathBelow("/a", "/a"), "");
  EXPECT_EQ(PathBelow("/a/b", "/"), "a/b");
  EXPECT_EQ(PathBelow("/", "/"), "");
  EXPECT_EQ(PathBelow("/ab", "/a"), std::nullopt);
  EXPECT_EQ(PathBelow("/", "/a"), std::nullopt);
  EXPECT_EQ(PathBelow("/b/a", "/a"), std::nullopt);
}

TEST(LiesIn, TheFolderItselfToo) {
  EXPECT_TRUE(LiesIn("/a/b", "/a"));
  EXPECT_TRUE(LiesIn("/a", "/a"));
  EXPECT_TRUE(LiesIn("/a", "/"));
  EXPECT_FALSE(LiesIn("/ab", "/a"));
  EXPECT_FALSE(LiesIn("/", "/a"));
}

TEST(PathDepth, CountsComponents) {
  EXPECT_EQ(PathDepth(""), 0U);
  EXPECT_EQ(PathDepth("a"), 1U);
  EXPECT_EQ(PathDepth("a/b/c"), 3U);
}

}  // namespace
}  // namespace sandglass
