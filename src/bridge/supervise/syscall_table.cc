#include "bridge/supervise/syscall_table.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/random.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

namespace sandglass::bridge {
namespace {

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
// Newer than the C library's list.
constexpr uint32_t kSetXattrAt = 463, kRemoveXattrAt = 466, kOpenTreeAttr = 467, kFileSetAttr = 469;

// O_PATH wins over the other bits, but that is for the handler to see: the filter only looks for any of them.
constexpr uint32_t kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
constexpr uint32_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |
                                    CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
constexpr uint32_t kNewTimeNamespace = 0x80;
constexpr uint32_t kVsock = 40;

constexpr When Bits(uint8_t arg, uint32_t mask) { return {When::Kind::kBits, arg, mask}; }
constexpr When Equals(uint8_t arg, uint32_t value) { return {When::Kind::kEquals, arg, value}; }
constexpr SyscallRule Refuse(const char* name, uint32_t number, uint16_t error, When when = {}) {
  return {.name = name,
          .number = number,
          .op = OpClass::kForbidden,
          .handler = Handler::kNone,
          .when = when,
          .error = error};
}
constexpr SyscallRule Note(const char* name, uint32_t number, Handler handler) {
  return {
      .name = name, .number = number, .op = OpClass::kBookkeeping, .handler = handler, .value = 0};
}

using enum OpClass;
constexpr auto kTimespec = static_cast<uint32_t>(TimeLayout::kTimespec);
constexpr auto kTimeval = static_cast<uint32_t>(TimeLayout::kTimeval);
constexpr auto kSeconds = static_cast<uint32_t>(TimeLayout::kSeconds);

// clang-format off
constexpr SyscallRule kTable[] = {
    {.name = "openat", .number = SYS_openat, .op = kContent, .handler = Handler::kOpen, .at = {0, 1}, .flags = 2, .value = 3, .when = Bits(2, kWriting)},
    {.name = "open", .number = SYS_open, .op = kContent, .handler = Handler::kOpen, .at = {-1, 0}, .flags = 1, .value = 2, .when = Bits(1, kWriting)},
    {.name = "faccessat2", .number = SYS_faccessat2, .op = kQuestion, .handler = Handler::kAccess, .at = {0, 1}, .flags = 3, .value = 2, .when = Bits(2, W_OK)},
    {.name = "access", .number = SYS_access, .op = kQuestion, .handler = Handler::kAccess, .at = {-1, 0}, .value = 1, .when = Bits(1, W_OK)},
    {.name = "faccessat", .number = SYS_faccessat, .op = kQuestion, .handler = Handler::kAccess, .at = {0, 1}, .value = 2, .when = Bits(2, W_OK)},
    {.name = "openat2", .number = SYS_openat2, .op = kContent, .handler = Handler::kOpen2, .at = {0, 1}, .value = 2},
    {.name = "creat", .number = SYS_creat, .op = kContent, .handler = Handler::kOpen, .at = {-1, 0}, .value = 1, .fixed = O_CREAT | O_WRONLY | O_TRUNC},
    {.name = "unlinkat", .number = SYS_unlinkat, .op = kNames, .handler = Handler::kRemove, .at = {0, 1}, .flags = 2},
    {.name = "unlink", .number = SYS_unlink, .op = kNames, .handler = Handler::kRemove, .at = {-1, 0}},
    {.name = "rmdir", .number = SYS_rmdir, .op = kNames, .handler = Handler::kRemove, .at = {-1, 0}, .fixed = AT_REMOVEDIR},
    {.name = "rename", .number = SYS_rename, .op = kNames, .handler = Handler::kRename, .at = {-1, 0}, .to = {-1, 1}},
    {.name = "renameat", .number = SYS_renameat, .op = kNames, .handler = Handler::kRename, .at = {0, 1}, .to = {2, 3}},
    {.name = "renameat2", .number = SYS_renameat2, .op = kNames, .handler = Handler::kRename, .at = {0, 1}, .to = {2, 3}, .flags = 4},
    {.name = "mkdir", .number = SYS_mkdir, .op = kNames, .handler = Handler::kMakeDir, .at = {-1, 0}, .value = 1},
    {.name = "mkdirat", .number = SYS_mkdirat, .op = kNames, .handler = Handler::kMakeDir, .at = {0, 1}, .value = 2},
    {.name = "mknod", .number = SYS_mknod, .op = kNames, .handler = Handler::kMakeNode, .at = {-1, 0}, .value = 1},
    {.name = "mknodat", .number = SYS_mknodat, .op = kNames, .handler = Handler::kMakeNode, .at = {0, 1}, .value = 2},
    {.name = "symlink", .number = SYS_symlink, .op = kNames, .handler = Handler::kSymlink, .at = {-1, 1}, .value = 0},
    {.name = "symlinkat", .number = SYS_symlinkat, .op = kNames, .handler = Handler::kSymlink, .at = {1, 2}, .value = 0},
    {.name = "link", .number = SYS_link, .op = kNames, .handler = Handler::kLink, .at = {-1, 0}, .to = {-1, 1}},
    {.name = "linkat", .number = SYS_linkat, .op = kNames, .handler = Handler::kLink, .at = {0, 1}, .to = {2, 3}, .flags = 4},
    {.name = "truncate", .number = SYS_truncate, .op = kContent, .handler = Handler::kTruncate, .at = {-1, 0}, .value = 1},
    {.name = "ftruncate", .number = SYS_ftruncate, .op = kContent, .handler = Handler::kTruncate, .fd = 0, .value = 1},
    {.name = "fallocate", .number = SYS_fallocate, .op = kContent, .handler = Handler::kAllocate, .fd = 0, .value = 1},
    {.name = "chmod", .number = SYS_chmod, .op = kMetadata, .handler = Handler::kChmod, .at = {-1, 0}, .value = 1},
    {.name = "fchmod", .number = SYS_fchmod, .op = kMetadata, .handler = Handler::kChmod, .fd = 0, .value = 1},
    {.name = "fchmodat", .number = SYS_fchmodat, .op = kMetadata, .handler = Handler::kChmod, .at = {0, 1}, .value = 2},
    {.name = "fchmodat2", .number = SYS_fchmodat2, .op = kMetadata, .handler = Handler::kChmod, .at = {0, 1}, .flags = 3, .value = 2},
    {.name = "chown", .number = SYS_chown, .op = kMetadata, .handler = Handler::kChown, .at = {-1, 0}, .value = 1},
    {.name = "lchown", .number = SYS_lchown, .op = kMetadata, .handler = Handler::kChown, .at = {-1, 0}, .value = 1, .fixed = AT_SYMLINK_NOFOLLOW},
    {.name = "fchown", .number = SYS_fchown, .op = kMetadata, .handler = Handler::kChown, .fd = 0, .value = 1},
    {.name = "fchownat", .number = SYS_fchownat, .op = kMetadata, .handler = Handler::kChown, .at = {0, 1}, .flags = 4, .value = 2},
    {.name = "utime", .number = SYS_utime, .op = kMetadata, .handler = Handler::kSetTimes, .at = {-1, 0}, .value = 1, .fixed = kSeconds},
    {.name = "utimes", .number = SYS_utimes, .op = kMetadata, .handler = Handler::kSetTimes, .at = {-1, 0}, .value = 1, .fixed = kTimeval},
    {.name = "futimesat", .number = SYS_futimesat, .op = kMetadata, .handler = Handler::kSetTimes, .at = {0, 1}, .value = 2, .fixed = kTimeval},
    {.name = "utimensat", .number = SYS_utimensat, .op = kMetadata, .handler = Handler::kSetTimes, .at = {0, 1}, .flags = 3, .value = 2, .fixed = kTimespec},
    {.name = "setxattr", .number = SYS_setxattr, .op = kMetadata, .handler = Handler::kSetXattr, .at = {-1, 0}, .value = 1},
    {.name = "lsetxattr", .number = SYS_lsetxattr, .op = kMetadata, .handler = Handler::kSetXattr, .at = {-1, 0}, .value = 1, .fixed = AT_SYMLINK_NOFOLLOW},
    {.name = "fsetxattr", .number = SYS_fsetxattr, .op = kMetadata, .handler = Handler::kSetXattr, .fd = 0, .value = 1},
    {.name = "removexattr", .number = SYS_removexattr, .op = kMetadata, .handler = Handler::kRemoveXattr, .at = {-1, 0}, .value = 1},
    {.name = "lremovexattr", .number = SYS_lremovexattr, .op = kMetadata, .handler = Handler::kRemoveXattr, .at = {-1, 0}, .value = 1, .fixed = AT_SYMLINK_NOFOLLOW},
    {.name = "fremovexattr", .number = SYS_fremovexattr, .op = kMetadata, .handler = Handler::kRemoveXattr, .fd = 0, .value = 1},
    {.name = "statfs", .number = SYS_statfs, .op = kQuestion, .handler = Handler::kStatFs, .at = {-1, 0}, .value = 1},
    {.name = "fstatfs", .number = SYS_fstatfs, .op = kQuestion, .handler = Handler::kStatFs, .fd = 0, .value = 1},
    {.name = "socket AF_UNIX", .number = SYS_socket, .op = kQuestion, .handler = Handler::kSocket, .value = 0, .when = Equals(0, AF_UNIX)},
    Refuse("socket AF_VSOCK", SYS_socket, EAFNOSUPPORT, Equals(0, kVsock)),
    {.name = "socketpair AF_UNIX", .number = SYS_socketpair, .op = kQuestion, .handler = Handler::kSocket, .value = 0, .when = Equals(0, AF_UNIX)},
    {.name = "bind", .number = SYS_bind, .op = kNames, .handler = Handler::kBind, .fd = 0, .value = 1},
    {.name = "connect", .number = SYS_connect, .op = kQuestion, .handler = Handler::kConnect, .fd = 0, .value = 1},
    Note("umask", SYS_umask, Handler::kUmask),
    Note("chroot", SYS_chroot, Handler::kRoot),
    Note("setuid", SYS_setuid, Handler::kCredentials),
    Note("setgid", SYS_setgid, Handler::kCredentials),
    Note("setreuid", SYS_setreuid, Handler::kCredentials),
    Note("setregid", SYS_setregid, Handler::kCredentials),
    Note("setresuid", SYS_setresuid, Handler::kCredentials),
    Note("setresgid", SYS_setresgid, Handler::kCredentials),
    Note("setfsuid", SYS_setfsuid, Handler::kCredentials),
    Note("setfsgid", SYS_setfsgid, Handler::kCredentials),
    Note("setgroups", SYS_setgroups, Handler::kCredentials),
    Note("capset", SYS_capset, Handler::kCredentials),
    Refuse("clone CLONE_NEW*", SYS_clone, EPERM, Bits(0, kNewNamespaces)),
    Refuse("unshare CLONE_NEW*", SYS_unshare, EPERM, Bits(0, kNewNamespaces | kNewTimeNamespace)),
    Refuse("clone3", SYS_clone3, ENOSYS),
    Refuse("setns", SYS_setns, EPERM),
    Refuse("mount", SYS_mount, EPERM),
    Refuse("umount2", SYS_umount2, EPERM),
    Refuse("pivot_root", SYS_pivot_root, EPERM),
    Refuse("open_tree", SYS_open_tree, EPERM),
    Refuse("move_mount", SYS_move_mount, EPERM),
    Refuse("fsopen", SYS_fsopen, EPERM),
    Refuse("fsconfig", SYS_fsconfig, EPERM),
    Refuse("fsmount", SYS_fsmount, EPERM),
    Refuse("fspick", SYS_fspick, EPERM),
    Refuse("mount_setattr", SYS_mount_setattr, EPERM),
    Refuse("open_tree_attr", kOpenTreeAttr, EPERM),
    Refuse("open_by_handle_at", SYS_open_by_handle_at, EPERM),
    Refuse("io_uring_setup", SYS_io_uring_setup, ENOSYS),
    Refuse("io_uring_enter", SYS_io_uring_enter, ENOSYS),
    Refuse("io_uring_register", SYS_io_uring_register, ENOSYS),
    Refuse("userfaultfd", SYS_userfaultfd, EPERM),
    Refuse("bpf", SYS_bpf, EPERM),
    Refuse("perf_event_open", SYS_perf_event_open, EPERM),
    Refuse("keyctl", SYS_keyctl, EPERM),
    Refuse("add_key", SYS_add_key, EPERM),
    Refuse("request_key", SYS_request_key, EPERM),
    Refuse("setxattrat", kSetXattrAt, ENOSYS),
    Refuse("removexattrat", kRemoveXattrAt, ENOSYS),
    Refuse("file_setattr", kFileSetAttr, ENOSYS),
};

// Numbers of the i386 table. Opens and sockets look as in the other one. Changes of metadata and size do not, or not all of them,
// and a descriptor that was handed out would allow them: they are refused wherever they lead.
constexpr SyscallRule kForeign[] = {
    {.name = "openat", .number = 295, .op = kContent, .handler = Handler::kOpen, .at = {0, 1}, .flags = 2, .value = 3, .when = Bits(2, kWriting)},
    {.name = "open", .number = 5, .op = kContent, .handler = Handler::kOpen, .at = {-1, 0}, .flags = 1, .value = 2, .when = Bits(1, kWriting)},
    {.name = "openat2", .number = 437, .op = kContent, .handler = Handler::kOpen2, .at = {0, 1}, .value = 2},
    {.name = "creat", .number = 8, .op = kContent, .handler = Handler::kOpen, .at = {-1, 0}, .value = 1, .fixed = O_CREAT | O_WRONLY | O_TRUNC},
    {.name = "socket AF_UNIX", .number = 359, .op = kQuestion, .handler = Handler::kSocket, .value = 0, .when = Equals(0, AF_UNIX)},
    Refuse("socket AF_VSOCK", 359, EAFNOSUPPORT, Equals(0, kVsock)),
    {.name = "socketpair AF_UNIX", .number = 360, .op = kQuestion, .handler = Handler::kSocket, .value = 0, .when = Equals(0, AF_UNIX)},
    {.name = "bind", .number = 361, .op = kNames, .handler = Handler::kBind, .fd = 0, .value = 1},
    {.name = "connect", .number = 362, .op = kQuestion, .handler = Handler::kConnect, .fd = 0, .value = 1},
    Refuse("socketcall", 102, ENOSYS),
    Refuse("truncate", 92, EPERM),
    Refuse("truncate64", 193, EPERM),
    Refuse("ftruncate", 93, EPERM),
    Refuse("ftruncate64", 194, EPERM),
    Refuse("fallocate", 324, EPERM),
    Refuse("chmod", 15, EPERM),
    Refuse("fchmod", 94, EPERM),
    Refuse("fchmodat", 306, EPERM),
    Refuse("fchmodat2", 452, EPERM),
    Refuse("chown", 182, EPERM),
    Refuse("chown32", 212, EPERM),
    Refuse("lchown", 16, EPERM),
    Refuse("lchown32", 198, EPERM),
    Refuse("fchown", 95, EPERM),
    Refuse("fchown32", 207, EPERM),
    Refuse("fchownat", 298, EPERM),
    Refuse("utime", 30, EPERM),
    Refuse("utimes", 271, EPERM),
    Refuse("futimesat", 299, EPERM),
    Refuse("utimensat", 320, EPERM),
    Refuse("utimensat_time64", 412, EPERM),
    Refuse("setxattr", 226, EPERM),
    Refuse("lsetxattr", 227, EPERM),
    Refuse("fsetxattr", 228, EPERM),
    Refuse("removexattr", 235, EPERM),
    Refuse("lremovexattr", 236, EPERM),
    Refuse("fremovexattr", 237, EPERM),
    Note("umask", 60, Handler::kUmask),
    Note("chroot", 61, Handler::kRoot),
    Note("setuid", 23, Handler::kCredentials),
    Note("setuid32", 213, Handler::kCredentials),
    Note("setgid", 46, Handler::kCredentials),
    Note("setgid32", 214, Handler::kCredentials),
    Note("setreuid", 70, Handler::kCredentials),
    Note("setreuid32", 203, Handler::kCredentials),
    Note("setregid", 71, Handler::kCredentials),
    Note("setregid32", 204, Handler::kCredentials),
    Note("setresuid", 164, Handler::kCredentials),
    Note("setresuid32", 208, Handler::kCredentials),
    Note("setresgid", 170, Handler::kCredentials),
    Note("setresgid32", 210, Handler::kCredentials),
    Note("setfsuid", 138, Handler::kCredentials),
    Note("setfsuid32", 215, Handler::kCredentials),
    Note("setfsgid", 139, Handler::kCredentials),
    Note("setfsgid32", 216, Handler::kCredentials),
    Note("setgroups", 81, Handler::kCredentials),
    Note("setgroups32", 206, Handler::kCredentials),
    Note("capset", 185, Handler::kCredentials),
    Refuse("mount", 21, EPERM),
    Refuse("umount", 22, EPERM),
    Refuse("umount2", 52, EPERM),
    Refuse("pivot_root", 217, EPERM),
    Refuse("clone CLONE_NEW*", 120, EPERM, Bits(0, kNewNamespaces)),
    Refuse("unshare CLONE_NEW*", 310, EPERM, Bits(0, kNewNamespaces | kNewTimeNamespace)),
    Refuse("clone3", 435, ENOSYS),
    Refuse("setns", 346, EPERM),
    Refuse("open_by_handle_at", 342, EPERM),
    Refuse("open_tree", 428, EPERM),
    Refuse("move_mount", 429, EPERM),
    Refuse("fsopen", 430, EPERM),
    Refuse("fsconfig", 431, EPERM),
    Refuse("fsmount", 432, EPERM),
    Refuse("fspick", 433, EPERM),
    Refuse("mount_setattr", 442, EPERM),
    Refuse("open_tree_attr", kOpenTreeAttr, EPERM),
    Refuse("io_uring_setup", 425, ENOSYS),
    Refuse("io_uring_enter", 426, ENOSYS),
    Refuse("io_uring_register", 427, ENOSYS),
    Refuse("userfaultfd", 374, EPERM),
    Refuse("bpf", 357, EPERM),
    Refuse("perf_event_open", 336, EPERM),
    Refuse("keyctl", 288, EPERM),
    Refuse("add_key", 286, EPERM),
    Refuse("request_key", 287, EPERM),
    Refuse("setxattrat", kSetXattrAt, ENOSYS),
    Refuse("removexattrat", kRemoveXattrAt, ENOSYS),
    Refuse("file_setattr", kFileSetAttr, ENOSYS),
};

constexpr SyscallRule Request(const char* name, When when) {
  return {.name = name, .number = 0, .op = kNative, .handler = Handler::kNone, .when = when};
}
constexpr When Is(unsigned long request) { return Equals(1, static_cast<uint32_t>(request)); }
constexpr When Between(unsigned long first, unsigned long last) {
  return {When::Kind::kBetween, 1, static_cast<uint32_t>(first), static_cast<uint32_t>(last)};
}

// ioctl() by its requests, as no list of the dangerous ones could ever be complete: every driver has its own.
constexpr SyscallRule kIoctls[] = {
    Request("ioctl TCGETS to TIOCOUTQ", Between(TCGETS, TIOCOUTQ)),
    Request("ioctl TIOCGWINSZ to FIONREAD", Between(TIOCGWINSZ, FIONREAD)),
    Request("ioctl TIOCPKT, FIONBIO, TIOCNOTTY", Between(TIOCPKT, TIOCNOTTY)),
    Request("ioctl TIOCGETD to TIOCGSID", Between(TIOCGETD, TIOCGSID)),
    Request("ioctl TCGETS2", Is(TCGETS2)),
    Request("ioctl TCSETS2", Is(TCSETS2)),
    Request("ioctl TCSETSW2", Is(TCSETSW2)),
    Request("ioctl TCSETSF2", Is(TCSETSF2)),
    Request("ioctl TIOCGPTN", Is(TIOCGPTN)),
    Request("ioctl TIOCSPTLCK", Is(TIOCSPTLCK)),
    Request("ioctl TIOCGDEV", Is(TIOCGDEV)),
    Request("ioctl TIOCSIG", Is(TIOCSIG)),
    Request("ioctl TIOCGPKT, TIOCGPTLCK", Between(TIOCGPKT, TIOCGPTLCK)),
    Request("ioctl TIOCGEXCL", Is(TIOCGEXCL)),
    Request("ioctl TIOCGPTPEER", Is(TIOCGPTPEER)),
    Request("ioctl FIONCLEX, FIOCLEX, FIOASYNC", Between(FIONCLEX, FIOASYNC)),
    Request("ioctl FIOQSIZE", Is(FIOQSIZE)),
    Request("ioctl FIOSETOWN to SIOCATMARK", Between(FIOSETOWN, SIOCATMARK)),
    Request("ioctl SIOCGIFNAME", Is(SIOCGIFNAME)),
    Request("ioctl SIOCGIFCONF, SIOCGIFFLAGS", Between(SIOCGIFCONF, SIOCGIFFLAGS)),
    Request("ioctl SIOCGIFADDR", Is(SIOCGIFADDR)),
    Request("ioctl SIOCGIFBRDADDR", Is(SIOCGIFBRDADDR)),
    Request("ioctl SIOCGIFNETMASK", Is(SIOCGIFNETMASK)),
    Request("ioctl SIOCGIFMTU", Is(SIOCGIFMTU)),
    Request("ioctl SIOCGIFHWADDR", Is(SIOCGIFHWADDR)),
    Request("ioctl SIOCGIFINDEX", Is(SIOCGIFINDEX)),
    Request("ioctl SIOCGIFTXQLEN", Is(SIOCGIFTXQLEN)),
    Request("ioctl FS_IOC_GETFLAGS", Is(FS_IOC_GETFLAGS)),
    Request("ioctl FS_IOC_GETVERSION", Is(FS_IOC_GETVERSION)),
    Request("ioctl FS_IOC_FSGETXATTR", Is(FS_IOC_FSGETXATTR)),
    Request("ioctl FS_IOC_FIEMAP", Is(FS_IOC_FIEMAP)),
    Request("ioctl FIGETBSZ", Is(FIGETBSZ)),
    // What they write goes to a descriptor that was handed out for writing, as with write() and copy_file_range().
    Request("ioctl FICLONE", Is(FICLONE)),
    Request("ioctl FICLONERANGE", Is(FICLONERANGE)),
    Request("ioctl RNDGETENTCNT", Is(RNDGETENTCNT)),
    Refuse("ioctl TIOCSTI", 0, EPERM, Is(TIOCSTI)),
    Refuse("ioctl TIOCLINUX", 0, EPERM, Is(TIOCLINUX)),
};
// What changes files is performed, and everything else that ioctl() might ask for is refused.
constexpr SyscallRule kFileIoctls[] = {
    {.name = "ioctl FS_IOC_SETFLAGS", .number = SYS_ioctl, .op = kMetadata, .handler = Handler::kSetInodeFlags, .fd = 0, .value = 1, .when = Is(FS_IOC_SETFLAGS)},
    {.name = "ioctl FS_IOC_FSSETXATTR", .number = SYS_ioctl, .op = kMetadata, .handler = Handler::kSetInodeFlags, .fd = 0, .value = 1, .when = Is(FS_IOC_FSSETXATTR)},
};
constexpr uint32_t kForeignIoctl = 54;
// clang-format on

template <size_t... Sizes>
constexpr auto Joined(const SyscallRule (&... parts)[Sizes]) {
  std::array<SyscallRule, (Sizes + ...)> all{};
  size_t at = 0;
  ((std::copy_n(parts, Sizes, all.begin() + at), at += Sizes), ...);
  return all;
}

// The requests of ioctl(), whose number each interface has its own of, and then the refusal of all others.
template <size_t Size>
constexpr auto WithRequests(std::array<SyscallRule, Size> table, uint32_t ioctl) {
  std::array<SyscallRule, Size + std::size(kIoctls) + 1> all{};
  auto next = std::copy(table.begin(), table.end(), all.begin());
  for (SyscallRule request : kIoctls) {
    request.number = ioctl;
    *next++ = request;
  }
  *next = Refuse("ioctl, any other", ioctl, ENOTTY);
  return all;
}

constexpr auto kNativeInterface = WithRequests(Joined(kTable, kFileIoctls), SYS_ioctl);
constexpr auto kForeignInterface = WithRequests(Joined(kForeign), kForeignIoctl);

bool Applies(const When& when, std::span<const uint64_t, 6> args) {
  const auto value = static_cast<uint32_t>(args[when.arg]);
  switch (when.kind) {
    case When::Kind::kAlways:
      return true;
    case When::Kind::kBits:
      return (value & when.operand) != 0;
    case When::Kind::kEquals:
      return value == when.operand;
    case When::Kind::kBetween:
      return value >= when.operand && value <= when.last;
  }
  return false;
}

std::string_view ClassName(OpClass op) {
  switch (op) {
    case OpClass::kNames:
      return "names";
    case OpClass::kContent:
      return "content";
    case OpClass::kMetadata:
      return "metadata";
    case OpClass::kQuestion:
      return "question";
    case OpClass::kBookkeeping:
      return "bookkeeping";
    case OpClass::kNative:
      return "native";
    case OpClass::kForbidden:
      return "forbidden";
  }
  return "";
}

std::string WhenText(const When& when) {
  switch (when.kind) {
    case When::Kind::kAlways:
      return "always";
    case When::Kind::kBits:
      return fmt::format("argument {} has a bit of {:#x}", when.arg, when.operand);
    case When::Kind::kEquals:
      return fmt::format("argument {} is {:#x}", when.arg, when.operand);
    case When::Kind::kBetween:
      return fmt::format("argument {} is {:#x} to {:#x}", when.arg, when.operand, when.last);
  }
  return "";
}

std::string PathText(const PathArg& at) {
  if (at.path < 0) return "";
  if (at.dirfd < 0) return fmt::format("path {}", at.path);
  return fmt::format("dirfd {} path {}", at.dirfd, at.path);
}

std::string ObjectText(const SyscallRule& rule) {
  if (rule.fd >= 0) return fmt::format("fd {}", rule.fd);
  std::string text = PathText(rule.at);
  if (rule.to.path >= 0) text += " to " + PathText(rule.to);
  if (rule.flags >= 0) text += fmt::format(", flags {}", rule.flags);
  return text;
}

std::string_view ErrorName(uint16_t error) {
  switch (error) {
    case EPERM:
      return "EPERM";
    case ENOSYS:
      return "ENOSYS";
    case EAFNOSUPPORT:
      return "EAFNOSUPPORT";
    case ENOTTY:
      return "ENOTTY";
    default:
      return "error";
  }
}

std::string ActionText(const SyscallRule& rule) {
  if (rule.error != 0) return fmt::format("answered {}", ErrorName(rule.error));
  if (rule.op == OpClass::kNative) return "native";
  return rule.op == OpClass::kBookkeeping ? "noted, then native" : "performed by the supervisor";
}

std::string Rows(std::span<const SyscallRule> rules) {
  std::string text =
      "| Call | Number | Class | Where its objects are | When | What happens |\n"
      "|---|---|---|---|---|---|\n";
  for (const SyscallRule& rule : rules) {
    text +=
        fmt::format("| {} | {} | {} | {} | {} | {} |\n", rule.name, rule.number, ClassName(rule.op),
                    ObjectText(rule), WhenText(rule.when), ActionText(rule));
  }
  return text;
}

}  // namespace

std::span<const SyscallRule> SyscallTable(Interface interface) {
  switch (interface) {
    case Interface::kAmd64:
      return kNativeInterface;
    case Interface::kI386:
      return kForeignInterface;
  }
  return {};
}

const SyscallRule* FindRule(Interface interface, uint32_t number,
                            std::span<const uint64_t, 6> args) {
  for (const SyscallRule& rule : SyscallTable(interface)) {
    const bool notifies = rule.error == 0 && rule.op != OpClass::kNative;
    if (rule.number == number && notifies && Applies(rule.when, args)) return &rule;
  }
  return nullptr;
}

std::string SyscallTableAsMarkdown() {
  return "# Supervised system calls\n\n"
         "Made from `src/bridge/supervise/syscall_table.cc` by `print_supervised_calls`; a test "
         "compares the two.\n"
         "Arguments are counted from 0. What is not listed runs natively and meets the project's "
         "read-only mount.\n"
         "A call that is performed by the supervisor runs natively where its object is in no "
         "project.\n\n"
         "## x86-64\n\n" +
         Rows(kNativeInterface) +
         "\n## i386\n\nWhat is not listed runs natively, so names in the project cannot change "
         "(`EROFS`).\n\n" +
         Rows(kForeignInterface) + "\nx32 and every other interface: `ENOSYS`.\n";
}

}  // namespace sandglass::bridge
