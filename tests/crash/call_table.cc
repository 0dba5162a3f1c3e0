#include "tests/crash/call_table.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>

#include <algorithm>
#include <iterator>

namespace sandglass::crash {
namespace {

constexpr int8_t kNo = kNoArgument;
constexpr auto kLook = CallKind::kLook;
constexpr auto kChange = CallKind::kChange;
constexpr auto kRoom = SpaceNeed::kMayRunOut;

// clang-format off
constexpr CallRow kRows[] = {
    // Names.
    {SYS_openat, "openat", CallKind::kOpen, {0, kNo}, {1, kNo}, 2, kRoom},
    {SYS_openat2, "openat2", CallKind::kOpen2, {0, kNo}, {1, kNo}, 2, kRoom},
    {SYS_open_by_handle_at, "open_by_handle_at", CallKind::kOpen, {0, kNo}, {kNo, kNo}, 2},
    {SYS_mkdirat, "mkdirat", kChange, {0, kNo}, {1, kNo}, kNo, kRoom},
    {SYS_mknodat, "mknodat", kChange, {0, kNo}, {1, kNo}, kNo, kRoom},
    {SYS_symlinkat, "symlinkat", kChange, {1, kNo}, {2, kNo}, kNo, kRoom},
    {SYS_linkat, "linkat", kChange, {0, 2}, {1, 3}, kNo, kRoom},
    {SYS_unlinkat, "unlinkat", kChange, {0, kNo}, {1, kNo}},
    {SYS_renameat2, "renameat2", kChange, {0, 2}, {1, 3}},
#ifdef SYS_renameat
    {SYS_renameat, "renameat", kChange, {0, 2}, {1, 3}},
#endif
#ifdef SYS_open
    {SYS_open, "open", CallKind::kOpen, {kNo, kNo}, {0, kNo}, 1, kRoom},
    {SYS_creat, "creat", kChange, {kNo, kNo}, {0, kNo}, kNo, kRoom},
    {SYS_mkdir, "mkdir", kChange, {kNo, kNo}, {0, kNo}, kNo, kRoom},
    {SYS_mknod, "mknod", kChange, {kNo, kNo}, {0, kNo}, kNo, kRoom},
    {SYS_symlink, "symlink", kChange, {kNo, kNo}, {1, kNo}, kNo, kRoom},
    {SYS_link, "link", kChange, {kNo, kNo}, {0, 1}, kNo, kRoom},
    {SYS_unlink, "unlink", kChange, {kNo, kNo}, {0, kNo}},
    {SYS_rmdir, "rmdir", kChange, {kNo, kNo}, {0, kNo}},
    {SYS_rename, "rename", kChange, {kNo, kNo}, {0, 1}},
#endif
    // Content.
    {SYS_write, "write", kChange, {0, kNo}, {kNo, kNo}, kNo, kRoom, 2},
    {SYS_pwrite64, "pwrite64", kChange, {0, kNo}, {kNo, kNo}, kNo, kRoom, 2},
    {SYS_writev, "writev", kChange, {0, kNo}, {kNo, kNo}, kNo, kRoom},
    {SYS_pwritev, "pwritev", kChange, {0, kNo}, {kNo, kNo}, kNo, kRoom},
    {SYS_pwritev2, "pwritev2", kChange, {0, kNo}, {kNo, kNo}, kNo, kRoom},
    {SYS_sendfile, "sendfile", kChange, {0, 1}, {kNo, kNo}, kNo, kRoom, 3},
    {SYS_splice, "splice", kChange, {0, 2}, {kNo, kNo}, kNo, kRoom, 4},
    {SYS_copy_file_range, "copy_file_range", kChange, {0, 2}, {kNo, kNo}, kNo, kRoom, 4},
    {SYS_truncate, "truncate", kChange, {kNo, kNo}, {0, kNo}, kNo, kRoom},
    {SYS_ftruncate, "ftruncate", kChange, {0, kNo}, {kNo, kNo}, kNo, kRoom},
    {SYS_fallocate, "fallocate", kChange, {0, kNo}, {kNo, kNo}, kNo, kRoom},
    {SYS_ioctl, "ioctl", CallKind::kIoctl, {0, kNo}, {kNo, kNo}, 1},
    {SYS_mmap, "mmap", CallKind::kMap, {4, kNo}, {kNo, kNo}, 3},
    {SYS_mremap, "mremap", CallKind::kUnmap},
    {SYS_munmap, "munmap", CallKind::kUnmap},
    {SYS_msync, "msync", CallKind::kUnmap},
    {SYS_fsync, "fsync", kChange, {0, kNo}},
    {SYS_fdatasync, "fdatasync", kChange, {0, kNo}},
    {SYS_syncfs, "syncfs", kChange, {0, kNo}},
    {SYS_sync_file_range, "sync_file_range", kChange, {0, kNo}},
    // Metadata.
    {SYS_fchmod, "fchmod", kChange, {0, kNo}},
    {SYS_fchmodat, "fchmodat", kChange, {0, kNo}, {1, kNo}},
#ifdef SYS_fchmodat2
    {SYS_fchmodat2, "fchmodat2", kChange, {0, kNo}, {1, kNo}},
#endif
    {SYS_fchown, "fchown", kChange, {0, kNo}},
    {SYS_fchownat, "fchownat", kChange, {0, kNo}, {1, kNo}},
    {SYS_utimensat, "utimensat", kChange, {0, kNo}, {1, kNo}},
#ifdef SYS_chmod
    {SYS_chmod, "chmod", kChange, {kNo, kNo}, {0, kNo}},
    {SYS_chown, "chown", kChange, {kNo, kNo}, {0, kNo}},
    {SYS_lchown, "lchown", kChange, {kNo, kNo}, {0, kNo}},
#endif
    {SYS_setxattr, "setxattr", kChange, {kNo, kNo}, {0, kNo}, kNo, kRoom},
    {SYS_lsetxattr, "lsetxattr", kChange, {kNo, kNo}, {0, kNo}, kNo, kRoom},
    {SYS_fsetxattr, "fsetxattr", kChange, {0, kNo}, {kNo, kNo}, kNo, kRoom},
    {SYS_removexattr, "removexattr", kChange, {kNo, kNo}, {0, kNo}},
    {SYS_lremovexattr, "lremovexattr", kChange, {kNo, kNo}, {0, kNo}},
    {SYS_fremovexattr, "fremovexattr", kChange, {0, kNo}},
    // Looking.
    {SYS_read, "read", kLook, {0, kNo}},
    {SYS_pread64, "pread64", kLook, {0, kNo}},
    {SYS_readv, "readv", kLook, {0, kNo}},
    {SYS_preadv, "preadv", kLook, {0, kNo}},
    {SYS_lseek, "lseek", kLook, {0, kNo}},
    {SYS_getdents64, "getdents64", kLook, {0, kNo}},
    {SYS_close, "close", kLook, {0, kNo}},
    {SYS_dup, "dup", kLook, {0, kNo}},
    {SYS_fcntl, "fcntl", kLook, {0, kNo}},
    {SYS_flock, "flock", kLook, {0, kNo}},
    {SYS_fadvise64, "fadvise64", kLook, {0, kNo}},
    {SYS_readahead, "readahead", kLook, {0, kNo}},
    {SYS_fstat, "fstat", kLook, {0, kNo}},
    {SYS_fstatfs, "fstatfs", kLook, {0, kNo}},
    {SYS_newfstatat, "newfstatat", kLook, {0, kNo}, {1, kNo}},
    {SYS_statx, "statx", kLook, {0, kNo}, {1, kNo}},
    {SYS_statfs, "statfs", kLook, {kNo, kNo}, {0, kNo}},
    {SYS_readlinkat, "readlinkat", kLook, {0, kNo}, {1, kNo}},
    {SYS_faccessat, "faccessat", kLook, {0, kNo}, {1, kNo}},
    {SYS_faccessat2, "faccessat2", kLook, {0, kNo}, {1, kNo}},
    {SYS_name_to_handle_at, "name_to_handle_at", kLook, {0, kNo}, {1, kNo}},
    {SYS_getxattr, "getxattr", kLook, {kNo, kNo}, {0, kNo}},
    {SYS_lgetxattr, "lgetxattr", kLook, {kNo, kNo}, {0, kNo}},
    {SYS_fgetxattr, "fgetxattr", kLook, {0, kNo}},
    {SYS_listxattr, "listxattr", kLook, {kNo, kNo}, {0, kNo}},
    {SYS_llistxattr, "llistxattr", kLook, {kNo, kNo}, {0, kNo}},
    {SYS_flistxattr, "flistxattr", kLook, {0, kNo}},
#ifdef SYS_stat
    {SYS_stat, "stat", kLook, {kNo, kNo}, {0, kNo}},
    {SYS_lstat, "lstat", kLook, {kNo, kNo}, {0, kNo}},
    {SYS_access, "access", kLook, {kNo, kNo}, {0, kNo}},
    {SYS_readlink, "readlink", kLook, {kNo, kNo}, {0, kNo}},
#endif
};
// clang-format on

}  // namespace

const CallRow* FindCall(long number) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const CallRow& candidate) {
    return candidate.number == number;
  });
  return row == std::end(kRows) ? nullptr : row;
}

bool FlagsChange(uint64_t open_flags) {
  constexpr uint64_t kTmpFileBit = O_TMPFILE & ~O_DIRECTORY;
  return (open_flags & (O_CREAT | O_TRUNC | kTmpFileBit)) != 0;
}

bool IoctlChanges(uint64_t request) {
  return request == FICLONE || request == FICLONERANGE || request == FS_IOC_SETFLAGS ||
         request == FS_IOC_FSSETXATTR;
}

}  // namespace sandglass::crash
