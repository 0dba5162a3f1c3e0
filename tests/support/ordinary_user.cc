#include "tests/support/ordinary_user.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/fd.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::test {
namespace {

constexpr uid_t kOrdinary = 1234;

// Where the second run leaves what it printed, and its report. Not in its own folder: its tests may look for leftovers there.
struct Traces {
  std::string output, report;
};

[[noreturn]] void RunAllAs(uid_t uid, const Fd& program, const std::string& folder,
                           const Traces& traces) {
  ::setenv("SANDGLASS_TEST_DIR", folder.c_str(), 1);
  ::setenv("TMPDIR", folder.c_str(), 1);
  ::setenv("HOME", folder.c_str(), 1);
  ::setenv("GTEST_OUTPUT", ("json:" + traces.report).c_str(), 1);
  const Fd output(
      MustCall(::open(traces.output.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC), traces.output));
  MustCall(::dup2(output.get(), STDOUT_FILENO), "dup2");
  MustCall(::dup2(output.get(), STDERR_FILENO), "dup2");
  MustCall(::setgroups(0, nullptr), "setgroups");
  MustCall(::setresgid(uid, uid, uid), "setresgid");
  MustCall(::setresuid(uid, uid, uid), "setresuid");
  const char* const argv[] = {"as_an_ordinary_user", "--gtest_filter=-OrdinaryUser.*",
                              "--gtest_color=no", nullptr};
  ::fexecve(program.get(), const_cast<char* const*>(argv), environ);
  ::_exit(1);
}

std::string NewFolder(const char* name) {
  std::string folder = TestDirectory() + "/" + name + "-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) SetupFailed(Error::FromErrno(errno, "mkdtemp"));
  return folder;
}

void MakeFileOf(uid_t uid, const std::string& path) {
  const Fd file(MustCall(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), path));
  MustCall(::fchown(file.get(), uid, uid), path);
}

struct Judgement {
  int exit_code = -1;
  std::string text;
};

// A skip is judged as it is in the first run: see tests/expected_skips.txt.
Judgement Judge(const Traces& traces) {
  const std::string command = fmt::format("python3 {}/tools/judge_output.py '{}' '{}' 2>&1",
                                          SANDGLASS_SOURCE_DIR, traces.output, traces.report);
  FILE* const pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) SetupFailed(Error::FromErrno(errno, "popen"));
  Judgement judgement;
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof(buffer), pipe))
    judgement.text.append(buffer, got);
  const int status = ::pclose(pipe);
  judgement.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return judgement;
}

}  // namespace

void ExpectAllTestsPassAsOrdinaryUser() {
  constexpr int kAllSkipped = 77;
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become someone else";
  const std::string folder = NewFolder("sandglass-ordinary");
  const std::string kept = NewFolder("sandglass-traces");
  const Traces traces{.output = kept + "/output", .report = kept + "/report.json"};
  MustCall(::chown(folder.c_str(), kOrdinary, kOrdinary), folder);
  MustCall(::chmod(kept.c_str(), 0755), kept);
  MakeFileOf(kOrdinary, traces.output);
  MakeFileOf(kOrdinary, traces.report);
  const Fd program(MustCall(::open("/proc/self/exe", O_PATH | O_CLOEXEC), "open this program"));
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) RunAllAs(kOrdinary, program, folder, traces);
  int status = 0;
  MustCall(::waitpid(child, &status, 0), "waitpid");
  const Judgement judgement = Judge(traces);
  EXPECT_TRUE(RemoveTree(folder).ok());
  EXPECT_TRUE(RemoveTree(kept).ok());
  if (judgement.exit_code == kAllSkipped && status == 0) GTEST_SKIP() << judgement.text;
  EXPECT_EQ(status, 0);
  EXPECT_EQ(judgement.exit_code, 0) << judgement.text;
}

}  // namespace sandglass::test
