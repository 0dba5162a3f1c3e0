#include "tests/support/ordinary_user.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/fd.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::test {
namespace {

constexpr uid_t kOrdinary = 1234;

[[noreturn]] void RunAllAs(uid_t uid, const Fd& program, const std::string& folder) {
  ::setenv("SANDGLASS_TEST_DIR", folder.c_str(), 1);
  ::setenv("TMPDIR", folder.c_str(), 1);
  ::setenv("HOME", folder.c_str(), 1);
  ::unsetenv("GTEST_OUTPUT");
  MustCall(::setgroups(0, nullptr), "setgroups");
  MustCall(::setresgid(uid, uid, uid), "setresgid");
  MustCall(::setresuid(uid, uid, uid), "setresuid");
  const char* const argv[] = {"as_an_ordinary_user", "--gtest_filter=-OrdinaryUser.*",
                              "--gtest_brief=1", nullptr};
  ::fexecve(program.get(), const_cast<char* const*>(argv), environ);
  ::_exit(1);
}

}  // namespace

void ExpectAllTestsPassAsOrdinaryUser() {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become someone else";
  std::string folder = TestDirectory() + "/sandglass-ordinary-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  ASSERT_EQ(::chown(folder.c_str(), kOrdinary, kOrdinary), 0);
  const Fd program(MustCall(::open("/proc/self/exe", O_PATH | O_CLOEXEC), "open this program"));
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) RunAllAs(kOrdinary, program, folder);
  int status = 0;
  MustCall(::waitpid(child, &status, 0), "waitpid");
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(RemoveTree(folder).ok());
}

}  // namespace sandglass::test
