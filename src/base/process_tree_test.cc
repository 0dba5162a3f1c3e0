#include "base/process_tree.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sandglass {
namespace {

TEST(ProcessTree, TheStartTimeOfAProcessIsTheSameUntilItEnds) {
  const auto ours = StartTimeOf(::getpid());
  ASSERT_TRUE(ours.has_value());
  EXPECT_EQ(StartTimeOf(::getpid()), ours);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto childs = StartTimeOf(child);
  ASSERT_TRUE(childs.has_value());
  EXPECT_GE(*childs, *ours);
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(StartTimeOf(child).has_value()) << "it has ended, and waits to be reaped";
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(StartTimeOf(child).has_value());
}

}  // namespace
}  // namespace sandglass
