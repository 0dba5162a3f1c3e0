#include "undo/text_diff.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/result.h"

namespace sandglass::undo {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;
using testing::HasSubstr;

DiffInput File(std::string_view path, std::string_view content,
               std::optional<uint32_t> mode = std::nullopt) {
  return {.path = path, .content = content, .mode = mode};
}
DiffInput Absent() { return {.presence = FilePresence::kAbsent}; }

std::string Diff(std::string_view before, std::string_view after, const DiffOptions& options = {}) {
  return UnifiedDiff(File("f", before), File("f", after), options);
}

// Only the hunks: what follows the +++ line.
std::string Hunks(const std::string& diff) {
  const size_t names = diff.find("\n+++ ");
  return names == std::string::npos ? "" : diff.substr(diff.find('\n', names + 1) + 1);
}

// ---- What it looks like ----

TEST(UnifiedDiff, NothingChangedIsEmpty) {
  EXPECT_EQ(Diff("a\n", "a\n"), "");
  EXPECT_EQ(Diff("", ""), "");
  EXPECT_EQ(UnifiedDiff(Absent(), Absent()), "");
  EXPECT_EQ(UnifiedDiff(File("f", "a", S_IFREG | 0644), File("f", "a", S_IFREG | 0600)), "");
}

TEST(UnifiedDiff, ShowsThreeLinesOfContext) {
  EXPECT_EQ(
      Diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
      "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(UnifiedDiff, EditsWithTouchingContextShareAHunk) {
  const std::string before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
  EXPECT_EQ(Hunks(Diff(before, "x\n2\n3\n4\n5\n6\n7\ny\n9\n")),
            "@@ -1,9 +1,9 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+y\n 9\n");
  EXPECT_EQ(Hunks(Diff(before, "x\n2\n3\n4\n5\n6\n7\n8\ny\n")),
            "@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y\n");
}

TEST(UnifiedDiff, ContextCanBeNoneOrAll) {
  const std::string before = "1\n2\n3\n4\n5\n";
  EXPECT_EQ(Hunks(Diff(before, "1\n3\n4\nx\n5\n", {.context_lines = 0})),
            "@@ -2 +1,0 @@\n-2\n@@ -4,0 +4 @@\n+x\n");
  EXPECT_EQ(Hunks(Diff(before, "1\n3\n4\nx\n5\n", {.context_lines = SIZE_MAX})),
            "@@ -1,5 +1,5 @@\n 1\n-2\n 3\n 4\n+x\n 5\n");
}

TEST(UnifiedDiff, SaysWhereTheLastNewlineIsMissing) {
  EXPECT_EQ(Hunks(Diff("a\nb", "a\nb\n")),
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
  EXPECT_EQ(Hunks(Diff("a\nb\n", "a\nb")),
            "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n");
  EXPECT_EQ(Hunks(Diff("x\nb", "y\nb")),
            "@@ -1,2 +1,2 @@\n-x\n+y\n b\n\\ No newline at end of file\n");
}

TEST(UnifiedDiff, AnAbsentSideIsDevNull) {
  EXPECT_EQ(UnifiedDiff(Absent(), File("d/f", "a\nb\n")),
            "diff --git a/d/f b/d/f\nnew file mode 100644\n--- /dev/null\n+++ b/d/f\n@@ -0,0 +1,2 "
            "@@\n+a\n+b\n");
  EXPECT_EQ(UnifiedDiff(File("f", "a", S_IFREG | 0755), Absent()),
            "diff --git a/f b/f\ndeleted file mode 100755\n--- a/f\n+++ /dev/null\n"
            "@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n");
  EXPECT_EQ(UnifiedDiff(Absent(), File("f", "")), "diff --git a/f b/f\nnew file mode 100644\n");
}

TEST(UnifiedDiff, ShowsModeChangesAndRenames) {
  EXPECT_EQ(UnifiedDiff(File("f", "a", S_IFREG | 0640), File("f", "a", S_IFREG | 0750)),
            "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n");
  EXPECT_EQ(UnifiedDiff(File("f", "a\n"), File("g h", "a\n")),
            "diff --git a/f \"b/g h\"\nrename from f\nrename to g h\n");
  EXPECT_EQ(UnifiedDiff(File("f", "a"), File("g h", "b")).substr(0, 22), "diff --git a/f b/g h\nr");
}

TEST(UnifiedDiff, AChangeOfTypeIsARemovalAndACreation) {
  const std::string diff =
      UnifiedDiff(File("f", "a\n", S_IFREG | 0644), File("f", "t", S_IFLNK | 0777));
  EXPECT_THAT(diff, HasSubstr("deleted file mode 100644\n--- a/f\n+++ /dev/null\n"));
  EXPECT_THAT(diff, HasSubstr("new file mode 120000\n--- /dev/null\n+++ b/f\n"));
}

TEST(UnifiedDiff, ANulNearTheStartMeansBinary) {
  EXPECT_EQ(Diff("a\0b"s, "ab"), "diff --git a/f b/f\nBinary files a/f and b/f differ\n");
  EXPECT_EQ(UnifiedDiff(Absent(), File("f", "\0"s)),
            "diff --git a/f b/f\nnew file mode 100644\nBinary files /dev/null and b/f differ\n");
  const std::string late = std::string(7999, 'a') + '\n' + '\0';
  EXPECT_THAT(Diff(late, "b"), HasSubstr("@@"));
  EXPECT_THAT(Diff(late.substr(1), "b"), HasSubstr("Binary"));
}

TEST(UnifiedDiff, QuotesPathsAsGitDoes) {
  EXPECT_EQ(QuotePath("plain/with space"), "plain/with space");
  EXPECT_EQ(QuotePath("trail "), "\"trail \"");
  EXPECT_EQ(QuotePath("t\tn\nq\"b\\\xc3\xa9\x7f\x01"), R"("t\tn\nq\"b\\\303\251\177\001")");
  EXPECT_EQ(QuotePath("\a\b\v\f\r"), R"("\a\b\v\f\r")");
  const std::string diff = UnifiedDiff(File("a b", "1\n"), File("a b", "2\n"));
  EXPECT_THAT(diff, HasSubstr("diff --git a/a b b/a b\n--- a/a b\t\n+++ b/a b\t\n"));
  EXPECT_THAT(UnifiedDiff(File("\n", "1\n"), File("\n", "2\n")),
              HasSubstr("diff --git \"a/\\n\" \"b/\\n\"\n--- \"a/\\n\"\n"));
}

TEST(UnifiedDiff, AnInsertedBlockStartsWithItsOwnFirstLine) {
  EXPECT_EQ(Hunks(Diff("x\nf {\n}\nh {\n}\n", "y\nf {\n}\ng {\n}\nh {\n}\n", {.context_lines = 1})),
            "@@ -1,4 +1,6 @@\n-x\n+y\n f {\n }\n+g {\n+}\n h {\n");
}

// ---- Whether it is right ----

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

size_t TakeNumber(std::string_view& text) {
  size_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  CHECK(parsed.ec == std::errc());
  text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
  return number;
}

struct Range {
  size_t start;
  size_t count;
};

Range TakeRange(std::string_view& text) {
  text.remove_prefix(1);
  Range range{TakeNumber(text), 1};
  if (text.starts_with(',')) {
    text.remove_prefix(1);
    range.count = TakeNumber(text);
  }
  if (range.count > 0) --range.start;
  return range;
}

// An independent reader of hunks: strict about positions, counts and context.
class Patcher {
 public:
  explicit Patcher(std::string_view before) : before_(Lines(before)) {}

  std::optional<std::string> Apply(const std::string& hunks) {
    lines_ = Lines(hunks);
    while (next_ < lines_.size()) {
      if (!ApplyHunk()) return std::nullopt;
    }
    CopyUntil(before_.size());
    std::string text;
    for (const std::string& line : after_) text += line;
    return text;
  }
  size_t changed_lines() const { return changed_lines_; }

 private:
  bool ApplyHunk() {
    std::string_view header = lines_[next_++];
    if (!header.starts_with("@@ -")) return false;
    header.remove_prefix(3);
    Range old_range = TakeRange(header);
    header.remove_prefix(1);
    const Range new_range = TakeRange(header);
    if (header != " @@\n" || old_range.start < at_ || old_range.start > before_.size())
      return false;
    CopyUntil(old_range.start);
    if (after_.size() != new_range.start) return false;
    const size_t old_end = at_ + old_range.count;
    const size_t new_end = after_.size() + new_range.count;
    while (next_ < lines_.size() && !lines_[next_].starts_with('@')) {
      if (!ApplyLine()) return false;
    }
    return at_ == old_end && after_.size() == new_end;
  }

  bool ApplyLine() {
    const char mark = lines_[next_][0];
    std::string line = lines_[next_++].substr(1);
    if (next_ < lines_.size() && lines_[next_].starts_with('\\')) {
      if (lines_[next_++] != "\\ No newline at end of file\n") return false;
      line.pop_back();
    }
    if (mark != ' ') ++changed_lines_;
    if (mark == '+') {
      after_.push_back(line);
      return true;
    }
    if (at_ == before_.size() || before_[at_] != line) return false;
    ++at_;
    if (mark == ' ') after_.push_back(line);
    return mark == ' ' || mark == '-';
  }

  void CopyUntil(size_t end) {
    while (at_ < end) after_.push_back(before_[at_++]);
  }

  std::vector<std::string> before_;
  std::vector<std::string> lines_;
  std::vector<std::string> after_;
  size_t next_ = 0;
  size_t at_ = 0;
  size_t changed_lines_ = 0;
};

void ExpectExact(const std::string& before, const std::string& after, const DiffOptions& options) {
  const std::string diff = Diff(before, after, options);
  Patcher patcher(before);
  ASSERT_EQ(patcher.Apply(Hunks(diff)), after) << diff;
}

// The length of the shortest edit by the textbook table, to judge ours by.
size_t ShortestEdit(const std::string& before, const std::string& after) {
  const std::vector<std::string> a = Lines(before);
  const std::vector<std::string> b = Lines(after);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t edits = a[i - 1] == b[j - 1] ? diagonal : 1 + std::min(row[j], row[j - 1]);
      diagonal = std::exchange(row[j], edits);
    }
  }
  return row.back();
}

std::string RandomText(std::mt19937& rng, size_t max_lines, unsigned alphabet) {
  std::string text;
  for (size_t lines = rng() % (max_lines + 1); lines > 0; --lines) {
    for (size_t size = rng() % 3; size > 0; --size)
      text += static_cast<char>('a' + rng() % alphabet);
    text += '\n';
  }
  if (!text.empty() && rng() % 4 == 0) text.pop_back();
  return text;
}

std::string RandomEdit(std::mt19937& rng, const std::string& text) {
  std::vector<std::string> lines = Lines(text);
  for (size_t edits = 1 + rng() % 4; edits > 0; --edits) {
    const size_t at = rng() % (lines.size() + 1);
    const auto place = lines.begin() + static_cast<ptrdiff_t>(at);
    const unsigned kind = rng() % 4;
    if (kind == 0 || at == lines.size()) {
      lines.insert(place, "new\n");
    } else if (kind == 1) {
      lines.erase(place);
    } else if (kind == 2) {
      lines[at] = "edit\n";
    } else {
      lines.insert(lines.begin(), lines[at]);
    }
  }
  std::string edited;
  for (const std::string& line : lines) edited += line;
  if (!edited.empty() && rng() % 5 == 0) edited.pop_back();
  return edited;
}

TEST(UnifiedDiff, RandomEditsApplyBack) {
  std::mt19937 rng(1);
  for (int round = 0; round < 5000 && !testing::Test::HasFailure(); ++round) {
    const std::string before = RandomText(rng, 40, 3);
    const std::string after = rng() % 3 == 0 ? RandomText(rng, 40, 3) : RandomEdit(rng, before);
    ExpectExact(before, after, {.context_lines = rng() % 5});
  }
}

TEST(UnifiedDiff, SmallEditsAreTheShortestPossible) {
  std::mt19937 rng(2);
  for (int round = 0; round < 2000 && !testing::Test::HasFailure(); ++round) {
    const std::string before = RandomText(rng, 30, 2);
    const std::string after = rng() % 2 == 0 ? RandomText(rng, 30, 2) : RandomEdit(rng, before);
    const std::string diff = Diff(before, after);
    Patcher patcher(before);
    ASSERT_EQ(patcher.Apply(Hunks(diff)), after) << diff;
    ASSERT_EQ(patcher.changed_lines(), ShortestEdit(before, after)) << diff;
  }
}

TEST(UnifiedDiff, AnyBudgetGivesAnExactPatch) {
  std::mt19937 rng(3);
  for (int round = 0; round < 1000 && !testing::Test::HasFailure(); ++round) {
    const std::string before = RandomText(rng, 60, 2);
    const std::string after = RandomText(rng, 60, 2);
    ExpectExact(before, after, {.max_steps = rng() % 200});
    ExpectExact(before, after, {.max_lines = rng() % 60});
  }
}

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string ManyLines(std::mt19937& rng, size_t lines, unsigned variety) {
  std::string text;
  for (size_t i = 0; i < lines; ++i) text += fmt::format("{}\n", rng() % variety);
  return text;
}

TEST(UnifiedDiff, EditsBeyondTheSearchDepthStayExactAndReasonable) {
  std::mt19937 rng(4);
  const std::string before = ManyLines(rng, 20'000, 1'000'000);
  std::string after;
  size_t edits = 0;
  for (std::string& line : Lines(before)) {
    if (rng() % 10 == 0) {
      ++edits;
      // A line that exists elsewhere, so that it is not set aside before the search.
      after += Lines(before.substr(0, 200))[rng() % 5];
    } else {
      after += line;
    }
  }
  const std::string diff = Diff(before, after);
  Patcher patcher(before);
  ASSERT_EQ(patcher.Apply(Hunks(diff)), after);
  EXPECT_LT(patcher.changed_lines(), 4 * edits);
}

TEST(UnifiedDiff, HugeDifferentTextsTakeBoundedTime) {
  std::mt19937 rng(5);
  const std::string before = ManyLines(rng, 400'000, 50);
  const std::string after = ManyLines(rng, 400'000, 50);
  const double start = CpuSeconds();
  const std::string diff = Diff(before, after);
  EXPECT_LT(CpuSeconds() - start, 20.0) << "generous: instrumented builds are slow";
  EXPECT_LE(diff.size(), before.size() + after.size() + 3'000'000);
  EXPECT_EQ(Patcher(before).Apply(Hunks(diff)), after);
}

TEST(UnifiedDiff, TooManyLinesAreReplacedWithoutASearch) {
  const std::string diff = Diff("same\n1\n2\n3\nend\n", "same\n3\n2\n1\nend\n", {.max_lines = 5});
  EXPECT_EQ(Hunks(diff), "@@ -1,5 +1,5 @@\n same\n-1\n-2\n-3\n+3\n+2\n+1\n end\n");
}

// ---- Whether the tools take it ----

class TempDir {
 public:
  TempDir() {
    const char* base = std::getenv("SANDGLASS_TEST_DIR");
    std::string name =
        ((base != nullptr ? fs::path(base) : fs::temp_directory_path()) / "text_diff_test.XXXXXX")
            .string();
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const fs::path& path() const { return path_; }
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
};

int Shell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Change {
  std::string old_path;  // empty: absent
  std::string old_content;
  std::string new_path;
  std::string new_content;
};

DiffInput Input(const std::string& path, const std::string& content) {
  return path.empty() ? Absent() : File(path, content);
}

// Many files at once: one run of the tool judges hundreds of patches.
std::vector<Change> RandomChanges(std::mt19937& rng, int count) {
  static constexpr std::string_view kNames[] = {
      "plain",    "with space", "quo\"te", "back\\slash", "new\nline", "tab\tbed",
      "\xc3\xa9", "bad\xff",    " lead",   "d/e/f",       "trail ",    "a b/a b"};
  std::vector<Change> changes;
  for (int i = 0; i < count; ++i) {
    const std::string path = fmt::format("{}/{}", i, kNames[rng() % std::size(kNames)]);
    std::string before = RandomText(rng, 30, 3);
    std::string after = RandomEdit(rng, before);
    switch (rng() % 6) {
      case 0:
        changes.push_back({"", "", path, after});
        break;
      case 1:
        changes.push_back({path, before, "", ""});
        break;
      case 2:
        changes.push_back({path, before, path + ".moved to", after});
        break;
      default:
        changes.push_back({path, before, path, after});
        break;
    }
  }
  return changes;
}

std::string WriteTreeAndPatch(const std::vector<Change>& changes, const TempDir& tree) {
  std::string patch;
  for (const Change& change : changes) {
    if (!change.old_path.empty()) tree.Write(change.old_path, change.old_content);
    patch += UnifiedDiff(Input(change.old_path, change.old_content),
                         Input(change.new_path, change.new_content));
  }
  return patch;
}

void ExpectApplied(const std::vector<Change>& changes, const TempDir& tree) {
  for (const Change& change : changes) {
    if (change.old_path != change.new_path && !change.old_path.empty()) {
      EXPECT_FALSE(fs::exists(tree.path() / change.old_path)) << change.old_path;
    }
    if (change.new_path.empty()) continue;
    EXPECT_TRUE(fs::exists(tree.path() / change.new_path)) << change.new_path;
    EXPECT_EQ(tree.Read(change.new_path), change.new_content) << change.new_path;
  }
}

void ApplyWith(const std::string& command, const std::vector<Change>& changes) {
  TempDir tree;
  TempDir scratch;
  scratch.Write("patch", WriteTreeAndPatch(changes, tree));
  const std::string full = fmt::format("cd '{0}' && {1} <'{2}/patch' >'{2}/log' 2>&1",
                                       tree.path().string(), command, scratch.path().string());
  ASSERT_EQ(Shell(full), 0) << scratch.Read("log");
  ExpectApplied(changes, tree);
}

TEST(UnifiedDiff, GitApplyTakesIt) {
  if (Shell("git --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "git is not installed";
  std::mt19937 rng(6);
  for (int round = 0; round < 3; ++round) {
    ApplyWith(
        "env -u GIT_DIR -u GIT_WORK_TREE GIT_CEILING_DIRECTORIES=/ GIT_CONFIG_NOSYSTEM=1 "
        "GIT_CONFIG_GLOBAL=/dev/null "
        "git apply -p1 --whitespace=nowarn",
        RandomChanges(rng, 200));
  }
}

TEST(UnifiedDiff, PatchTakesIt) {
  if (Shell("patch --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "patch is not installed";
  std::mt19937 rng(8);
  for (int round = 0; round < 3; ++round) {
    std::vector<Change> changes = RandomChanges(rng, 200);
    // It refuses to remove a file that is empty already, whoever wrote the patch.
    std::erase_if(changes,
                  [](const Change& c) { return c.new_path.empty() && c.old_content.empty(); });
    ApplyWith("patch -p1 --no-backup-if-mismatch", changes);
  }
}

TEST(UnifiedDiff, GitApplySetsModesAndLinks) {
  if (Shell("git --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "git is not installed";
  TempDir tree;
  tree.Write("tool", "a\n");
  tree.Write("file", "a\n");
  TempDir scratch;
  scratch.Write(
      "patch",
      UnifiedDiff(File("tool", "a\n", S_IFREG | 0644), File("tool", "a\n", S_IFREG | 0755)) +
          UnifiedDiff(File("file", "a\n", S_IFREG | 0644), File("file", "to", S_IFLNK | 0777)));
  ASSERT_EQ(Shell(fmt::format("cd '{}' && GIT_CEILING_DIRECTORIES=/ git apply <'{}/patch'",
                              tree.path().string(), scratch.path().string())),
            0);
  EXPECT_NE(fs::status(tree.path() / "tool").permissions() & fs::perms::owner_exec,
            fs::perms::none);
  EXPECT_EQ(fs::read_symlink(tree.path() / "file"), "to");
}

}  // namespace
}  // namespace sandglass::undo
