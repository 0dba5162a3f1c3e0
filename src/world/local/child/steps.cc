// The containment of a local world as an ordered table. docs/world.md explains each step.
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/fd.h"
#include "base/signals.h"
#include "control/shim_start.h"
#include "world/local/child/mounts.h"
#include "world/local/child/plan.h"
#include "world/local/child/write_places.h"

namespace sandglass::world {
namespace {

// Where the descriptors of the plan are moved to; these two close at exec.
constexpr int kShimProgram = 6;
constexpr int kStatus = 7;

constexpr char kHostName[] = "sandglass";

struct Progress {
  ChildPlan& plan;
  NewRoot place = {};
  const char* detail = "";  // what the current step is about
};

int AsErrno(long result) { return result < 0 ? errno : 0; }

// --- Steps: 0 or an errno ---

int MoveDescriptors(Progress& at) {
  const ChildDescriptors& fds = at.plan.fds;
  if (::dup3(fds.status, kStatus, O_CLOEXEC) < 0) return errno;
  if (::dup3(fds.shim, kShimProgram, O_CLOEXEC) < 0) return errno;
  if (::dup2(fds.control, control::kShimControlFd) < 0) return errno;
  if (::dup2(fds.listener_socket, control::kShimListenerFd) < 0) return errno;
  return AsErrno(::dup2(fds.filter, control::kShimFilterFd));
}

int CloseInherited(Progress&) { return AsErrno(::close_range(kStatus + 1, ~0u, 0)); }

int AwaitIds(Progress&) {
  char byte = 0;
  const ssize_t count = ::read(kStatus, &byte, 1);
  if (count == 0) ::_exit(1);  // the host is gone
  return AsErrno(count);
}

int NewSession(Progress&) {
  ::umask(022);
  return AsErrno(::setsid());
}

// After the host has put us into the world's groups: they become the root of what is seen.
int HideControlGroups(Progress&) {
  const int error = AsErrno(::unshare(CLONE_NEWCGROUP));
  return error == EINVAL ? 0 : error;  // a kernel without control groups
}

int MakeMountsPrivate(Progress&) {
  return AsErrno(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr));
}

int TakeHostTrees(Progress& at) {
  for (MountEntry& entry : at.plan.mounts) {
    at.detail = entry.from.c_str();
    if (const int error = TakeHostTree(entry); error != 0) return error;
  }
  return 0;
}

int TakeStages(Progress& at) {
  for (MountEntry& entry : at.plan.mounts) {
    at.detail = entry.from.c_str();
    if (const int error = TakeStage(entry); error != 0) return error;
  }
  return 0;
}

int MountReadOnlyRoot(Progress& at) {
  at.place.root = MountRoot();
  return AsErrno(at.place.root);
}

int MountAll(Progress& at) {
  for (MountEntry& entry : at.plan.mounts) {
    at.detail = entry.target.c_str();
    if (const int error = MountBelow(at.place, entry); error != 0) return error;
  }
  return 0;
}

int MakeDeviceLinks(Progress& at) { return LinkDevices(at.place.root); }

int SealAll(Progress& at) {
  for (MountEntry& entry : at.plan.mounts) {
    at.detail = entry.target.c_str();
    if (const int error = Seal(entry); error != 0) return error;
  }
  return 0;
}

int LeaveTheHostsRoot(Progress& at) {
  const int error = EnterRoot(at.place.root);
  ::close(at.place.root);
  if (at.place.empty >= 0) ::close(at.place.empty);
  return error;
}

int EnterFolder(Progress& at) {
  at.detail = at.plan.folder.c_str();
  return AsErrno(::chdir(at.plan.folder.c_str()));
}

int ConnectNowhere(Progress&) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return errno;
  for (int stream = 0; stream <= 2; ++stream) {
    if (::dup2(null, stream) < 0) return errno;
  }
  if (null > 2) ::close(null);
  return 0;
}

int LoopbackUp(Progress&) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno;
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", sizeof("lo"));
  request.ifr_flags = IFF_UP;
  return AsErrno(::ioctl(socket.get(), SIOCSIFFLAGS, &request));
}

int SetHostName(Progress&) { return AsErrno(::sethostname(kHostName, sizeof(kHostName) - 1)); }

int NewKeyring(Progress&) {
  const int error = AsErrno(::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr));
  return error == ENOSYS ? 0 : error;  // a kernel without keys
}

int SetLimits(Progress& at) {
  for (const ProcessLimit& limit : at.plan.limits) {
    const rlimit both{limit.value, limit.value};
    if (::setrlimit(limit.resource, &both) != 0) return errno;
  }
  return 0;
}

// What tar and package managers need as root; nothing that reaches beyond files.
constexpr uint64_t kRootKeeps = 1ull << CAP_CHOWN | 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FOWNER |
                                1ull << CAP_FSETID | 1ull << CAP_SETUID | 1ull << CAP_SETGID;

int DropCapabilities(Progress& at) {
  const uint64_t kept = at.plan.identity == Identity::kRoot ? kRootKeeps : 0;
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return errno;
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    if ((kept >> capability & 1) != 0) continue;
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return errno;
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  data[0].effective = data[0].permitted = static_cast<uint32_t>(kept);
  return AsErrno(::syscall(SYS_capset, &header, data));
}

int ForbidNewPrivileges(Progress&) { return AsErrno(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); }

int LimitWriting(Progress& at) { return AllowWritingOnlyInOwnPlaces(at.plan); }

int ForgetSignals(Progress&) { return ResetSignals(); }

int BecomeShim(Progress& at) {
  char name[] = "sandglass-shim";
  char* const argv[] = {name, nullptr};
  return AsErrno(::syscall(SYS_execveat, kShimProgram, "", argv,
                           at.plan.environment_pointers.data(), AT_EMPTY_PATH));
}

struct ChildStep {
  const char* name;
  int (*run)(Progress&);
};

constexpr ChildStep kSteps[] = {
    {"move descriptors", MoveDescriptors},
    {"close inherited descriptors", CloseInherited},
    {"wait for ids", AwaitIds},
    {"new session", NewSession},
    {"hide control groups", HideControlGroups},
    {"make mounts private", MakeMountsPrivate},
    {"take", TakeHostTrees},
    {"stage with overlayfs (Linux 5.11 or later)", TakeStages},
    {"mount the root read-only", MountReadOnlyRoot},
    {"mount", MountAll},
    {"links in /dev", MakeDeviceLinks},
    {"make read-only", SealAll},
    {"leave the host's root", LeaveTheHostsRoot},
    {"enter", EnterFolder},
    {"connect standard streams to /dev/null", ConnectNowhere},
    {"bring loopback up", LoopbackUp},
    {"set the host name", SetHostName},
    {"new keyring", NewKeyring},
    {"set limits", SetLimits},
    {"drop capabilities", DropCapabilities},
    {"forbid new privileges", ForbidNewPrivileges},
    {"allow writing only in its own places", LimitWriting},
    {"reset signals", ForgetSignals},
    {"start the shim", BecomeShim},
};

#ifdef SANDGLASS_WEAKENED_WORLD
bool IsLeftOut(const char* step) {
  for (const char* name : steps_left_out) {
    if (std::strcmp(name, step) == 0) return true;
  }
  return false;
}
#else
constexpr bool IsLeftOut(const char*) { return false; }
#endif

[[noreturn]] void Report(uint32_t step, int error, const char* detail, int status) {
  ChildFailure failure;
  failure.step = step;
  failure.error = error;
  std::strncpy(failure.detail, detail, sizeof(failure.detail) - 1);
  ::send(status, &failure, sizeof(failure), MSG_NOSIGNAL);
  ::_exit(1);
}

}  // namespace

void RunChild(ChildPlan& plan) {
  Progress at{.plan = plan};
  for (uint32_t step = 0; step < std::size(kSteps); ++step) {
    if (IsLeftOut(kSteps[step].name)) continue;
    at.detail = "";
    const int error = kSteps[step].run(at);
    // Only the first step can fail before the descriptor has its place.
    if (error != 0) Report(step, error, at.detail, step == 0 ? plan.fds.status : kStatus);
  }
  ::_exit(1);
}

const char* ChildStepName(uint32_t step) {
  return step < std::size(kSteps) ? kSteps[step].name : "";
}

}  // namespace sandglass::world
