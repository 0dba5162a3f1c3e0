// sandglass-shim: the first process of a world. It is linked statically, because it is started from a descriptor in a place
// where no library may be found, and takes no arguments: see control/shim_start.h for what it is started with.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "control/shim_start.h"
#include "shim/shim.h"

namespace sandglass::shim {
namespace {

constexpr size_t kMaxFilterBytes = BPF_MAXINSNS * sizeof(sock_filter);

Result<std::vector<sock_filter>> ReadFilter(const Fd& file) {
  TRY_ASSIGN(const Bytes bytes, ReadFully(file.get(), kMaxFilterBytes));
  if (bytes.size() % sizeof(sock_filter) != 0)
    return Error(Code::kInvalid, "the system call filter is cut off");
  std::vector<sock_filter> filter(bytes.size() / sizeof(sock_filter));
  if (!bytes.empty()) std::memcpy(filter.data(), bytes.data(), bytes.size());
  return filter;
}

Fd ChildrenSignals() {
  sigset_t children;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &children, nullptr);
  return Fd(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
}

Fd Inherited(int number, int status_flags = 0) {
  ::fcntl(number, F_SETFD, FD_CLOEXEC);
  if (status_flags != 0) ::fcntl(number, F_SETFL, ::fcntl(number, F_GETFL) | status_flags);
  return Fd(number);
}

int Main() {
  // Else a command could take the control channel by pidfd_getfd() or through /proc/1.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ::signal(SIGPIPE, SIG_IGN);
  ShimDescriptors descriptors{.control = Inherited(control::kShimControlFd, O_NONBLOCK),
                              .listener_socket = Inherited(control::kShimListenerFd),
                              .children = ChildrenSignals()};
  auto filter = ReadFilter(Inherited(control::kShimFilterFd));
  // Without the filter commands would run unsupervised: better not at all.
  if (!filter.ok() || !descriptors.children) return 1;
  Shim(std::move(descriptors), std::move(filter).value()).Run();
  return 0;
}

}  // namespace
}  // namespace sandglass::shim

int main() { return sandglass::shim::Main(); }
