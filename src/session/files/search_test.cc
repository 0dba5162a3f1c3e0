// Glob and Grep over real trees.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "session/files/glob.h"
#include "session/files/grep.h"
#include "session/files/text_encoding.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::session::files {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Strings = std::vector<std::string>;

class SearchTest : public testing::Test {
 protected:
  Strings GlobPaths(GlobRequest request) {
    request.order = GlobOrder::kName;
    const auto result = Glob(root_.get(), request);
    if (!result.ok()) return {"ERROR " + result.error().ToString()};
    Strings paths;
    for (const GlobMatch& match : result->matches) paths.push_back(match.path);
    return paths;
  }

  GrepResult Found(const GrepRequest& request) {
    auto result = Grep(root_.get(), request);
    EXPECT_TRUE(result.ok()) << result.error().ToString();
    return result.ok() ? std::move(*result) : GrepResult();
  }
  // "path:line" of each match.
  Strings Lines(const GrepRequest& request) {
    Strings lines;
    for (const GrepFile& file : Found(request).files) {
      for (const GrepLine& line : file.lines) {
        if (line.kind == LineKind::kMatch)
          lines.push_back(fmt::format("{}:{}", file.path, line.number));
      }
    }
    return lines;
  }
  Strings Files(GrepRequest request) {
    request.mode = GrepMode::kFilesWithMatches;
    Strings paths;
    for (const GrepFile& file : Found(request).files) paths.push_back(file.path);
    return paths;
  }

  void Write(std::string_view path, std::string_view content = "x\n") {
    workspace_.WriteFile(path, content);
  }

  test::TempWorkspace workspace_;
  Fd root_{::open(workspace_.project().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
};
using GlobTest = SearchTest;
using GrepTest = SearchTest;

TEST_F(GlobTest, FindsWhatMatches) {
  for (const char* path : {"a.cc", "src/b.cc", "src/deep/c.cc", "src/d.h", "src.cc/e"}) Write(path);
  EXPECT_THAT(GlobPaths({.pattern = "**/*.cc"}), ElementsAre("a.cc", "src/b.cc", "src/deep/c.cc"));
  EXPECT_THAT(GlobPaths({.pattern = "*.cc"}), ElementsAre("a.cc"));
  EXPECT_THAT(GlobPaths({.pattern = "src/*.{cc,h}"}), ElementsAre("src/b.cc", "src/d.h"));
  EXPECT_THAT(GlobPaths({.pattern = "*.cc", .folder = "src"}), ElementsAre("src/b.cc"));
  EXPECT_THAT(GlobPaths({.pattern = "s*", .kinds = WalkKinds::kEverything}),
              ElementsAre("src", "src.cc"));
  EXPECT_THAT(GlobPaths({.pattern = "none/*"}), IsEmpty());
}

TEST_F(GlobTest, RespectsNestedRulesExcludesAndNegation) {
  Write(".gitignore", "*.o\n/build/\n!keep.o\n");
  Write(".git/info/exclude", "secret\n");
  Write("sub/.gitignore", "!special.o\n/local\n");
  for (const char* path : {"a.o", "keep.o", "build/x", "sub/build/x", "sub/special.o", "sub/b.o",
                           "sub/local", "local", "secret", ".git/config"})
    Write(path);
  EXPECT_THAT(GlobPaths({.pattern = "**"}),
              ElementsAre("keep.o", "local", "sub/build/x", "sub/special.o"));
  // Its own folder is looked into when it is asked for by name.
  EXPECT_THAT(GlobPaths({.pattern = "*", .folder = "build"}), ElementsAre("build/x"));
  // The rules of folders above count below too.
  EXPECT_THAT(GlobPaths({.pattern = "*.o", .folder = "sub"}), ElementsAre("sub/special.o"));
  EXPECT_EQ(GlobPaths({.pattern = "**/*.o", .ignore = IgnoreRules::kDisregard}).size(), 4u);
}

TEST_F(GlobTest, HiddenFilesOnlyWhenAskedForAndNeverTheRepository) {
  for (const char* path : {".env", ".github/a.yml", "b.yml", ".git/config"}) Write(path);
  EXPECT_THAT(GlobPaths({.pattern = "**"}), ElementsAre("b.yml"));
  EXPECT_THAT(GlobPaths({.pattern = "**", .hidden = Hidden::kInclude}),
              ElementsAre(".env", ".github/a.yml", "b.yml"));
  EXPECT_THAT(GlobPaths({.pattern = ".github/*"}), ElementsAre(".github/a.yml"));
  EXPECT_THAT(
      GlobPaths({.pattern = "**", .hidden = Hidden::kInclude, .ignore = IgnoreRules::kDisregard}),
      ElementsAre(".env", ".git/config", ".github/a.yml", "b.yml"));
}

TEST_F(GlobTest, NewestFirstInPages) {
  for (int i = 0; i < 30; ++i) {
    const std::string path = fmt::format("f{:02}", i);
    Write(path);
    const timespec times[2] = {{1'000 + (i * 7) % 30, 0}, {1'000 + (i * 7) % 30, 0}};
    test::MustCall(::utimensat(AT_FDCWD, workspace_.Path(path).c_str(), times, 0), "utimensat");
  }
  Strings all;
  int64_t last = INT64_MAX;
  for (size_t offset = 0;; offset += 7) {
    const auto page = Glob(root_.get(), {.pattern = "*", .offset = offset, .limit = 7});
    ASSERT_TRUE(page.ok());
    EXPECT_EQ(page->total, 30u);
    for (const GlobMatch& match : page->matches) {
      EXPECT_LT(match.mtime_ns, last);
      last = match.mtime_ns;
      all.push_back(match.path);
    }
    if (!page->more) break;
  }
  EXPECT_EQ(all.size(), 30u);
}

TEST_F(GlobTest, NeitherFollowsLinksNorLeavesTheProject) {
  Write("real/a");
  test::MustCall(::symlink("/etc", workspace_.Path("etc").c_str()), "symlink");
  test::MustCall(::symlink("real", workspace_.Path("link").c_str()), "symlink");
  EXPECT_THAT(GlobPaths({.pattern = "**"}), ElementsAre("etc", "link", "real/a"));
  EXPECT_THAT(GlobPaths({.pattern = "etc/passwd"}), IsEmpty());
  EXPECT_THAT(GlobPaths({.pattern = "*", .folder = "etc"})[0], testing::HasSubstr("not followed"));
  EXPECT_THAT(GlobPaths({.pattern = "../*"})[0], testing::HasSubstr("outside_root"));
  EXPECT_THAT(GlobPaths({.pattern = "*", .folder = "real/a"})[0], testing::HasSubstr("no folder"));
}

TEST_F(GlobTest, LimitsAreRefusedInsteadOfAnsweredHalf) {
  EXPECT_EQ(Glob(root_.get(), {.pattern = "*", .limit = 0}).error().code(), Code::kInvalid);
  EXPECT_EQ(Glob(root_.get(), {.pattern = "*", .offset = SIZE_MAX}).error().code(), Code::kInvalid);
}

TEST_F(GlobTest, ALargeFolderAndManySmallOnesAreAllVisited) {
  for (int i = 0; i < 1'000; ++i) Write(fmt::format("large/{}", i), "");
  for (int i = 0; i < 200; ++i) Write(fmt::format("small/{}/{}", i % 50, i), "");
  EXPECT_EQ(GlobPaths({.pattern = "**", .limit = 10'000}).size(), 1'200u);
  EXPECT_EQ(Glob(root_.get(), {.pattern = "**", .limit = 10})->total, 1'200u);
}

TEST_F(GlobTest, CanBeCancelled) {
  Write("a");
  std::stop_source source;
  source.request_stop();
  const auto result = Glob(root_.get(), {.pattern = "**", .stop = source.get_token()});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), Code::kCancelled);
}

TEST_F(GrepTest, FindsLinesInTheOrderOfPaths) {
  Write("b.txt", "one\ntwo\nthree two\n");
  Write("a/c.txt", "two\n");
  Write("a.txt", "none\n");
  EXPECT_THAT(Lines({.pattern = {"two"}}), ElementsAre("a/c.txt:1", "b.txt:2", "b.txt:3"));
  EXPECT_THAT(Lines({.pattern = {"^t\\w+$"}}), ElementsAre("a/c.txt:1", "b.txt:2"));
  EXPECT_THAT(
      Lines({.pattern = {"TWO", PatternKind::kExpression, LetterCase::kInsensitive}, .path = "a"}),
      ElementsAre("a/c.txt:1"));
  EXPECT_THAT(Lines({.pattern = {"two"}, .path = "b.txt"}), ElementsAre("b.txt:2", "b.txt:3"));
}

TEST_F(GrepTest, HasThreeModes) {
  Write("a", "x\ny\nx\n");
  Write("b", "y\n");
  Write("c", "x\n");
  EXPECT_THAT(Files({.pattern = {"x"}}), ElementsAre("a", "c"));
  const GrepResult counted = Found({.pattern = {"x"}, .mode = GrepMode::kCount});
  ASSERT_EQ(counted.files.size(), 2u);
  EXPECT_EQ(counted.files[0].matches, 2u);
  EXPECT_TRUE(counted.files[0].lines.empty());
  EXPECT_EQ(counted.counts.searched, 3u);
}

TEST_F(GrepTest, FiltersByGlobs) {
  for (const char* path : {"a.cc", "a.h", "src/b.cc", "src/b_test.cc"}) Write(path);
  const Strings sources = {"*.cc"}, no_tests = {"*.cc", "!*_test.cc"}, below = {"src/*"},
                excluded = {"!src/**"};
  EXPECT_THAT(Files({.pattern = {"x"}, .globs = sources}),
              ElementsAre("a.cc", "src/b.cc", "src/b_test.cc"));
  EXPECT_THAT(Files({.pattern = {"x"}, .globs = no_tests}), ElementsAre("a.cc", "src/b.cc"));
  EXPECT_THAT(Files({.pattern = {"x"}, .globs = below}), ElementsAre("src/b.cc", "src/b_test.cc"));
  EXPECT_THAT(Files({.pattern = {"x"}, .globs = excluded}), ElementsAre("a.cc", "a.h"));
}

TEST_F(GrepTest, LeavesOutBinaryIgnoredAndHiddenFiles) {
  Write(".gitignore", "*.log\n");
  Write("a.log");
  Write(".hidden");
  Write("binary", std::string("x\0x\n", 4));
  Write("text");
  EXPECT_THAT(Files({.pattern = {"x"}}), ElementsAre("text"));
  EXPECT_EQ(Found({.pattern = {"x"}}).counts.binary, 1u);
  EXPECT_THAT(Files({.pattern = {"x"}, .hidden = Hidden::kInclude}),
              ElementsAre(".hidden", "text"));
  EXPECT_THAT(Files({.pattern = {"x"}, .ignore = IgnoreRules::kDisregard}),
              ElementsAre("a.log", "text"));
  EXPECT_THAT(Files({.pattern = {"x"}, .path = "a.log"}), ElementsAre("a.log"));
}

TEST_F(GrepTest, ReadsTextWithMarks) {
  Write("utf8", "\xEF\xBB\xBFx\n");
  Write("utf16", "\xFF\xFE" + EncodeUtf16(u"a\n\u00E4x\n", Encoding::kUtf16Le));
  EXPECT_THAT(Lines({.pattern = {"^x"}}), ElementsAre("utf8:1"));
  EXPECT_THAT(Lines({.pattern = {"\xC3\xA4x"}}), ElementsAre("utf16:2"));
}

TEST_F(GrepTest, PagesJoinToTheWholeWhateverTheirSize) {
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (int line = 0; line < i % 5; ++line) text += line % 2 == 0 ? "x\n" : "y\nx\n";
    Write(fmt::format("d{}/f{}", i % 7, i), text);
  }
  const Strings all = Lines({.pattern = {"x"}, .limit = 100'000});
  for (const size_t limit : {1u, 3u, 10u, 599u, 600u, 601u}) {
    Strings joined;
    GrepRequest request{.pattern = {"x"}, .before = 1, .after = 1, .limit = limit};
    while (true) {
      const GrepResult page = Found(request);
      size_t matches = 0;
      for (const GrepFile& file : page.files) {
        for (const GrepLine& line : file.lines) {
          if (line.kind == LineKind::kMatch)
            joined.push_back(fmt::format("{}:{}", file.path, line.number));
        }
        matches += file.matches;
      }
      EXPECT_LE(matches, limit);
      if (!page.next) break;
      EXPECT_EQ(matches, limit);
      request.after_page = page.next;
    }
    EXPECT_EQ(joined, all) << limit;
  }
}

TEST_F(GrepTest, PagesOfFilesJoinToTheWhole) {
  for (int i = 0; i < 50; ++i) Write(fmt::format("f{:02}", i));
  Strings joined;
  GrepRequest request{.pattern = {"x"}, .mode = GrepMode::kFilesWithMatches, .limit = 7};
  while (true) {
    const GrepResult page = Found(request);
    for (const GrepFile& file : page.files) joined.push_back(file.path);
    if (!page.next) break;
    request.after_page = page.next;
  }
  EXPECT_EQ(joined.size(), 50u);
  EXPECT_TRUE(std::ranges::is_sorted(joined));
}

TEST_F(GrepTest, LargeFilesAreReadInPieces) {
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += "some line of text without it\n";
  text += "needle\n" + text + "needle";
  Write("large", text);
  EXPECT_THAT(Lines({.pattern = {"needle"}}), ElementsAre("large:60001", "large:120002"));
  Write("long", std::string(3 << 20, 'a') + "needle" + std::string(3 << 20, 'b') + "\nneedle\n");
  EXPECT_THAT(Lines({.pattern = {"needle"}, .path = "long"}), ElementsAre("long:1", "long:2"));
}

TEST_F(GrepTest, ALineBeyondEveryMeasureIsTakenAsSeveral) {
  Write("endless", std::string(20 << 20, 'a') + "needle");
  EXPECT_EQ(Files({.pattern = {"needle"}}).size(), 1u);
}

TEST_F(GrepTest, FollowsNoLinksAndWaitsForNobody) {
  Write("real/a");
  test::MustCall(::symlink("real/a", workspace_.Path("link").c_str()), "symlink");
  test::MustCall(::symlink("/etc", workspace_.Path("etc").c_str()), "symlink");
  test::MustCall(::mkfifo(workspace_.Path("fifo").c_str(), 0600), "mkfifo");
  EXPECT_THAT(Files({.pattern = {"x"}}), ElementsAre("real/a"));
  EXPECT_THAT(Files({.pattern = {"x"}, .path = "link"}), ElementsAre("link"));
  EXPECT_EQ(Grep(root_.get(), {.pattern = {"x"}, .path = "etc"}).error().code(),
            Code::kOutsideRoot);
  EXPECT_EQ(Grep(root_.get(), {.pattern = {"x"}, .path = "fifo"}).error().code(), Code::kInvalid);
}

TEST_F(GrepTest, RefusesWhatMakesNoSense) {
  const Strings bad_glob = {"[a"};
  EXPECT_EQ(Grep(root_.get(), {.pattern = {"("}}).error().code(), Code::kInvalid);
  EXPECT_EQ(Grep(root_.get(), {.pattern = {"x"}, .globs = bad_glob}).error().code(),
            Code::kInvalid);
  EXPECT_EQ(Grep(root_.get(), {.pattern = {"x"}, .before = 1'000}).error().code(), Code::kInvalid);
  EXPECT_EQ(Grep(root_.get(), {.pattern = {"x"}, .limit = 0}).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace sandglass::session::files
