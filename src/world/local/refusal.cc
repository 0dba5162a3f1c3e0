// Why a local world cannot be built here: found by trying, explained by what the kernel's settings say.
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/io.h"
#include "world/local/local_world.h"

namespace sandglass::world {
namespace {

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

// The errno of making the namespaces and using the rights in them; Ubuntu allows the first and refuses the second.
int TryNamespaces() {
  constexpr unsigned long kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                        CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD;
  const auto child =
      static_cast<pid_t>(::syscall(SYS_clone, kNamespaces, nullptr, nullptr, nullptr, 0));
  if (child < 0) return errno;
  if (child == 0)
    ::_exit(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 ? 0 : errno);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
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

}  // namespace

std::string WhyNoLocalWorld() {
  if (std::string old = WhyKernelTooOld(); !old.empty()) return old;
  const int error = TryNamespaces();
  if (error == 0) return "";
  for (const Setting& setting : kSettings) {
    if (SettingIs(setting.path, setting.refusing)) return setting.remedy;
  }
  return fmt::format(
      "the kernel refuses namespaces: {}; in a container, let it create user namespaces",
      std::strerror(error));
}

}  // namespace sandglass::world
