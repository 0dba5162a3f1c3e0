#include "undo/gitignore_filter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace sandglass::undo {
namespace {

namespace fs = std::filesystem;

class TempDir {
 public:
  TempDir() {
    const char* base = std::getenv("SANDGLASS_TEST_DIR");
    fs::path path = base != nullptr ? fs::path(base) : fs::temp_directory_path();
    std::string name = (path / "gitignore_filter_test.XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
    fd_ = Fd(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~TempDir() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const fs::path& path() const { return path_; }
  int fd() const { return fd_.get(); }

  void Write(const fs::path& rel, std::string_view content) const {
    fs::create_directories((path_ / rel).parent_path());
    std::ofstream(path_ / rel, std::ios::binary) << content;
  }
  std::string Read(const fs::path& rel) const {
    std::ifstream in(path_ / rel, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  fs::path path_;
  Fd fd_;
};

GitignoreFilter LoadOrDie(const TempDir& dir) {
  Result<GitignoreFilter> filter = GitignoreFilter::Load(dir.fd());
  if (!filter.ok()) ADD_FAILURE() << filter.error().ToString();
  return std::move(filter).value();
}

bool IgnoresFile(const GitignoreFilter& filter, std::string_view path) {
  return filter.Ignores(path, PathKind::kFile);
}

TEST(GitignoreFilter, AddedRulesAreOverruledByNoFileOfTheProject) {
  TempDir dir;
  dir.Write(".gitignore", "!kept.o\n*.log\n");
  GitignoreFilter filter = LoadOrDie(dir);
  filter.AddRules("*.o\n/build/");
  EXPECT_TRUE(IgnoresFile(filter, "kept.o"));
  EXPECT_TRUE(IgnoresFile(filter, "a/x.log"));
  EXPECT_TRUE(IgnoresFile(filter, "build/a"));
  EXPECT_FALSE(IgnoresFile(filter, "src/build"));
  EXPECT_FALSE(IgnoresFile(filter, ".git/x.o"));
}

TEST(GitignoreFilter, TheRepositoryIsIgnoredByAddedRulesThatNameIt) {
  TempDir dir;
  dir.Write(".gitignore", ".git/\n");
  GitignoreFilter filter = LoadOrDie(dir);
  EXPECT_FALSE(IgnoresFile(filter, ".git/index"));
  filter.AddRules("*\n!*.c\n/.git/objects/");
  EXPECT_TRUE(IgnoresFile(filter, ".git/objects/1"));
  EXPECT_FALSE(IgnoresFile(filter, ".git/index"));
  filter.AddRules("*.o\n.git/");
  EXPECT_TRUE(IgnoresFile(filter, ".git/index"));
  EXPECT_TRUE(IgnoresFile(filter, "sub/.git/index"));
  EXPECT_FALSE(IgnoresFile(filter, "index"));
}

TEST(GitignoreFilter, AProjectWithoutRulesIgnoresNothing) {
  TempDir dir;
  dir.Write("a/b", "");
  const GitignoreFilter filter = LoadOrDie(dir);
  EXPECT_FALSE(IgnoresFile(filter, "a/b"));
  EXPECT_FALSE(filter.Ignores("", PathKind::kDir));
}

TEST(GitignoreFilter, NestedRulesOverrideTheirParentsAndExcludeComesLast) {
  TempDir dir;
  dir.Write(".git/info/exclude", "*.tmp\n*.log\n");
  dir.Write(".gitignore", "*.log\n!keep.tmp\n");
  dir.Write("sub/.gitignore", "!important.log\n/local\n");
  const GitignoreFilter filter = LoadOrDie(dir);
  EXPECT_TRUE(IgnoresFile(filter, "a.tmp"));
  EXPECT_FALSE(IgnoresFile(filter, "keep.tmp"));
  EXPECT_TRUE(IgnoresFile(filter, "important.log"));
  EXPECT_FALSE(IgnoresFile(filter, "sub/important.log"));
  EXPECT_TRUE(IgnoresFile(filter, "sub/other.log"));
  EXPECT_TRUE(IgnoresFile(filter, "sub/local"));
  EXPECT_FALSE(IgnoresFile(filter, "sub/deeper/local"));
  EXPECT_FALSE(IgnoresFile(filter, "local"));
}

TEST(GitignoreFilter, NothingBelowAnIgnoredDirectoryComesBack) {
  TempDir dir;
  dir.Write(".gitignore", "build/\n!build/keep\n!keep\n");
  dir.Write("build/.gitignore", "!*\n");
  const GitignoreFilter filter = LoadOrDie(dir);
  EXPECT_TRUE(filter.Ignores("build", PathKind::kDir));
  EXPECT_FALSE(filter.Ignores("build", PathKind::kFile));
  EXPECT_TRUE(IgnoresFile(filter, "build/keep"));
  EXPECT_TRUE(IgnoresFile(filter, "build/a/b/keep"));
  EXPECT_TRUE(IgnoresFile(filter, "x/build/keep"));
}

TEST(GitignoreFilter, TheGitDirectoryIsNeverIgnored) {
  TempDir dir;
  dir.Write(".gitignore", "*\n.git\n.git/\n!sub\n");
  dir.Write(".git/.gitignore", "*\n");
  const GitignoreFilter filter = LoadOrDie(dir);
  EXPECT_TRUE(IgnoresFile(filter, "a"));
  EXPECT_FALSE(filter.Ignores(".git", PathKind::kDir));
  EXPECT_FALSE(IgnoresFile(filter, ".git/HEAD"));
  EXPECT_FALSE(filter.Ignores("sub/.git", PathKind::kDir));
  EXPECT_TRUE(IgnoresFile(filter, ".gitx"));
}

TEST(GitignoreFilter, SymbolicLinksAreNotFollowed) {
  TempDir outside;
  outside.Write("rules", "*\n");
  outside.Write("dir/.gitignore", "*\n");
  TempDir dir;
  fs::create_directories(dir.path() / ".git");
  fs::create_symlink(outside.path() / "rules", dir.path() / ".gitignore");
  fs::create_symlink(outside.path() / "dir", dir.path() / "linked");
  fs::create_symlink(outside.path(), dir.path() / ".git/info");
  const GitignoreFilter filter = LoadOrDie(dir);
  EXPECT_FALSE(IgnoresFile(filter, "a"));
  EXPECT_FALSE(IgnoresFile(filter, "linked/a"));
}

TEST(GitignoreFilter, OnlyRegularFilesHoldRules) {
  TempDir dir;
  fs::create_directories(dir.path() / "a/.gitignore");
  fs::create_directories(dir.path() / "b");
  ASSERT_EQ(mkfifo((dir.path() / "b/.gitignore").c_str(), 0600), 0);
  dir.Write(".git", "gitdir: elsewhere\n");
  const GitignoreFilter filter = LoadOrDie(dir);
  EXPECT_FALSE(IgnoresFile(filter, "a/x"));
  EXPECT_FALSE(IgnoresFile(filter, "b/x"));
}

TEST(GitignoreFilter, RulesWrittenAfterLoadingChangeNothing) {
  TempDir dir;
  const GitignoreFilter filter = LoadOrDie(dir);
  dir.Write(".gitignore", "*\n");
  EXPECT_FALSE(IgnoresFile(filter, "a"));
}

void ExpectLimit(const TempDir& dir, const GitignoreLimits& limits, std::string_view message) {
  const Result<GitignoreFilter> filter = GitignoreFilter::Load(dir.fd(), limits);
  ASSERT_FALSE(filter.ok());
  EXPECT_EQ(filter.error().code(), Code::kLimit);
  EXPECT_THAT(filter.error().message(), testing::HasSubstr(message));
}

TEST(GitignoreFilter, ARulesFileOverOneMebibyteIsAnError) {
  TempDir dir;
  dir.Write("sub/.gitignore", std::string(size_t{1} << 20, 'a'));
  LoadOrDie(dir);
  dir.Write("sub/.gitignore", std::string((size_t{1} << 20) + 1, 'a'));
  ExpectLimit(dir, {}, "sub/.gitignore");
}

TEST(GitignoreFilter, TheWalkIsBounded) {
  TempDir dir;
  dir.Write(".gitignore", "ignored\n");
  dir.Write("a/b/c/.gitignore", "12345678\n");
  dir.Write("ignored/a/b/c/d/e/f/.gitignore", "x\n");
  ASSERT_TRUE(GitignoreFilter::Load(dir.fd(), {.max_directories = 4, .max_depth = 3}).ok());
  ExpectLimit(dir, {.max_directories = 3}, "directories");
  ExpectLimit(dir, {.max_depth = 2}, "a/b/c");
  ExpectLimit(dir, {.max_total_bytes = 10}, "a/b/c/.gitignore");
}

TEST(GitignoreFilter, AnUnreadableRulesFileIsAnError) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads files of any mode";
  TempDir dir;
  dir.Write("sub/.gitignore", "x\n");
  fs::permissions(dir.path() / "sub/.gitignore", fs::perms::none);
  const Result<GitignoreFilter> filter = GitignoreFilter::Load(dir.fd());
  ASSERT_FALSE(filter.ok());
  EXPECT_EQ(filter.error().code(), Code::kDenied);
}

TEST(GitignoreFilter, ADirectoryThatCannotBeListedAddsNoRules) {
  if (geteuid() == 0) GTEST_SKIP() << "root lists directories of any mode";
  TempDir dir;
  dir.Write("closed/.gitignore", "x\n");
  dir.Write("unsearchable/.gitignore", "x\n");
  fs::permissions(dir.path() / "closed", fs::perms::none);
  fs::permissions(dir.path() / "unsearchable", fs::perms::owner_read);
  const GitignoreFilter filter = LoadOrDie(dir);
  EXPECT_FALSE(IgnoresFile(filter, "closed/x"));
  fs::permissions(dir.path() / "closed", fs::perms::owner_all);
  fs::permissions(dir.path() / "unsearchable", fs::perms::owner_all);
}

TEST(GitignoreFilter, ABadRootIsAnError) {
  EXPECT_FALSE(GitignoreFilter::Load(-1).ok());
  TempDir dir;
  dir.Write("file", "");
  const Fd file(::openat(dir.fd(), "file", O_RDONLY | O_CLOEXEC));
  const Result<GitignoreFilter> filter = GitignoreFilter::Load(file.get());
  ASSERT_FALSE(filter.ok());
  EXPECT_EQ(filter.error().sys_errno(), ENOTDIR);
}

TEST(GitignoreFilter, DirectoriesDeeperThanOnePathAreRead) {
  TempDir dir;
  const std::string name(200, 'd');
  std::string rel;
  Fd at(::openat(dir.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int level = 0; level < 30; ++level) {
    ASSERT_EQ(mkdirat(at.get(), name.c_str(), 0755), 0);
    at = Fd(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at.valid());
    rel += name + "/";
  }
  const Fd rules(::openat(at.get(), ".gitignore", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(::write(rules.get(), "deep\n", 5), 5);
  const GitignoreFilter filter = LoadOrDie(dir);
  EXPECT_TRUE(IgnoresFile(filter, rel + "deep"));
  EXPECT_FALSE(IgnoresFile(filter, rel + "other"));
}

TEST(GitignoreFilter, ManyThreadsMayAskAtOnce) {
  TempDir dir;
  dir.Write(".gitignore", "*.o\n");
  dir.Write("a/.gitignore", "!keep.o\n");
  const GitignoreFilter filter = LoadOrDie(dir);
  constexpr int kThreads = 4;
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&filter] {
      for (int i = 0; i < 1000; ++i) {
        EXPECT_TRUE(IgnoresFile(filter, "a/x.o"));
        EXPECT_FALSE(IgnoresFile(filter, "a/keep.o"));
      }
    });
  }
}

// ---- Compared with git ----

// Runs git in `dir` with no configuration but its own; returns its exit status.
int Git(const TempDir& dir, const std::string& arguments) {
  const std::string command = fmt::format(
      "env -u GIT_DIR -u GIT_WORK_TREE -u GIT_INDEX_FILE GIT_CONFIG_NOSYSTEM=1 "
      "GIT_CONFIG_GLOBAL=/dev/null XDG_CONFIG_HOME=/nonexistent "
      "git -C '{}' {}",
      dir.path().string(), arguments);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct TreeEntry {
  std::string path;
  PathKind kind;
};

// Three levels of short names over a tiny alphabet, so that random patterns hit often, and names
// that need care.
std::vector<TreeEntry> MakeTree(const TempDir& dir) {
  std::vector<TreeEntry> entries;
  const auto add_dir = [&](const std::string& path) {
    fs::create_directories(dir.path() / path);
    entries.push_back({path, PathKind::kDir});
  };
  const auto add_file = [&](const std::string& path) {
    dir.Write(path, "");
    entries.push_back({path, PathKind::kFile});
  };
  const std::vector<std::string> odd = {" x", "x ", "#a",  "!a",   "[a]",      "a*b", "a\\b", "-",
                                        "]",  "^",  "a?",  "\xff", "\xc3\xa9", "A",   "a\tb", "a\n",
                                        "\v", "\\", "a\r", "\x7f", "\x01",     "[",   "a.b"};
  for (const std::string& name : odd) add_file(name);
  for (const char* top : {"a", "b", "ab", "aab"}) {
    add_dir(top);
    for (const char* middle : {"a", "b", "ba"}) {
      add_dir(fmt::format("{}/{}", top, middle));
      for (const char* leaf : {"a", "ab", "bb", "a*b"}) {
        add_file(fmt::format("{}/{}/{}", top, middle, leaf));
      }
    }
    for (const char* leaf : {"aa", "abb", "b]", " "}) add_file(fmt::format("{}/{}", top, leaf));
  }
  for (const char* leaf : {"aa", "bab", "abab"}) add_file(leaf);
  return entries;
}

// Pieces rather than bytes: uniform bytes would make patterns that never match anything.
std::string RandomPattern(std::mt19937& rng) {
  static constexpr std::string_view kPieces[] = {"a",
                                                 "a",
                                                 "b",
                                                 "b",
                                                 "ab",
                                                 "*",
                                                 "*",
                                                 "**",
                                                 "**/",
                                                 "/",
                                                 "/",
                                                 "?",
                                                 "/**",
                                                 "/**/",
                                                 "***",
                                                 "**b/",
                                                 "[ab]",
                                                 "[!a]",
                                                 "[^b]",
                                                 "[a-b]",
                                                 "[]a]",
                                                 "[a",
                                                 "\\a",
                                                 "\\*",
                                                 "\\",
                                                 "\\/",
                                                 "[[:alpha:]]",
                                                 "[[:lower:]b]",
                                                 "[[:punct:]]",
                                                 "[!-/]",
                                                 "[a-[:digit:]]",
                                                 "[[:x:]]",
                                                 "[\\]]",
                                                 " ",
                                                 "\\ ",
                                                 "#",
                                                 "!",
                                                 "]",
                                                 "-",
                                                 "\t",
                                                 "\xff"};
  std::string pattern;
  if (rng() % 5 == 0) pattern += "!";
  for (size_t pieces = 1 + rng() % 5; pieces > 0; --pieces) {
    pattern += kPieces[rng() % std::size(kPieces)];
  }
  if (rng() % 6 == 0) pattern += "/";
  if (rng() % 12 == 0) pattern += "  ";
  if (rng() % 12 == 0) pattern += "\r";
  return pattern + "\n";
}

std::string RandomRules(std::mt19937& rng, size_t max_lines) {
  std::string rules;
  for (size_t lines = 1 + rng() % max_lines; lines > 0; --lines) rules += RandomPattern(rng);
  return rules;
}

std::set<std::string> SplitAtNul(const std::string& text) {
  std::set<std::string> parts;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\0', start), text.size());
    parts.insert(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

class AgainstGit : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("git --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "git is not installed";
    ASSERT_EQ(Git(project_, "init -q ."), 0);
    entries_ = MakeTree(project_);
    std::string list;
    for (const TreeEntry& entry : entries_) list += entry.path + '\0';
    scratch_.Write("paths", list);
  }

  void ExpectSameVerdicts(const std::string& rules_for_message) {
    const int status =
        Git(project_,
            fmt::format("check-ignore --no-index -z --stdin <'{0}/paths' >'{0}/out' 2>/dev/null",
                        scratch_.path().string()));
    ASSERT_TRUE(status == 0 || status == 1) << status;
    const std::set<std::string> ignored = SplitAtNul(scratch_.Read("out"));
    const GitignoreFilter filter = LoadOrDie(project_);
    for (const TreeEntry& entry : entries_) {
      EXPECT_EQ(filter.Ignores(entry.path, entry.kind), ignored.contains(entry.path))
          << "path: " << entry.path << "\nrules:\n"
          << rules_for_message;
    }
    ignored_seen_ += ignored.size();
  }

  TempDir project_;
  TempDir scratch_;
  std::vector<TreeEntry> entries_;
  size_t ignored_seen_ = 0;
};

// SANDGLASS_GITIGNORE_ROUNDS asks for a longer run.
int Rounds(int usual) {
  const char* wanted = std::getenv("SANDGLASS_GITIGNORE_ROUNDS");
  return wanted != nullptr ? std::atoi(wanted) : usual;
}

TEST_F(AgainstGit, SinglePatternsGiveTheSameVerdicts) {
  std::mt19937 rng(20240501);
  for (int round = 0; round < Rounds(250) && !HasFailure(); ++round) {
    // Two lines, so that a negated pattern has something to negate.
    const std::string rules = (rng() % 2 == 0 ? "*\n" : "") + RandomPattern(rng);
    project_.Write(".gitignore", rules);
    ExpectSameVerdicts(rules);
  }
  EXPECT_GT(ignored_seen_, 100u);
}

TEST_F(AgainstGit, NestedRulesFilesGiveTheSameVerdicts) {
  std::mt19937 rng(20240502);
  for (int round = 0; round < Rounds(100) && !HasFailure(); ++round) {
    std::string all;
    for (const char* file :
         {".git/info/exclude", ".gitignore", "a/.gitignore", "a/b/.gitignore", "ab/.gitignore"}) {
      const std::string rules = rng() % 3 == 0 ? "" : RandomRules(rng, 6);
      project_.Write(file, rules);
      all += fmt::format("[{}]\n{}", file, rules);
    }
    ExpectSameVerdicts(all);
  }
  EXPECT_GT(ignored_seen_, 100u);
}

TEST_F(AgainstGit, EveryNamedClassHoldsTheSameBytes) {
  std::string list;
  for (int byte = 1; byte < 256; ++byte) {
    if (byte == '/') continue;
    const std::string name = std::string("n") + static_cast<char>(byte);
    project_.Write(name, "");
    entries_.push_back({name, PathKind::kFile});
    list += name + '\0';
  }
  scratch_.Write("paths", list + scratch_.Read("paths"));
  for (const char* name : {"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print",
                           "punct", "space", "upper", "xdigit"}) {
    const std::string rules = fmt::format("n[[:{}:]]\n", name);
    project_.Write(".gitignore", rules);
    ExpectSameVerdicts(rules);
  }
}

}  // namespace
}  // namespace sandglass::undo
