#include "bridge/supervise/listener.h"

#include <poll.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

namespace sandglass::bridge {

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

Listener::Listener(Fd fd) : fd_(std::move(fd)) {
  // Hands the CPU over at once; kernels before 6.6 do without.
  ::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

Listener::Received Listener::Receive(seccomp_notif& call) const {
  std::memset(&call, 0, sizeof(call));
  if (::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) == 0) return Received::kCall;
  if (errno != ENOENT && errno != EINTR) return Received::kEnded;
  pollfd state{fd_.get(), POLLIN, 0};
  ::poll(&state, 1, 0);
  return (state.revents & POLLHUP) != 0 ? Received::kEnded : Received::kNothing;
}

bool Listener::IsWaiting(uint64_t id) const {
  return ::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

void Listener::Send(seccomp_notif_resp& answer) const {
  ::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

void Listener::Continue(uint64_t id) const {
  seccomp_notif_resp answer{
      .id = id, .val = 0, .error = 0, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
  Send(answer);
}

void Listener::Return(uint64_t id, int64_t value) const {
  seccomp_notif_resp answer{.id = id, .val = value, .error = 0, .flags = 0};
  Send(answer);
}

void Listener::Fail(uint64_t id, int sys_errno) const {
  seccomp_notif_resp answer{.id = id, .val = 0, .error = -sys_errno, .flags = 0};
  Send(answer);
}

bool Listener::HandOver(uint64_t id, Fd fd, uint32_t fd_flags) const {
  seccomp_notif_addfd request{.id = id,
                              .flags = 0,
                              .srcfd = static_cast<uint32_t>(fd.get()),
                              .newfd = 0,
                              .newfd_flags = fd_flags};
  const int number = ::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &request);
  const int failure = errno;
  fd.Reset();
  if (number < 0) {
    Fail(id, failure);
    return false;
  }
  Return(id, number);
  return true;
}

}  // namespace sandglass::bridge
