#include "undo/metadata.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace sandglass::undo {
namespace {

// What chattr can set on the file systems that we support; the others (extents, inline data, ...) belong to the kernel.
constexpr uint32_t kSettableFlags = FS_SYNC_FL | FS_IMMUTABLE_FL | FS_APPEND_FL | FS_NODUMP_FL |
                                    FS_NOATIME_FL | FS_DIRSYNC_FL | FS_NOCOW_FL | FS_COMPR_FL |
                                    FS_NOCOMP_FL | FS_PROJINHERIT_FL | FS_TOPDIR_FL |
                                    FS_JOURNAL_DATA_FL | FS_CASEFOLD_FL;

constexpr size_t kMaxXattrBytes = 1 << 20;

// Calls `read(buffer, size)` with growing buffers until the answer fits.
template <class Read>
Result<std::string> ReadGrowing(const char* what, Read read) {
  std::string buffer(256, '\0');
  while (true) {
    ssize_t n = read(buffer.data(), buffer.size());
    if (n >= 0) {
      buffer.resize(static_cast<size_t>(n));
      return buffer;
    }
    if (errno != ERANGE || buffer.size() >= kMaxXattrBytes) return Error::FromErrno(errno, what);
    buffer.resize(buffer.size() * 4);
  }
}

using Xattrs = std::vector<std::pair<std::string, std::string>>;

Result<Xattrs> ReadXattrs(const OpenObject& object) {
  // By descriptor where it can be: resolving a path costs more than the call itself.
  ProcPath path(object.fd.get());
  auto list = ReadGrowing("list xattrs", [&](char* out, size_t size) {
    return object.readable ? ::flistxattr(object.fd.get(), out, size)
                           : ::listxattr(path.c_str(), out, size);
  });
  if (!list.ok()) {
    if (list.error().sys_errno() == EOPNOTSUPP || list.error().sys_errno() == EPERM)
      return Xattrs{};
    return list.error();
  }
  Xattrs xattrs;
  for (size_t at = 0; at < list->size();) {
    std::string name(list->c_str() + at);
    at += name.size() + 1;
    auto value = ReadGrowing("read xattr", [&](char* out, size_t size) {
      return ::getxattr(path.c_str(), name.c_str(), out, size);
    });
    if (!value.ok()) {
      if (value.error().sys_errno() == ENODATA)
        continue;  // went away in between, or only listed (btrfs properties)
      return value.error().WithContext(name);
    }
    xattrs.emplace_back(std::move(name), std::move(value).value());
  }
  std::sort(xattrs.begin(), xattrs.end());
  return xattrs;
}

Result<std::string> ReadTarget(const OpenObject& object) {
  std::string target(PATH_MAX, '\0');
  ssize_t n = ::readlinkat(object.fd.get(), "", target.data(), target.size());
  if (n < 0) return Error::FromErrno(errno, "read symlink");
  target.resize(static_cast<size_t>(n));
  return target;
}

// FS_IOC_GETFLAGS needs a descriptor that is not O_PATH, which symlinks and special files have none of.
Fd OpenForFlags(const OpenObject& object) {
  if (!object.stat.IsRegular() && !object.stat.IsDirectory()) return Fd();
  return Fd(::open(ProcPath(object.fd.get()).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

Result<uint32_t> FlagsOf(const OpenObject& object) {
  if (object.readable) return ReadFlags(object.fd.get());
  Fd fd = OpenForFlags(object);
  if (fd.valid()) return ReadFlags(fd.get());
  return object.stat.nodump ? uint32_t{FS_NODUMP_FL} : 0u;
}

Status ApplyOwner(const OpenObject& object, const FileStat& now, const Metadata& want) {
  if (now.uid == want.uid && now.gid == want.gid) return Ok();
  if (::fchownat(object.fd.get(), "", want.uid, want.gid, AT_EMPTY_PATH) == 0) return Ok();
  return Error::FromErrno(errno, "restore owner");
}

Status ApplyXattrs(const OpenObject& object, const Metadata& want) {
  TRY_ASSIGN(Xattrs now, ReadXattrs(object));
  if (now == want.xattrs) return Ok();
  ProcPath path(object.fd.get());
  for (const auto& [name, value] : now) {
    bool wanted = std::any_of(want.xattrs.begin(), want.xattrs.end(),
                              [&](const auto& x) { return x.first == name; });
    if (!wanted && ::removexattr(path.c_str(), name.c_str()) != 0 && errno != ENODATA) {
      return Error::FromErrno(errno, fmt::format("remove xattr {}", name));
    }
  }
#ifndef SANDGLASS_MUTANT_skip_xattr_restore
  for (const auto& entry : want.xattrs) {
    if (std::find(now.begin(), now.end(), entry) != now.end()) continue;
    if (::setxattr(path.c_str(), entry.first.c_str(), entry.second.data(), entry.second.size(),
                   0) != 0) {
      return Error::FromErrno(errno, fmt::format("restore xattr {}", entry.first));
    }
  }
#endif
  return Ok();
}

Status ApplyMode(const OpenObject& object, const Metadata& want) {
  if (S_ISLNK(want.mode)) return Ok();
  TRY_ASSIGN(FileStat now,
             StatFd(object.fd.get()));  // owner and ACL changes above may have moved bits
  if (now.mode == want.mode) return Ok();
#ifdef SANDGLASS_MUTANT_skip_mode_bits
  return Ok();
#else
  if (::chmod(ProcPath(object.fd.get()).c_str(), want.mode & 07777) == 0) return Ok();
  return Error::FromErrno(errno, "restore mode");
#endif
}

Status ApplyFlags(const OpenObject& object, const Metadata& want) {
  Fd fd = OpenForFlags(object);
  if (!fd.valid()) return Ok();
  TRY_ASSIGN(uint32_t now, ReadFlags(fd.get()));
  if (now == want.flags) return Ok();
  return WriteFlags(fd.get(), want.flags);
}

}  // namespace

Result<uint32_t> ReadFlags(int fd) {
  int flags = 0;
  if (::ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) {
    if (errno == ENOTTY || errno == EOPNOTSUPP || errno == EINVAL || errno == EPERM) return 0u;
    return Error::FromErrno(errno, "read inode flags");
  }
  return static_cast<uint32_t>(flags) & kSettableFlags;
}

Status WriteFlags(int fd, uint32_t flags) {
  int now = 0;
  if (::ioctl(fd, FS_IOC_GETFLAGS, &now) != 0) return Error::FromErrno(errno, "read inode flags");
  int next = static_cast<int>((static_cast<uint32_t>(now) & ~kSettableFlags) | flags);
  if (::ioctl(fd, FS_IOC_SETFLAGS, &next) != 0)
    return Error::FromErrno(errno, "restore inode flags");
  return Ok();
}

uint32_t ClearBlockingFlags(const OpenObject& object) {
  Fd fd = OpenForFlags(object);
  if (!fd.valid()) return 0;
  auto flags = ReadFlags(fd.get());
  if (!flags.ok() || (*flags & kBlockingFlags) == 0) return 0;
  return WriteFlags(fd.get(), *flags & ~kBlockingFlags).ok() ? *flags & kBlockingFlags : 0;
}

void SetFlags(const OpenObject& object, uint32_t more) {
  Fd fd = OpenForFlags(object);
  if (!fd.valid()) return;
  if (auto flags = ReadFlags(fd.get()); flags.ok()) (void)WriteFlags(fd.get(), *flags | more);
}

Metadata MetadataOf(const FileStat& stat) {
  return {.mode = stat.mode,
          .uid = stat.uid,
          .gid = stat.gid,
          .size = stat.size,
          .blocks = stat.blocks,
          .rdev = stat.rdev,
          .mtime_ns = stat.mtime_ns,
          .ctime_ns = stat.ctime_ns};
}

Result<Metadata> CaptureMetadata(const OpenObject& object) {
  Metadata meta = MetadataOf(object.stat);
  TRY_ASSIGN(meta.xattrs, ReadXattrs(object));
  TRY_ASSIGN(meta.flags, FlagsOf(object));
  if (object.stat.IsSymlink()) {
    TRY_ASSIGN(meta.symlink_target, ReadTarget(object));
  }
  return meta;
}

Status ApplyMetadata(const OpenObject& object, const Metadata& want) {
  TRY_ASSIGN(FileStat now, StatFd(object.fd.get()));
  TRY(ApplyOwner(object, now, want));
  TRY(ApplyXattrs(object, want));
  TRY(ApplyMode(object, want));
  // Times before the flags: nothing about an immutable file can be changed any more.
  TRY(ApplyMtime(object, want.mtime_ns));
  return ApplyFlags(object, want);
}

namespace {

bool InGroup(gid_t gid) {
  if (gid == ::getegid()) return true;
  std::vector<gid_t> groups(static_cast<size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  return std::find(groups.begin(), groups.begin() + std::max(0, count), gid) !=
         groups.begin() + std::max(0, count);
}

}  // namespace

bool CanRestore(const Metadata& meta, std::string* why) {
  if (::geteuid() == 0) return true;
  if (meta.uid != ::geteuid()) {
    *why = fmt::format("its owner is user {}", meta.uid);
    return false;
  }
  if (!InGroup(meta.gid)) {
    *why = fmt::format("its group is {}", meta.gid);
    return false;
  }
  for (const auto& [name, value] : meta.xattrs) {
    if (name.starts_with("user.") || name.starts_with("system.posix_acl_")) continue;
    if (name == "security.selinux" || name.starts_with("security.ima") ||
        name.starts_with("btrfs."))
      continue;
    *why = fmt::format("it has the attribute {}", name);
    return false;
  }
  return true;
}

Status ApplyMtime(const OpenObject& object, int64_t mtime_ns) {
  TRY_ASSIGN(FileStat now, StatFd(object.fd.get()));
  if (now.mtime_ns == mtime_ns) return Ok();
  // Floor division: times before 1970 have a negative second and a positive nanosecond.
  int64_t sec = mtime_ns / 1'000'000'000, nsec = mtime_ns % 1'000'000'000;
  if (nsec < 0) {
    sec -= 1;
    nsec += 1'000'000'000;
  }
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                             {.tv_sec = sec, .tv_nsec = nsec}};
  if (::utimensat(AT_FDCWD, ProcPath(object.fd.get()).c_str(), times, 0) == 0) return Ok();
  return Error::FromErrno(errno, "restore modification time");
}

bool LosesCapabilities(const Metadata& meta) {
  return std::any_of(meta.xattrs.begin(), meta.xattrs.end(),
                     [](const auto& entry) { return entry.first == "security.capability"; });
}

}  // namespace sandglass::undo
