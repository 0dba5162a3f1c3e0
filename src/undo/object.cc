#include "undo/object.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace sandglass::undo {
namespace {

// Linux 6.9; Debian 12's headers do not have it yet.
struct FsUuid {
  uint8_t len;
  uint8_t uuid[16];
};
constexpr unsigned long kGetFsUuid = _IOR(0x15, 0, FsUuid);

constexpr size_t kMaxHandleBytes = 128;

struct HandleBuffer {
  file_handle head;
  unsigned char space[kMaxHandleBytes];
};

// Times that no number of nanoseconds says (after 2262, before 1677) are the latest or earliest one that it can say.
int64_t Nanoseconds(const struct statx_timestamp& time) {
  constexpr int64_t kLast = FileStat::kTimeBeyond / 1'000'000'000 - 1;
  if (time.tv_sec > kLast) return FileStat::kTimeBeyond;
  if (time.tv_sec < -kLast) return -FileStat::kTimeBeyond;
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

FileStat FromStatx(const struct statx& raw) {
  return {.mode = raw.stx_mode,
          .uid = raw.stx_uid,
          .gid = raw.stx_gid,
          .nlink = raw.stx_nlink,
          .size = raw.stx_size,
          .blocks = raw.stx_blocks,
          .rdev = makedev(raw.stx_rdev_major, raw.stx_rdev_minor),
          .mtime_ns = Nanoseconds(raw.stx_mtime),
          .ctime_ns = Nanoseconds(raw.stx_ctime),
          .ino = raw.stx_ino,
          .mount = raw.stx_mnt_id,
          .locked = (raw.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0,
          .nodump = (raw.stx_attributes & STATX_ATTR_NODUMP) != 0,
          .encrypted = (raw.stx_attributes & STATX_ATTR_ENCRYPTED) != 0};
}

std::optional<FileStat> LookWith(int dir_fd, const char* name, int flags) {
  struct statx raw{};
  if (::statx(dir_fd, name, flags | AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_MNT_ID, &raw) !=
      0) {
    return std::nullopt;
  }
  return FromStatx(raw);
}

Result<FileStat> StatWith(int dir_fd, const char* name, int flags) {
  if (auto stat = LookWith(dir_fd, name, flags)) return *stat;
  return Error::FromErrno(errno, fmt::format("stat {}", name));
}

// Reading a FIFO or device could block or have effects, so only regular files are opened for real.
Fd OpenReadable(int dir_fd, const char* name, int extra) {
  const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | extra;
  Fd fd(::openat(dir_fd, name, flags | O_NOATIME));
  if (!fd.valid() && errno == EPERM)
    fd = Fd(::openat(dir_fd, name, flags));  // not ours: atime will move
  return fd;
}

}  // namespace

Result<FileStat> StatFd(int fd) { return StatWith(fd, "", AT_EMPTY_PATH); }
Result<FileStat> StatAt(int dir_fd, const char* name) { return StatWith(dir_fd, name, 0); }
std::optional<FileStat> LookAt(int dir_fd, const char* name) { return LookWith(dir_fd, name, 0); }

ProcPath::ProcPath(int fd) { std::snprintf(text_, sizeof(text_), "/proc/self/fd/%d", fd); }

FileSystemId FileSystemIdOf(int root_fd) {
  FileSystemId id;
  Fd readable(::openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  FsUuid uuid{};
  if (readable.valid() && ::ioctl(readable.get(), kGetFsUuid, &uuid) == 0 && uuid.len > 0)
    id.uuid = HashBytes64({uuid.uuid, uuid.len});
  struct statfs info{};
  if (::fstatfs(root_fd, &info) != 0) return id;
  static_assert(sizeof(info.f_fsid) == sizeof(id.fsid));
  std::memcpy(&id.fsid, &info.f_fsid, sizeof(id.fsid));
  return id;
}

Result<Identifier> Identifier::Probe(int root_fd, uint64_t salt) {
  Identifier identifier;
  identifier.salt_ = salt;
  identifier.has_handles_ = true;
  auto id = identifier.OfFd(root_fd);
  if (id.ok()) return identifier;
  if (id.error().sys_errno() != EOPNOTSUPP) return id.error();
  identifier.has_handles_ = false;
  return identifier;
}

Result<ObjectId> Identifier::OfFd(int fd) const { return Compute(fd, "", AT_EMPTY_PATH); }
Result<ObjectId> Identifier::OfName(int dir_fd, const char* name) const {
  return Compute(dir_fd, name, 0);
}

Result<ObjectId> Identifier::Compute(int dir_fd, const char* name, int flags) const {
  if (!has_handles_) {
    TRY_ASSIGN(FileStat stat, StatWith(dir_fd, name, flags));
    return HashBytes128(AsBytes({reinterpret_cast<const char*>(&stat.ino), sizeof(stat.ino)}),
                        salt_);
  }
  HandleBuffer handle{};
  handle.head.handle_bytes = kMaxHandleBytes;
  int mount_id = 0;
  if (::name_to_handle_at(dir_fd, name, &handle.head, &mount_id, flags) != 0) {
    return Error::FromErrno(errno, fmt::format("file handle of {}", name));
  }
  const uint64_t seed = salt_ ^ static_cast<uint32_t>(handle.head.handle_type);
  return HashBytes128({handle.head.f_handle, handle.head.handle_bytes}, seed);
}

Result<OpenObject> FindObjectAt(const Identifier& identifier, int dir_fd, const char* name) {
  OpenObject object;
  TRY_ASSIGN(object.stat, StatAt(dir_fd, name));
  if (object.stat.IsRegular()) {
    object.fd = OpenReadable(dir_fd, name, O_NOFOLLOW);
    object.readable = object.fd.valid();
  }
  if (!object.fd.valid()) object.fd = Fd(::openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!object.fd.valid()) return Error::FromErrno(errno, fmt::format("open {}", name));
  TRY_ASSIGN(object.id, identifier.OfFd(object.fd.get()));
  return object;
}

Result<OpenObject> OpenObjectAt(const Identifier& identifier, int dir_fd, const char* name) {
  TRY_ASSIGN(OpenObject object, FindObjectAt(identifier, dir_fd, name));
  TRY_ASSIGN(object.stat, StatFd(object.fd.get()));  // someone may have been faster than the open
  return object;
}

Result<OpenObject> OpenObjectFd(const Identifier& identifier, int fd) {
  OpenObject object;
  TRY_ASSIGN(object.stat, StatFd(fd));
  if (object.stat.IsRegular()) {
    object.fd = OpenReadable(AT_FDCWD, ProcPath(fd).c_str(), 0);
    object.readable = object.fd.valid();
  }
  if (!object.fd.valid()) object.fd = Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!object.fd.valid()) return Error::FromErrno(errno, "duplicate a descriptor");
  TRY_ASSIGN(object.id, identifier.OfFd(fd));
  return object;
}

}  // namespace sandglass::undo
