#include "bridge/supervise/listener.h"

#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

namespace sandglass::bridge {

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

namespace {

cpu_set_t AffinityOf(pid_t tid) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  (void)::sched_getaffinity(tid, sizeof(cpus), &cpus);
  return cpus;
}

bool SetAffinity(pid_t tid, const cpu_set_t& cpus) {
  return ::sched_setaffinity(tid, sizeof(cpus), &cpus) == 0;
}

// While it lives, a task that waits for us and this thread run on no CPU but this one. Handing a descriptor over wakes the task for a
// moment and waits for it, and then the task wakes us; the scheduler would send each to an idle CPU for that, which takes longer to
// wake up than all the rest of the call.
class Nearby {
 public:
  explicit Nearby(pid_t tid) : tid_(tid), before_(AffinityOf(tid)) {
    const int cpu = ::sched_getcpu();
    if (cpu < 0 || CPU_COUNT(&before_) < 2 || !CPU_ISSET(cpu, &before_)) return;
    CPU_ZERO(&here_);
    CPU_SET(cpu, &here_);
    // We come first: should we be elsewhere by now, this brings us back to where the task is to be.
    if (!CPU_ISSET(cpu, &Own()) || !SetAffinity(0, here_)) return;
    moved_ = SetAffinity(tid_, here_);
    if (!moved_) SetAffinity(0, Own());
  }
  // Whoever set the task's to something else meanwhile has the last word.
  ~Nearby() {
    if (!moved_) return;
    const cpu_set_t now = AffinityOf(tid_);
    if (CPU_EQUAL(&now, &here_)) SetAffinity(tid_, before_);
    SetAffinity(0, Own());
  }
  Nearby(const Nearby&) = delete;
  Nearby& operator=(const Nearby&) = delete;

 private:
  // Of this thread when it first asks. A worker lives no longer than its command.
  static const cpu_set_t& Own() {
    static thread_local const cpu_set_t own = AffinityOf(0);
    return own;
  }

  const pid_t tid_;
  bool moved_ = false;
  const cpu_set_t before_;
  cpu_set_t here_;
};

}  // namespace

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

Listener::Received Listener::Look() const {
  pollfd state{fd_.get(), POLLIN, 0};
  if (::poll(&state, 1, 0) <= 0) return Received::kNothing;
  return (state.revents & POLLIN) != 0 ? Received::kCall : Received::kEnded;
}

void Listener::Await() const {
  pollfd state{fd_.get(), POLLIN, 0};
  while (::poll(&state, 1, -1) < 0) continue;
}

bool Listener::EndsWithin(std::chrono::milliseconds time) const {
  pollfd state{fd_.get(), 0, 0};
  return ::poll(&state, 1, static_cast<int>(time.count())) > 0;
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

Result<int> Listener::Give(const seccomp_notif& call, Fd fd, uint32_t fd_flags) const {
  seccomp_notif_addfd request{.id = call.id,
                              .flags = 0,
                              .srcfd = static_cast<uint32_t>(fd.get()),
                              .newfd = 0,
                              .newfd_flags = fd_flags};
  // If the task is gone and its number another's by now, that one stays where we are for the moment that the refusal takes.
  const Nearby nearby(static_cast<pid_t>(call.pid));
  const int number = ::ioctl(fd_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &request);
  if (number < 0) return Error::FromErrno(errno, "hand a descriptor over");
  return number;
}

}  // namespace sandglass::bridge
