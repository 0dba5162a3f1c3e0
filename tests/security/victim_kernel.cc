#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "tests/security/victim.h"

namespace sandglass::victim {

Ended Remount(const Task& task) {
  return Judge(::mount(nullptr, task.target.c_str(), nullptr, MS_REMOUNT | MS_BIND, nullptr) == 0);
}

// What hides a path is a mount like any other.
Ended Unmount(const Task& task) { return Judge(::umount2(task.target.c_str(), MNT_DETACH) == 0); }

Ended NewMountInterface(const Task&) { return Judge(::syscall(SYS_fsopen, "tmpfs", 0) >= 0); }

// In it, the process would have every capability: over nothing of the host, but over much of the kernel.
Ended NewUserNamespace(const Task&) { return Judge(::unshare(CLONE_NEWUSER) == 0); }

// A handle leads to the file whatever mounts and folders are in between.
Ended OpenByHandle(const Task& task) {
  std::vector<char> room(sizeof(file_handle) + MAX_HANDLE_SZ);
  auto* handle = reinterpret_cast<file_handle*>(room.data());
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (::name_to_handle_at(AT_FDCWD, task.target.c_str(), handle, &mount, 0) != 0)
    return Ended::kCannotBeTried;
  const int folder = ::open(".", O_RDONLY | O_DIRECTORY);
  return Judge(::open_by_handle_at(folder, handle, O_RDONLY) >= 0);
}

namespace {

Ended StealFrom(pid_t pid) {
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return Judge(false);
  for (int fd = 0; fd < 64; ++fd) {
    if (::syscall(SYS_pidfd_getfd, process, fd, 0) >= 0) return Judge(true);
    if (errno != EBADF) return Judge(false);
  }
  return Judge(false);
}

}  // namespace

Ended StealDescriptor(const Task& task) { return StealFrom(task.number); }
Ended StealDescriptorOfParent(const Task&) { return StealFrom(::getppid()); }

// Without stopping it; ends with this process.
Ended Trace(const Task& task) {
  return Judge(::ptrace(PTRACE_SEIZE, task.number, nullptr, nullptr) == 0);
}

Ended WriteMemory(const Task& task) {
  const std::string path = "/proc/" + std::to_string(task.number) + "/mem";
  return Judge(::open(path.c_str(), O_RDWR) >= 0);
}

Ended Signal(const Task& task) { return Judge(::kill(task.number, 0) == 0); }

Ended Keyring(const Task&) {
  const long ring = ::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1);
  if (ring < 0 && errno == ENOSYS) return Ended::kCannotBeTried;
  return Judge(ring >= 0);
}

Ended TypeIntoTerminal(const Task&) {
  if (::isatty(0) != 1) return Ended::kCannotBeTried;
  char letter = 'x';
  const bool typed = ::ioctl(0, TIOCSTI, &letter) == 0;
  // The kernel's own switch, dev.tty.legacy_tiocsti.
  if (!typed && errno == EIO) return Ended::kCannotBeTried;
  return Judge(typed);
}

Ended IoUring(const Task& task) {
  io_uring_params parameters{};
  const bool made = ::syscall(SYS_io_uring_setup, 1, &parameters) >= 0;
  // kernel.io_uring_disabled; only where no filter answers first.
  if (!made && task.number != 0 && errno == EPERM) return Ended::kCannotBeTried;
  return Judge(made);
}

}  // namespace sandglass::victim
