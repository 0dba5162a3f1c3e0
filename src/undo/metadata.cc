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

#include "base/hash.h"

namespace sandglass::undo {
namespace {

// What chattr can set on the file systems that we support; the others (extents, inline data, ...) belong to the kernel.
constexpr uint32_t kSettableFlags = FS_SYNC_FL | FS_IMMUTABLE_FL | FS_APPEND_FL | FS_NODUMP_FL |
                                    FS_NOATIME_FL | FS_DIRSYNC_FL | FS_NOCOW_FL | FS_COMPR_FL |
                                    FS_NOCOMP_FL | FS_PROJINHERIT_FL | FS_TOPDIR_FL |
                                    FS_JOURNAL_DATA_FL | FS_CASEFOLD_FL;

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
    if (errno != ERANGE || buffer.size() >= kMaxXattrValue) return Error::FromErrno(errno, what);
    buffer.resize(buffer.size() * 4);
  }
}

Result<std::string> ReadXattr(const ProcPath& path, const std::string& name) {
  return ReadGrowing("read xattr", [&](char* out, size_t size) {
    return ::getxattr(path.c_str(), name.c_str(), out, size);
  });
}

// The owner's bits for a moment.
class OwnersBits {
 public:
  explicit OwnersBits(const OpenObject& object) : object_(object) {}
  ~OwnersBits() { Lower(object_, lifted_); }
  OwnersBits(const OwnersBits&) = delete;
  OwnersBits& operator=(const OwnersBits&) = delete;

  bool Lift(uint32_t bits) { return LiftMode(object_, bits, lifted_); }

 private:
  const OpenObject& object_;
  Lifted lifted_;
};

Result<Xattrs> ReadXattrs(const OpenObject& object, Lifting lifting) {
  TRY_ASSIGN(Xattrs xattrs, ListXattrs(object));
  const ProcPath path(object.fd.get());
  OwnersBits bits(object);
  for (auto entry = xattrs.begin(); entry != xattrs.end();) {
    auto value = ReadXattr(path, entry->first);
    const bool closed = !value.ok() && value.error().sys_errno() == EACCES;
    if (closed && lifting == Lifting::kYes && bits.Lift(S_IRUSR))
      value = ReadXattr(path, entry->first);
    if (!value.ok() && value.error().sys_errno() == ENODATA) {
      entry = xattrs.erase(entry);  // went away in between, or only listed (btrfs properties)
      continue;
    }
    if (!value.ok()) return value.error().WithContext(entry->first);
    entry->second = std::move(value).value();
    ++entry;
  }
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
  const bool has_flags = object.stat.IsRegular() || object.stat.IsDirectory();
  if (has_flags && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
    return Error::FromErrno(errno, "read inode flags");
  return object.stat.nodump ? uint32_t{FS_NODUMP_FL} : 0u;
}

Status ApplyOwner(const OpenObject& object, const FileStat& now, const Metadata& want) {
  if (now.uid == want.uid && now.gid == want.gid) return Ok();
  if (::fchownat(object.fd.get(), "", want.uid, want.gid, AT_EMPTY_PATH) == 0) return Ok();
  return Error::FromErrno(errno, "restore owner");
}

// Several things are to be done, and one that fails must not keep the others from being done.
class Failures {
 public:
  void Add(Status status) {
    if (status.ok()) return;
    const Error& error = status.error();
    if (first_.ok())
      first_ = std::move(status);
    else
      first_ = Error(first_.error().code(),
                     fmt::format("{}; {}", first_.error().message(), error.message()),
                     first_.error().sys_errno());
  }
  Status Take() { return std::move(first_); }

 private:
  Status first_;
};

Status Done(int rc, const char* what, const std::string& name) {
  return rc == 0 ? Ok() : Status(Error::FromErrno(errno, fmt::format("{} xattr {}", what, name)));
}

bool HasName(const Xattrs& xattrs, const std::string& name) {
  return std::any_of(xattrs.begin(), xattrs.end(), [&](const auto& x) { return x.first == name; });
}

Status ApplyXattrs(const OpenObject& object, const Metadata& want) {
  TRY_ASSIGN(const Xattrs now, ReadXattrs(object, Lifting::kYes));
  if (now == want.xattrs) return Ok();
  const ProcPath path(object.fd.get());
  OwnersBits bits(object);
  // Which of them need the bits the kernel knows best, so it is asked first.
  const auto change = [&](auto call) {
    const int rc = call();
    return rc != 0 && errno == EACCES && bits.Lift(S_IRUSR | S_IWUSR) ? call() : rc;
  };
  Failures failures;
  for (const auto& [name, value] : now) {
    if (HasName(want.xattrs, name)) continue;
    const int rc = change([&] { return ::removexattr(path.c_str(), name.c_str()); });
    if (rc == 0 || errno != ENODATA) failures.Add(Done(rc, "remove", name));
  }
#ifndef SANDGLASS_MUTANT_skip_xattr_restore
  for (const auto& entry : want.xattrs) {
    if (std::find(now.begin(), now.end(), entry) != now.end()) continue;
    const auto& [name, value] = entry;
    const auto set = [&] {
      return ::setxattr(path.c_str(), entry.first.c_str(), entry.second.data(), entry.second.size(),
                        0);
    };
    failures.Add(Done(change(set), "restore", name));
  }
#endif
  return failures.Take();
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

FlagsOfFolder::FlagsOfFolder(int dir_fd, uint32_t meanwhile)
    : fd_(::openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  const auto flags = fd_.valid() ? ReadFlags(fd_.get()) : Result<uint32_t>(meanwhile);
  if (flags.ok() && *flags != meanwhile && WriteFlags(fd_.get(), meanwhile).ok()) flags_ = *flags;
}

FlagsOfFolder::~FlagsOfFolder() {
  if (flags_) (void)WriteFlags(fd_.get(), *flags_);
}

int MakeNode(int dir_fd, const std::string& name, const NodeSpec& node) {
  if (S_ISDIR(node.mode)) return ::mkdirat(dir_fd, name.c_str(), 0700);
  std::optional<FlagsOfFolder> flags;
  if (!S_ISREG(node.mode)) flags.emplace(dir_fd, node.flags & ~kBlockingFlags);
  const int made = S_ISLNK(node.mode)
                       ? ::symlinkat(node.symlink_target.c_str(), dir_fd, name.c_str())
                       : ::mknodat(dir_fd, name.c_str(), (node.mode & S_IFMT) | 0600, node.rdev);
  const int why = errno;
  flags.reset();
  errno = why;
  return made;
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

Result<Xattrs> ListXattrs(const OpenObject& object) {
  // By descriptor where it can be: resolving a path costs more than the call itself.
  auto list = ReadGrowing("list xattrs", [&](char* out, size_t size) {
    return object.readable ? ::flistxattr(object.fd.get(), out, size)
                           : ::listxattr(ProcPath(object.fd.get()).c_str(), out, size);
  });
  Xattrs xattrs;
  if (!list.ok()) {
    if (list.error().sys_errno() == EOPNOTSUPP || list.error().sys_errno() == EPERM) return xattrs;
    return list.error();
  }
  for (size_t at = 0; at < list->size(); at += xattrs.back().first.size() + 1)
    xattrs.emplace_back(list->c_str() + at, "");
  std::sort(xattrs.begin(), xattrs.end());
  return xattrs;
}

Status CheckRoomForXattr(const OpenObject& object, size_t max_bytes) {
  constexpr size_t kOverhead = 2 * sizeof(uint32_t);  // the lengths of name and value
  constexpr size_t kLargest = XATTR_NAME_MAX + XATTR_SIZE_MAX + kOverhead;
  TRY_ASSIGN(const Xattrs xattrs, ListXattrs(object));
  const ProcPath path(object.fd.get());
  size_t list = XATTR_NAME_MAX + 1, bytes = kLargest;
  for (const auto& [name, value] : xattrs) {
    list += name.size() + 1;
    bytes += kLargest;
  }
  if (bytes > max_bytes) {  // it could be: how much is it?
    bytes = kLargest;
    for (const auto& [name, value] : xattrs) {
      const ssize_t size = ::getxattr(path.c_str(), name.c_str(), nullptr, 0);
      bytes +=
          name.size() + kOverhead + (size < 0 ? size_t{XATTR_SIZE_MAX} : static_cast<size_t>(size));
    }
  }
  if (xattrs.size() < kMaxXattrs && list <= XATTR_LIST_MAX && bytes <= max_bytes) return Ok();
  return Error(Code::kNotRestorable, "it has as many extended attributes as undo can record");
}

Result<Metadata> CaptureMetadata(const OpenObject& object, Lifting lifting) {
  Metadata meta = MetadataOf(object.stat);
  TRY_ASSIGN(meta.xattrs, ReadXattrs(object, lifting));
  TRY_ASSIGN(meta.flags, FlagsOf(object));
  if (object.stat.IsSymlink()) {
    TRY_ASSIGN(meta.symlink_target, ReadTarget(object));
  }
  return meta;
}

uint64_t HashAttributes(const Xattrs& xattrs, uint32_t flags) {
  Hasher64 hasher;
  const auto add = [&](const void* data, uint64_t size) {
    hasher.Update({reinterpret_cast<const uint8_t*>(&size), sizeof size});
    hasher.Update({static_cast<const uint8_t*>(data), size});
  };
  add(&flags, sizeof flags);
  for (const auto& [name, value] : xattrs) {
    add(name.data(), name.size());
    add(value.data(), value.size());
  }
  return std::max<uint64_t>(hasher.Digest(), 1);
}

Result<uint64_t> HashAttributes(const OpenObject& folder) {
  const Fd fd = OpenForFlags(folder);
  if (!fd.valid()) return Error::FromErrno(errno, "open a folder");
  TRY_ASSIGN(const uint32_t flags, ReadFlags(fd.get()));
  TRY_ASSIGN(const Xattrs xattrs, ReadXattrs(folder, Lifting::kNo));
  return HashAttributes(xattrs, flags);
}

Status ApplyMetadata(const OpenObject& object, const Metadata& want) {
  TRY_ASSIGN(FileStat now, StatFd(object.fd.get()));
  Failures failures;
  failures.Add(ApplyOwner(object, now, want));
  failures.Add(ApplyXattrs(object, want));
  failures.Add(ApplyMode(object, want));
  // Times before the flags: nothing about an immutable file can be changed any more.
  failures.Add(ApplyMtime(object, want.mtime_ns));
  failures.Add(ApplyFlags(object, want));
  return failures.Take();
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

bool LiftMode(const OpenObject& object, uint32_t bits, Lifted& lifted) {
  const auto stat = StatFd(object.fd.get());
  if (!stat.ok() || stat->IsSymlink() || (stat->mode & bits) == bits) return false;
  // Whoever is not in the group loses the set-group bit by any chmod, and could not put it back.
  if (::geteuid() != 0 && (stat->mode & S_ISGID) != 0 && !InGroup(stat->gid)) return false;
  const uint32_t mode = stat->mode & 07777;
  if (::chmod(ProcPath(object.fd.get()).c_str(), mode | bits) != 0) return false;  // not ours
  if (!lifted.mode) lifted.mode = mode;
  return true;
}

bool Lift(const OpenObject& object, uint32_t bits, Lifted& lifted) {
  const uint32_t flags = ClearBlockingFlags(object);
  lifted.flags |= flags;
  return LiftMode(object, bits, lifted) || flags != 0;
}

void Lower(const OpenObject& object, const Lifted& lifted) {
  if (lifted.mode) ::chmod(ProcPath(object.fd.get()).c_str(), *lifted.mode);
  if (lifted.flags != 0) SetFlags(object, lifted.flags);
}

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
  if (now.mtime_ns == mtime_ns || !FileStat{.mtime_ns = mtime_ns}.HasTellableMtime()) return Ok();
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

bool LosesCapabilities(const Xattrs& xattrs) { return HasName(xattrs, "security.capability"); }

}  // namespace sandglass::undo
