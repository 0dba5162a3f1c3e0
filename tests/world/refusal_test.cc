// How a machine on which no world can be built is recognised.
#include "world/local/refusal.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/deny_call.h"
#include "tests/support/must.h"

namespace sandglass::test {
namespace {

bool FindsARefusal(uint32_t call, uint32_t action) {
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) {
    DenyCall(call, action);
    ::_exit(world::WhyNoNamespaces().empty() ? 1 : 0);
  }
  int status = 0;
  MustCall(::waitpid(child, &status, 0), "waitpid");
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Refusal, ACallThatIsRefusedIsNoticed) {
  EXPECT_TRUE(FindsARefusal(SYS_move_mount, SECCOMP_RET_ERRNO | EPERM));
}

TEST(Refusal, ACallThatEndsTheCallerIsNoticed) {
  EXPECT_TRUE(FindsARefusal(SYS_move_mount, SECCOMP_RET_KILL_PROCESS));
}

}  // namespace
}  // namespace sandglass::test
