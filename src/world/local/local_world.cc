#include "world/local/local_world.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/io.h"
#include "base/passed_fds.h"
#include "control/shim_start.h"
#include "world/local/child/plan.h"
#include "world/local/child/write_places.h"
#include "world/local/environment.h"
#include "world/local/id_maps.h"
#include "world/local/mount_plan.h"

namespace sandglass::world {
namespace {

constexpr unsigned long kNamespaces =
    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;

// --- What the child is given ---

struct SocketPair {
  Fd ours;
  Fd childs;
};

// The child moves its descriptors to small numbers; above those, none can be overwritten before it is moved.
Result<Fd> OutOfTheWay(Fd fd, std::string_view what) {
  if (!fd) return Error::FromErrno(errno, what);
  Fd moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstChildDescriptor));
  if (!moved) return Error::FromErrno(errno, what);
  return moved;
}

Result<SocketPair> NewSocketPair(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0)
    return Error::FromErrno(errno, "socketpair");
  SocketPair pair{.ours = Fd(ends[0])};
  TRY_ASSIGN(pair.childs, OutOfTheWay(Fd(ends[1]), "socketpair"));
  return pair;
}

Result<Fd> FilterFile(std::span<const sock_filter> filter) {
  TRY_ASSIGN(Fd file, OutOfTheWay(Fd(::memfd_create("filter", MFD_CLOEXEC)), "memfd_create"));
  TRY(WriteFully(file.get(),
                 {reinterpret_cast<const uint8_t*>(filter.data()), filter.size_bytes()}));
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return Error::FromErrno(errno, "lseek");
  return file;
}

struct Launchpad {
  SocketPair control;
  SocketPair listeners;
  SocketPair status;
  Fd filter;
  Fd shim;
  ChildPlan plan;
};

Status OpenDescriptors(const LocalWorldSpec& spec, Launchpad& pad) {
  TRY_ASSIGN(pad.control, NewSocketPair(SOCK_STREAM));
  TRY_ASSIGN(pad.listeners, NewSocketPair(SOCK_SEQPACKET));
  TRY_ASSIGN(pad.status, NewSocketPair(SOCK_SEQPACKET));
  TRY_ASSIGN(pad.filter, FilterFile(spec.command_filter));
  TRY_ASSIGN(pad.shim, OutOfTheWay(Fd(::open(spec.shim_path.c_str(), O_PATH | O_CLOEXEC)),
                                   fmt::format("open {}", spec.shim_path)));
  pad.plan.fds = {.control = pad.control.childs.get(),
                  .listener_socket = pad.listeners.childs.get(),
                  .filter = pad.filter.get(),
                  .shim = pad.shim.get(),
                  .status = pad.status.childs.get()};
  ::fcntl(pad.control.ours.get(), F_SETFL, O_RDWR | O_NONBLOCK);
  return Ok();
}

Status FillPlan(const LocalWorldSpec& spec, const EnforcedLimits& limits, ChildPlan& plan) {
  TRY_ASSIGN(plan.mounts, PlanMounts(spec));
  const std::string home = HomeOf(spec);
  plan.identity = ::geteuid() == 0 ? Identity::kRoot : Identity::kOrdinary;
  plan.limits = limits.process_limits();
  plan.folder = spec.projects.empty() ? home : spec.projects.front().path;
  plan.environment = WorldEnvironment(home, plan.mounts);
  for (std::string& entry : plan.environment) plan.environment_pointers.push_back(entry.data());
  plan.environment_pointers.push_back(nullptr);
  return Ok();
}

// --- Starting it ---

struct Child {
  pid_t pid = -1;
  Fd pidfd;
};

// Handlers of the host must not run in the child, so signals are blocked until it has reset them.
Result<Child> Clone(ChildPlan& plan) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  // Not clone3: container runtimes refuse it. Without a stack this is fork().
  const auto pid = static_cast<pid_t>(
      ::syscall(SYS_clone, kNamespaces | CLONE_PIDFD | SIGCHLD, nullptr, &pidfd, nullptr, 0));
  if (pid == 0) RunChild(plan);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid > 0) return Child{pid, Fd(pidfd)};
  return WithAdvice(Error::FromErrno(error, "make namespaces"));
}

Status LetGoOn(const Fd& status) {
  const char go = 1;
  if (::send(status.get(), &go, 1, MSG_NOSIGNAL) < 0)
    return Error::FromErrno(errno, "tell the first process to go on");
  return Ok();
}

// Returns when the child has become the shim.
Status Follow(const Fd& status) {
  ChildFailure failure;
  ssize_t size = -1;
  do {
    size = ::recv(status.get(), &failure, sizeof(failure), 0);
  } while (size < 0 && errno == EINTR);
  if (size == 0) return Ok();  // closed by exec
  if (size != sizeof(failure)) return Error(Code::kIo, "the first process makes no sense");
  failure.detail[sizeof(failure.detail) - 1] = '\0';
  const std::string_view space = failure.detail[0] == '\0' ? "" : " ";
  return Error::FromErrno(
      failure.error, fmt::format("{}{}{}", ChildStepName(failure.step), space, failure.detail));
}

std::vector<std::string> WeaknessesOf(const LocalWorldSpec& spec) {
  if (!spec.without_landlock || CanLockAllWriting()) return {};
  return {
      fmt::format("without Landlock ({}): what a command changed by racing its own descriptors "
                  "is not recorded",
                  spec.without_landlock->reason)};
}

}  // namespace

Result<std::unique_ptr<LocalWorld>> LocalWorld::Start(const LocalWorldSpec& spec) {
  TRY_ASSIGN(std::unique_ptr<LocalWorld> world, Begin(spec));
  TRY(world->AwaitShim());
  return world;
}

Result<std::unique_ptr<LocalWorld>> LocalWorld::Begin(const LocalWorldSpec& spec) {
  if (const Status able = CheckMachine(spec.without_landlock); !able.ok())
    return able.error().WithContext("world");
  auto limits = EnforcedLimits::Prepare(spec.limits);
  if (!limits.ok()) return limits.error().WithContext("world");
  std::unique_ptr<LocalWorld> world(new LocalWorld(std::move(limits).value()));
  world->weaknesses_ = WeaknessesOf(spec);
  const Status launched = world->Launch(spec);
  if (!launched.ok()) return launched.error().WithContext("world");
  return world;
}

Status LocalWorld::Launch(const LocalWorldSpec& spec) {
  Launchpad pad;
  TRY(OpenDescriptors(spec, pad));
  TRY(FillPlan(spec, limits_, pad.plan));
  TRY_ASSIGN(Child child, Clone(pad.plan));
  init_pid_ = child.pid;
  pidfd_ = std::move(child.pidfd);
  // Else the end of the status channel would never be seen.
  pad.status.childs.Reset();
  control_ = std::move(pad.control.ours);
  listeners_ = std::move(pad.listeners.ours);
  if (const Status joined = limits_.Join(init_pid_); !joined.ok())
    return joined.error().WithContext("enforce limits");
  if (const Status mapped = MapIds(init_pid_); !mapped.ok())
    return WithAdvice(mapped.error().WithContext("map ids"));
  status_ = std::move(pad.status.ours);
  return LetGoOn(status_);
}

Status LocalWorld::AwaitShim() {
  const Status followed = Follow(status_);
  status_.Reset();
  return followed.ok() ? Ok() : WithAdvice(followed.error()).WithContext("world");
}

LocalWorld::~LocalWorld() {
  if (!pidfd_) return;
  Kill();
  while (!Wait(std::chrono::hours(1))) continue;
}

Result<LocalWorld::CommandListener> LocalWorld::ReceiveListener() {
  control::ListenerMessage message;
  TRY_ASSIGN(
      ReceivedMessage received,
      ReceiveWithFds(listeners_.get(), {reinterpret_cast<uint8_t*>(&message), sizeof(message)}));
  if (received.size == 0 && received.fd_count == 0)
    return Error(Code::kCancelled, "the world has ended");
  if (received.size != sizeof(message) || received.fd_count != control::kListenerMessageFds)
    return Error(Code::kInvalid, "a message that brings no listener");
  const StepId command{message.command};
  if (!waiting_.try_emplace(command, std::move(received.fds[1])).second)
    return Error(Code::kExists, fmt::format("a second listener of command {}", command.value));
  return CommandListener{command, std::move(received.fds[0])};
}

Status LocalWorld::Release(StepId command, std::span<const int> given) {
  const auto waiting = waiting_.find(command);
  if (waiting == waiting_.end())
    return Error(Code::kNotFound, fmt::format("command {} does not wait", command.value));
  const Fd socket = std::move(waiting->second);
  waiting_.erase(waiting);
  const uint8_t go[] = {1};
  Status sent;
  if (!given.empty())
    sent = SendWithFds(socket.get(), go, given);
  else if (::send(socket.get(), go, sizeof(go), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    sent = Error::FromErrno(errno, "send");
  // It may have been cancelled meanwhile; then its end is told over the control channel.
  if (sent.ok() || sent.error().sys_errno() == EPIPE) return Ok();
  return sent.error().WithContext("release a command");
}

void LocalWorld::Kill() {
  if (!gone_) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
}

// The kernel reports the end of a pid namespace's first process only when all others in it are gone.
bool LocalWorld::Wait(std::chrono::milliseconds timeout) {
  if (gone_) return true;
  pollfd end{.fd = pidfd_.get(), .events = POLLIN};
  if (::poll(&end, 1, static_cast<int>(timeout.count())) <= 0) return false;
  siginfo_t info{};
  gone_ =
      ::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED) == 0 || errno == ECHILD;
  return gone_;
}

}  // namespace sandglass::world
