#include "tests/undo/forked.h"

#include <fmt/format.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "tests/support/must.h"
#include "tests/support/tree_walk.h"

namespace sandglass::undo {
namespace {

using test::Must;
using test::MustCall;

constexpr int kPassed = 0;
constexpr int kFailed = 1;

[[noreturn]] void ExitWithVerdict() {
  std::fflush(nullptr);
  ::_exit(::testing::Test::HasFailure() ? kFailed : kPassed);
}

void DropRights() {
  MustCall(::setgroups(0, nullptr), "setgroups");
  MustCall(::setresgid(kOrdinaryUid, kOrdinaryUid, kOrdinaryUid), "setresgid");
  MustCall(::setresuid(kOrdinaryUid, kOrdinaryUid, kOrdinaryUid), "setresuid");
}

int WaitFor(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) MustCall(-1, "waitpid");
  }
  return status;
}

// The wait status of a child that ran `body`.
int Fork(const std::function<void()>& body, Who who) {
  std::fflush(nullptr);
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) {
    if (who == Who::kOrdinaryUser && RunningAsRoot()) DropRights();
    body();
    ExitWithVerdict();
  }
  return WaitFor(child);
}

void EnterPrivateMounts() {
  MustCall(::unshare(CLONE_NEWNS), "unshare");
  MustCall(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "make mounts private");
}

}  // namespace

bool RunningAsRoot() { return ::geteuid() == 0; }

void RunForked(const std::function<void()>& body, Who who) {
  const int status = Fork(body, who);
  if (WIFSIGNALED(status)) {
    ADD_FAILURE() << "the child died: " << ::strsignal(WTERMSIG(status));
  } else {
    EXPECT_EQ(WEXITSTATUS(status), kPassed) << "an assertion failed in the child";
  }
}

void RunUntilDeath(const std::function<void()>& body, Who who) {
  const int status = Fork(body, who);
  if (!WIFSIGNALED(status)) {
    ADD_FAILURE() << "the child lived on: status " << WEXITSTATUS(status);
  } else {
    EXPECT_EQ(WTERMSIG(status), SIGKILL) << ::strsignal(WTERMSIG(status));
  }
}

void DieNow() {
  if (::testing::Test::HasFailure()) ExitWithVerdict();
  ::kill(::getpid(), SIGKILL);
  ::_exit(kFailed);
}

std::optional<std::string> WhyNoPrivateMounts() {
  if (!RunningAsRoot()) return "private mounts: need root";
  const int status =
      Fork([] { ::_exit(::unshare(CLONE_NEWNS) == 0 ? kPassed : kFailed); }, Who::kSelf);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kPassed) return std::nullopt;
  return "private mounts: unshare is refused";
}

void RunWithPrivateMounts(const std::function<void()>& body) {
  RunForked([&] {
    EnterPrivateMounts();
    body();
  });
}

void GiveToOrdinaryUser(const test::TempWorkspace& workspace) {
  if (!RunningAsRoot()) return;
  const Fd top = Must(test::OpenDirectory(workspace.root()));
  Must(test::WalkTree(top.get(), [](const test::WalkEntry& entry) -> Status {
    if (::fchownat(entry.parent, entry.name, kOrdinaryUid, kOrdinaryUid, AT_SYMLINK_NOFOLLOW) == 0)
      return Ok();
    return Error::FromErrno(errno, "chown");
  }));
}

}  // namespace sandglass::undo
