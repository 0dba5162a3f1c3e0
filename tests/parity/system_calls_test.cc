// Every system call that a world supervises, in many situations: the outcome is the kernel's own, and undo takes it back.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>
#include <string>

#include "base/io.h"
#include "bridge/supervise/syscall_table.h"
#include "tests/parity/case.h"
#include "tests/parity/document.h"
#include "tests/parity/parity_fixture.h"

namespace sandglass::test {
namespace {

using parity::KnownDifference;

constexpr char kProgram[] = SANDGLASS_BIN "/parity_program";

class SystemCallParity : public ParityFixture {
 protected:
  void SetUp() override {
    ParityFixture::SetUp();
    if (IsSkipped()) return;
    native_ = workspace_.root() + "/natives";  // as long as the project's: symlinks hold it
    for (const std::string& folder : {native_, workspace_.root() + "/outside"})
      MustCall(::mkdir(folder.c_str(), 0755), folder);
    // Somebody else acts in them too.
    MustCall(::chmod(workspace_.root().c_str(), 0755), "chmod");
    for (const std::string& folder : {native_, workspace_.project()})
      ASSERT_EQ(Natively(std::string(kProgram) + " prepare", folder).output, "");
  }

  static std::string CaseOf(const std::string& line) { return line.substr(0, line.find(" => ")); }
  static std::string ResultOf(const std::string& line) {
    const size_t at = line.find(" => ") + 4;
    return line.substr(at, line.find(' ', at) - at);
  }

  // Which of the known differences showed.
  static std::set<const KnownDifference*> Compare(const std::vector<std::string>& wanted,
                                                  const std::vector<std::string>& got) {
    std::set<const KnownDifference*> shown;
    for (size_t i = 0; i < wanted.size() && i < got.size(); ++i) {
      if (wanted[i] == got[i]) continue;
      const KnownDifference* known = parity::FindKnownDifference(CaseOf(wanted[i]));
      if (known == nullptr)
        ADD_FAILURE() << "natively: " << wanted[i] << "\nin a world: " << got[i];
      else
        shown.insert(known);
    }
    return shown;
  }

  std::string native_;
};

TEST_F(SystemCallParity, EveryCaseEndsAsItDoesNatively) {
  const size_t cases = parity::AllCases().size();
  const TreeSnapshot before = workspace_.Snapshot();
  const CommandResult wanted = Natively(std::string(kProgram) + " run", native_);
  const CommandResult got = RunInWorld(std::string(kProgram) + " run");
  EXPECT_EQ(wanted.exit_code, 0);
  EXPECT_EQ(got.exit_code, 0);
  const auto native_lines = Lines(Neutral(wanted.output, native_));
  const auto world_lines = Lines(Neutral(got.output, workspace_.project()));
  ASSERT_EQ(native_lines.size(), cases) << native_lines.back();
  ASSERT_EQ(world_lines.size(), cases) << world_lines.back();
  const auto shown = Compare(native_lines, world_lines);
  for (const KnownDifference& known : parity::KnownDifferences())
    EXPECT_TRUE(shown.contains(&known) || known.shows == KnownDifference::Shows::kSometimes)
        << "a difference that is none any more: " << known.call << ": " << known.what;

  std::set<std::string> results;
  for (const std::string& line : native_lines) results.insert(ResultOf(line));
  for (const char* error :
       {"ENOENT",       "EEXIST",  "ENOTDIR", "EISDIR", "ENOTEMPTY", "ELOOP",
        "ENAMETOOLONG", "EACCES",  "EPERM",   "EBADF",  "EINVAL",    "EXDEV",
        "EFAULT",       "EBUSY",   "EMFILE",  "EFBIG",  "ENXIO",     "EADDRINUSE",
        "ECONNREFUSED", "ENODATA", "ERANGE",  "E2BIG",  "ESPIPE",    "ENOTSOCK"})
    EXPECT_TRUE(results.contains(error)) << "no case gives " << error;

  const Ended undone = Sandglass({"undo"});
  EXPECT_EQ(undone.exit_code, 0) << undone.err;
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

TEST(ParityCases, CoverEveryCallThatIsSupervised) {
  std::set<std::string> covered;
  for (const parity::Case& one : parity::AllCases()) covered.insert(one.call);
  for (const bridge::SyscallRule& rule : bridge::SyscallTable()) {
    const bool supervised = rule.error == 0 && rule.op != bridge::OpClass::kNative;
    if (supervised) EXPECT_TRUE(covered.contains(rule.name)) << rule.name << " has no case";
    covered.erase(rule.name);
  }
  EXPECT_THAT(covered, ::testing::IsEmpty()) << "cases of calls that are not in the table";
}

TEST(ParityCases, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const parity::Case& one : parity::AllCases())
    EXPECT_TRUE(names.insert(one.Name()).second) << one.Name();
}

TEST(ParityCases, AreWhatTheDocumentSays) {
  const auto document = ReadFileAt(AT_FDCWD, SANDGLASS_SOURCE_DIR "/docs/parity.md", 1 << 20);
  ASSERT_TRUE(document.ok()) << document.error().ToString();
  EXPECT_EQ(*document, parity::Document()) << "run parity_program document > docs/parity.md";
}

}  // namespace
}  // namespace sandglass::test
