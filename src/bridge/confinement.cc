#include "bridge/confinement.h"

#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include "bridge/supervise/filter.h"

namespace sandglass::bridge {
namespace {

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

constexpr uint16_t kRefused = EPERM;

constexpr SyscallRule Refuse(const char* name, long number, uint16_t error = kRefused) {
  return {.name = name,
          .number = static_cast<uint32_t>(number),
          .op = OpClass::kForbidden,
          .handler = Handler::kNone,
          .error = error};
}
constexpr SyscallRule Allow(const char* name, long number, When when) {
  return {.name = name,
          .number = static_cast<uint32_t>(number),
          .op = OpClass::kNative,
          .handler = Handler::kNone,
          .when = when};
}
constexpr When Equals(uint8_t arg, uint32_t operand) {
  return {.kind = When::Kind::kEquals, .arg = arg, .operand = operand};
}
constexpr When Bits(uint8_t arg, uint32_t operand) {
  return {.kind = When::Kind::kBits, .arg = arg, .operand = operand};
}

constexpr SyscallRule kRules[] = {
    // No program, no process; threads are what clone() makes when clone3() is not there.
    Refuse("execve", SYS_execve),
    Refuse("execveat", SYS_execveat),
    Refuse("fork", SYS_fork),
    Refuse("vfork", SYS_vfork),
    Refuse("clone3", SYS_clone3, ENOSYS),
    Allow("clone", SYS_clone, Bits(0, CLONE_THREAD)),
    Refuse("clone", SYS_clone),
    // No network. Sockets of the world's own making are connected for it.
    Allow("socket", SYS_socket, Equals(0, AF_UNIX)),
    Refuse("socket", SYS_socket),
    Refuse("io_uring_setup", SYS_io_uring_setup),
    // Nobody is ended or traced. Whether a process lives may be asked, and who goes over its limit of file sizes is told.
    Refuse("kill", SYS_kill),
    Refuse("tkill", SYS_tkill),
    Refuse("tgkill", SYS_tgkill),
    Refuse("rt_sigqueueinfo", SYS_rt_sigqueueinfo),
    Refuse("rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo),
    Allow("pidfd_send_signal", SYS_pidfd_send_signal, Equals(1, 0)),
    Allow("pidfd_send_signal", SYS_pidfd_send_signal, Equals(1, SIGXFSZ)),
    Refuse("pidfd_send_signal", SYS_pidfd_send_signal),
    Refuse("ptrace", SYS_ptrace),
    Refuse("process_madvise", SYS_process_madvise),
    Refuse("kcmp", SYS_kcmp),
    // Each worker has a working directory and a umask of its own; nothing else is unshared.
    Allow("unshare", SYS_unshare, Equals(0, CLONE_FS)),
    Refuse("unshare", SYS_unshare),
    Refuse("setns", SYS_setns),
    Refuse("chroot", SYS_chroot),
    Refuse("pivot_root", SYS_pivot_root),
    Refuse("mount", SYS_mount),
    Refuse("umount2", SYS_umount2),
    Refuse("open_tree", SYS_open_tree),
    Refuse("move_mount", SYS_move_mount),
    Refuse("fsopen", SYS_fsopen),
    Refuse("fsconfig", SYS_fsconfig),
    Refuse("fsmount", SYS_fsmount),
    Refuse("fspick", SYS_fspick),
    Refuse("mount_setattr", SYS_mount_setattr),
    // The kernel itself.
    Refuse("bpf", SYS_bpf),
    Refuse("perf_event_open", SYS_perf_event_open),
    Refuse("userfaultfd", SYS_userfaultfd),
    Refuse("init_module", SYS_init_module),
    Refuse("finit_module", SYS_finit_module),
    Refuse("delete_module", SYS_delete_module),
    Refuse("kexec_load", SYS_kexec_load),
    Refuse("kexec_file_load", SYS_kexec_file_load),
    Refuse("reboot", SYS_reboot),
    Refuse("swapon", SYS_swapon),
    Refuse("swapoff", SYS_swapoff),
    Refuse("acct", SYS_acct),
    Refuse("syslog", SYS_syslog),
    Refuse("quotactl", SYS_quotactl),
    Refuse("iopl", SYS_iopl),
    Refuse("ioperm", SYS_ioperm),
    Refuse("settimeofday", SYS_settimeofday),
    Refuse("clock_settime", SYS_clock_settime),
    Refuse("sethostname", SYS_sethostname),
    Refuse("setdomainname", SYS_setdomainname),
    Refuse("add_key", SYS_add_key),
    Refuse("request_key", SYS_request_key),
    Refuse("keyctl", SYS_keyctl),
    Refuse("personality", SYS_personality),
};

constexpr uint64_t Bit(int capability) { return uint64_t{1} << capability; }

// To act as the caller, to see its descriptors and memory, and to bring back what root's files can have: owners, devices, inode
// flags, capabilities and trusted attributes (SYS_ADMIN; what else that would allow is refused above).
constexpr uint64_t kKept = Bit(CAP_CHOWN) | Bit(CAP_DAC_OVERRIDE) | Bit(CAP_DAC_READ_SEARCH) |
                           Bit(CAP_FOWNER) | Bit(CAP_FSETID) | Bit(CAP_SETUID) | Bit(CAP_SETGID) |
                           Bit(CAP_SETFCAP) | Bit(CAP_MKNOD) | Bit(CAP_LEASE) |
                           Bit(CAP_LINUX_IMMUTABLE) | Bit(CAP_SYS_PTRACE) | Bit(CAP_SYS_RESOURCE) |
                           Bit(CAP_SYS_ADMIN);

Status DropCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return Error::FromErrno(errno, "capget");
  for (int half = 0; half < 2; ++half) {
    const auto kept = static_cast<uint32_t>(kKept >> (32 * half));
    data[half].effective &= kept;
    data[half].permitted &= kept;
    data[half].inheritable = 0;
  }
  if (::syscall(SYS_capset, &header, data) != 0)
    return Error::FromErrno(errno, "give up capabilities");
  return Ok();
}

}  // namespace

std::span<const SyscallRule> RefusedOfBridge() { return kRules; }

Status ConfineBridge() {
  TRY(DropCapabilities());
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return Error::FromErrno(errno, "forbid new privileges");
  const std::vector<sock_filter> program = BuildRefusals(kRules);
  const sock_fprog raw{static_cast<unsigned short>(program.size()),
                       const_cast<sock_filter*>(program.data())};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &raw) != 0)
    return Error::FromErrno(errno, "confine the bridge process");
  return Ok();
}

}  // namespace sandglass::bridge
