#include "bridge/confinement.h"

#include <gtest/gtest.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>

namespace sandglass::bridge {
namespace {

// In a process of its own, confined. Returns what `body` returns.
int Confined(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!ConfineBridge().ok()) ::_exit(254);
    ::_exit(body());
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 255;
  return WEXITSTATUS(status);
}

// Arguments that no row lets pass.
long CallInVain(const SyscallRule& rule) { return ::syscall(rule.number, 0, -1, -1, -1, -1, -1); }

TEST(Confinement, EveryRowIsRefused) {
  size_t rows = 0;
  for (const SyscallRule& rule : RefusedOfBridge()) {
    if (rule.error == 0) continue;  // what it lets pass
    ++rows;
    EXPECT_EQ(Confined([&] { return CallInVain(rule) == -1 && errno == rule.error ? 0 : 1; }), 0)
        << rule.name;
  }
  EXPECT_GT(rows, 40U);
}

TEST(Confinement, WhatTheWorkNeedsGoesOn) {
  EXPECT_EQ(Confined([] {
              int ran = 0;
              std::thread([&] { ran = ::unshare(CLONE_FS) == 0 ? 1 : 0; }).join();
              return ran == 1 ? 0 : 1;
            }),
            0)
      << "threads with a working directory of their own";
  EXPECT_EQ(Confined([] { return ::socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ? 0 : 1; }), 0);
  EXPECT_EQ(Confined([] {
              const auto self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
              return ::syscall(SYS_pidfd_send_signal, self, 0, nullptr, 0) == 0 ? 0 : 1;
            }),
            0)
      << "asking whether a process lives";
}

TEST(Confinement, WhatItWouldTakeToBreakOutFails) {
  EXPECT_EQ(Confined([] { return ::socket(AF_INET, SOCK_STREAM, 0) < 0 ? 0 : 1; }), 0);
  EXPECT_EQ(Confined([] { return ::execl("/bin/true", "true", nullptr) < 0 ? 0 : 1; }), 0);
  EXPECT_EQ(Confined([] { return ::fork() < 0 ? 0 : 1; }), 0);
  EXPECT_EQ(Confined([] { return ::kill(::getppid(), 0) < 0 ? 0 : 1; }), 0);
  EXPECT_EQ(Confined([] { return ::unshare(CLONE_NEWUSER) < 0 ? 0 : 1; }), 0);
  // Without the confinement they do work, or the lines above would say nothing.
  EXPECT_GE(::socket(AF_INET, SOCK_STREAM, 0), 0);
  EXPECT_EQ(::kill(::getppid(), 0), 0);
}

bool EnterLandlock() {
  const landlock_ruleset_attr attr{.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_SOCK};
  const auto rules =
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attr, sizeof(uint64_t), 0));
  return rules >= 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_landlock_restrict_self, rules, 0) == 0;
}

bool CanRead(pid_t process, const uint64_t& word) {
  uint64_t copy = 0;
  iovec here{&copy, sizeof(copy)};
  iovec there{const_cast<uint64_t*>(&word), sizeof(word)};
  return ::process_vm_readv(process, &here, 1, &there, 1, 0) == sizeof(copy);
}

// The kernel lets a process under Landlock look into those processes only that are under the same rules or stricter ones. A world cannot
// be: no process under Landlock may mount. If this test fails, the bridge can be confined better: docs/decisions/014.
TEST(Confinement, LandlockWouldKeepTheBridgeFromReadingWhatCommandsHandIn) {
  const uint64_t word = 7;
  const pid_t world = ::fork();
  if (world == 0) {
    ::pause();
    ::_exit(0);
  }
  const pid_t bridge = ::fork();
  if (bridge == 0) {
    if (!CanRead(world, word)) ::_exit(1);
    if (!EnterLandlock()) ::_exit(2);
    ::_exit(CanRead(world, word) ? 3 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(bridge, &status, 0), bridge);
  ::kill(world, SIGKILL);
  ::waitpid(world, nullptr, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no Landlock here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace sandglass::bridge
