// Signals between fork and exec. Allocates nothing.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace sandglass {

// Every signal is handled as if nobody had ever asked for anything else.
// glibc's signal() refuses the two signals that it uses itself, which a parent may have left ignored: hence the system call.
// 0 or an errno.
inline int ResetHandlers() {
  struct {
    uint64_t handler = 0, flags = 0, restorer = 0, mask = 0;
  } const fresh;
  constexpr int kLast = 64;
  for (int number = 1; number <= kLast; ++number) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    if (::syscall(SYS_rt_sigaction, number, &fresh, nullptr, sizeof(uint64_t)) != 0) return errno;
  }
  return 0;
}

inline int UnblockSignals() {
  const uint64_t none = 0;
  return ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof(none)) == 0 ? 0 : errno;
}

// Both, which are inherited over exec.
inline int ResetSignals() {
  const int err = ResetHandlers();
  return err != 0 ? err : UnblockSignals();
}

}  // namespace sandglass
