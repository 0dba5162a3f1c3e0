#include "world/local/refusal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string_view>

#include "base/fd.h"
#include "base/io.h"
#include "world/local/child/write_places.h"

namespace sandglass::world {
namespace {

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

constexpr int kNeededMajor = 5;
constexpr int kNeededMinor = 19;  // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

std::string WhyKernelTooOld() {
  utsname name{};
  ::uname(&name);
  int major = 0;
  int minor = 0;
  std::sscanf(name.release, "%d.%d", &major, &minor);
  if (major > kNeededMajor || (major == kNeededMajor && minor >= kNeededMinor)) return "";
  return fmt::format("Linux {} is too old: {}.{} is needed", name.release, kNeededMajor,
                     kNeededMinor);
}

// --- Namespaces, and the calls that build a tree of mounts in them.

int AsErrno(long result) { return result < 0 ? errno : 0; }

constexpr unsigned long kPrivate = 1ul << 14 | 1ul << 18;  // MS_REC | MS_PRIVATE

struct Attempt {
  int tree = -1;  // not closed: the process ends soon
};

int TryMount(Attempt&) {
  return AsErrno(::syscall(SYS_mount, nullptr, "/", nullptr, kPrivate, nullptr));
}
int TryOpenTree(Attempt& at) {
  at.tree = static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  return AsErrno(at.tree);
}
int TryMountSetattr(Attempt& at) {
  mount_attr change{};
  change.attr_set = MOUNT_ATTR_RDONLY;
  return AsErrno(::syscall(SYS_mount_setattr, at.tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &change,
                           sizeof(change)));
}
int TryMoveMount(Attempt& at) {
  return AsErrno(::syscall(SYS_move_mount, at.tree, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH));
}
int TryFsopen(Attempt&) { return AsErrno(::syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC)); }

struct Trial {
  const char* what;
  int (*run)(Attempt&);  // 0 or an errno
};
// In order: each works on what the one before it has made.
constexpr Trial kTrials[] = {{"mount", TryMount},
                             {"open_tree", TryOpenTree},
                             {"mount_setattr", TryMountSetattr},
                             {"move_mount", TryMoveMount},
                             {"fsopen", TryFsopen}};

struct Refused {
  const char* what = nullptr;  // null: nothing was
  int error = 0;
};

[[noreturn]] void RunTrials(const Fd& told) {
  Attempt attempt;
  for (uint8_t i = 0; i < std::size(kTrials); ++i) {
    const int error = kTrials[i].run(attempt);
    if (error == 0) continue;
    const uint8_t failure[] = {i, static_cast<uint8_t>(error)};
    [[maybe_unused]] const ssize_t written = ::write(told.get(), failure, sizeof(failure));
    break;
  }
  ::_exit(0);
}

// Ubuntu lets everybody make the namespaces and refuses the rights in them.
Refused TryNamespaces() {
  constexpr unsigned long kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                        CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {"pipe", errno};
  const Fd told(ends[0]);
  Fd tells(ends[1]);
  const auto child =
      static_cast<pid_t>(::syscall(SYS_clone, kNamespaces, nullptr, nullptr, nullptr, 0));
  if (child < 0) return {"namespaces", errno};
  if (child == 0) RunTrials(tells);
  tells.Reset();
  uint8_t failure[2] = {};
  const ssize_t got = ::read(told.get(), failure, sizeof(failure));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  // A filter may rather end whoever makes such a call.
  if (!WIFEXITED(status)) return {"mounts in namespaces, and ends who tries", EPERM};
  if (got != sizeof(failure) || failure[0] >= std::size(kTrials)) return {};
  return {kTrials[failure[0]].what, failure[1]};
}

bool SettingIs(const char* path, std::string_view value) {
  const auto text = ReadFileAt(AT_FDCWD, path, 64);
  return text.ok() && text.value() == fmt::format("{}\n", value);
}

struct Setting {
  const char* path;
  const char* refusing;
  const char* remedy;
};
constexpr Setting kSettings[] = {
    {"/proc/sys/user/max_user_namespaces", "0",
     "user namespaces are off; allow them with: sysctl user.max_user_namespaces=10000"},
    {"/proc/sys/kernel/unprivileged_userns_clone", "0",
     "user namespaces are for root only; allow them with: sysctl "
     "kernel.unprivileged_userns_clone=1"},
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
     "AppArmor refuses rights in user namespaces (Ubuntu); allow them with: "
     "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or give sandglass a profile with "
     "\"userns,\""},
};

// --- Supervision.

// The errno of installing a filter with these flags, as far as that goes without one: EFAULT where the kernel knows them.
int TryFilterFlags(unsigned long flags) {
  return AsErrno(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, nullptr));
}

// --- Advice.

constexpr char kForbidden[] =
    "something forbids it to sandglass: the seccomp filter of a container (docker: --security-opt "
    "seccomp=unconfined), or a security module such as AppArmor or SELinux; `sandglass doctor` "
    "tries everything that is needed";

bool MayBeTheMachine(int error) {
  return error == EPERM || error == EACCES || error == ENOSYS || error == ENOSPC || error == EUSERS;
}

}  // namespace

std::string WhyNoNamespaces() {
  if (std::string old = WhyKernelTooOld(); !old.empty()) return old;
  const Refused refused = TryNamespaces();
  if (refused.what == nullptr) return "";
  for (const Setting& setting : kSettings) {
    if (SettingIs(setting.path, setting.refusing)) return setting.remedy;
  }
  return fmt::format(
      "the kernel refuses {}: {}; in a container, let it create user namespaces and mount in them "
      "(docker: --security-opt seccomp=unconfined --security-opt apparmor=unconfined)",
      refused.what, std::strerror(refused.error));
}

std::string WhyNoSupervision() {
  const int error =
      TryFilterFlags(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
  if (error == EFAULT) return "";
  return fmt::format(
      "the kernel refuses seccomp user notification, without which nothing sees what a command "
      "changes: {}; use Linux 5.19 or later with CONFIG_SECCOMP_FILTER; in a container, let it use "
      "seccomp (docker: --security-opt seccomp=unconfined)",
      std::strerror(error));
}

std::string WhyNoWriteLock() {
  if (CanLockAllWriting()) return "";
  return fmt::format(
      "Landlock of Linux 6.2 or later is missing, without which a command that races its own "
      "descriptors can change files that it has open unseen by undo; use such a kernel with "
      "landlock among its security modules (lsm=), or accept this with {}",
      kWithoutLandlockFlag);
}

std::string WhyNoLocalWorld() {
  for (const auto& why : {WhyNoNamespaces, WhyNoSupervision, WhyNoWriteLock}) {
    if (std::string text = why(); !text.empty()) return text;
  }
  return "";
}

Status CheckMachine(const std::optional<WithoutLandlock>& accepted) {
  std::string missing = WhyKernelTooOld();
  if (missing.empty()) missing = WhyNoSupervision();
  if (missing.empty() && !accepted) missing = WhyNoWriteLock();
  return missing.empty() ? Ok() : Status(Error(Code::kUnsupported, missing));
}

Error WithAdvice(const Error& failure) {
  if (!MayBeTheMachine(failure.sys_errno())) return failure;
  std::string advice = WhyNoNamespaces();
  // A file of the host that cannot be reached is EACCES, and no fault of the machine.
  const bool forbidden = failure.sys_errno() == EPERM || failure.sys_errno() == ENOSYS;
  if (advice.empty() && forbidden) advice = kForbidden;
  if (advice.empty()) return failure;
  return Error(Code::kUnsupported, fmt::format("{}; {}", failure.message(), advice),
               failure.sys_errno());
}

}  // namespace sandglass::world
