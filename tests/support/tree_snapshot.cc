#include "tests/support/tree_snapshot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>

#include "base/fd.h"
#include "tests/support/inode_flags.h"
#include "tests/support/tree_walk.h"

namespace sandglass::test {
namespace {

// Zeros are left out of the hash in units of this size, counted from the start of the file: what is
// hashed depends on the bytes alone and not on which of the zeros are holes.
constexpr size_t kBlock = size_t{64} * 1024;

// The first byte is zero and every byte equals its neighbour.
bool AllZero(const char* bytes, size_t size) {
  return size == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

class ContentHasher {
 public:
  ContentHasher() : state_(XXH3_createState()), block_(kBlock) { CHECK(state_ != nullptr); }

  // errno is in the error: EACCES where permissions forbid reading.
  Result<ContentHash> Hash(int fd, uint64_t size) {
    XXH3_128bits_reset(state_.get());
    for (uint64_t at = 0; at < size; at += kBlock) {
      if (size > kBlock) {
        TRY_ASSIGN(at, NextData(fd, at, size));
        if (at >= size) break;
      }
      TRY(AddBlock(fd, at, std::min<uint64_t>(kBlock, size - at)));
    }
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return ContentHash{.high = hash.high64, .low = hash.low64};
  }

 private:
  struct FreeState {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };

  // The start of the block at or after `at` that holds data; `size` when the rest is a hole.
  static Result<uint64_t> NextData(int fd, uint64_t at, uint64_t size) {
    const off_t data = ::lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (data >= 0) return static_cast<uint64_t>(data) / kBlock * kBlock;
    if (errno == ENXIO) return size;
    if (errno == EINVAL) return at;  // this file system knows no holes
    return Error::FromErrno(errno, "lseek");
  }

  Status AddBlock(int fd, uint64_t at, size_t size) {
    size_t filled = 0;
    while (filled < size) {
      const ssize_t got =
          ::pread(fd, block_.data() + filled, size - filled, static_cast<off_t>(at + filled));
      if (got < 0) return Error::FromErrno(errno, "read");
      if (got == 0) break;
      filled += static_cast<size_t>(got);
    }
    if (AllZero(block_.data(), filled)) return Ok();
    XXH3_128bits_update(state_.get(), &at, sizeof at);
    XXH3_128bits_update(state_.get(), block_.data(), filled);
    return Ok();
  }

  std::unique_ptr<XXH3_state_t, FreeState> state_;
  std::vector<char> block_;
};

// A path to an entry that fits into PATH_MAX however deep the entry lies, for the calls that take
// no directory descriptor.
std::string ProcPath(const WalkEntry& entry) {
  return fmt::format("/proc/self/fd/{}/{}", entry.parent, entry.name);
}

bool IsDenied(int error) { return error == EACCES || error == EPERM; }

// The names, each ended by a NUL. Empty: none, or no xattrs here.
Result<std::string> ListXattrs(const std::string& path) {
  std::string names(1024, '\0');
  while (true) {
    const ssize_t size = ::llistxattr(path.c_str(), names.data(), names.size());
    if (size >= 0) {
      names.resize(static_cast<size_t>(size));
      return names;
    }
    if (errno == ENOTSUP) return std::string();
    if (errno != ERANGE) return Error::FromErrno(errno, "listxattr");
    names.resize(names.size() * 8);
  }
}

Result<std::string> GetXattr(const std::string& path, const char* name) {
  std::string value(256, '\0');
  while (true) {
    const ssize_t size = ::lgetxattr(path.c_str(), name, value.data(), value.size());
    if (size >= 0) {
      value.resize(static_cast<size_t>(size));
      return value;
    }
    if (errno != ERANGE) return Error::FromErrno(errno, fmt::format("getxattr {}", name));
    value.resize(value.size() * 16);
  }
}

// xfs shows root its ACLs a second time, in the form it has on disk.
bool IsMirrorOfAcl(std::string_view name) { return name.starts_with("trusted.SGI_ACL_"); }

Status AddXattrs(const WalkEntry& from, EntrySnapshot& entry) {
  const std::string path = ProcPath(from);
  TRY_ASSIGN(const std::string names, ListXattrs(path));
  for (size_t at = 0; at < names.size();) {
    const char* name = names.data() + at;
    at += std::string_view(name).size() + 1;
    if (IsMirrorOfAcl(name)) continue;
    auto value = GetXattr(path, name);
    if (!value.ok() && !IsDenied(value.error().sys_errno())) return std::move(value).error();
    if (!value.ok()) entry.unreadable_errno = value.error().sys_errno();
    entry.xattrs.emplace_back(name, value.ok() ? std::move(value).value() : std::string());
  }
  std::sort(entry.xattrs.begin(), entry.xattrs.end());
  return Ok();
}

Status AddSymlinkTarget(const WalkEntry& from, EntrySnapshot& entry) {
  char target[PATH_MAX];
  const ssize_t size = ::readlinkat(from.parent, from.name, target, sizeof target);
  if (size < 0) return Error::FromErrno(errno, "readlink");
  entry.symlink_target.assign(target, static_cast<size_t>(size));
  return Ok();
}

// Symlinks and special files cannot be opened for an ioctl, but the kernel shows three of their
// flags in statx.
uint32_t FlagsFromStatx(const struct statx& st) {
  uint32_t flags = 0;
  if ((st.stx_attributes & STATX_ATTR_IMMUTABLE) != 0) flags |= FS_IMMUTABLE_FL;
  if ((st.stx_attributes & STATX_ATTR_APPEND) != 0) flags |= FS_APPEND_FL;
  if ((st.stx_attributes & STATX_ATTR_NODUMP) != 0) flags |= FS_NODUMP_FL;
  return flags;
}

EntrySnapshot FromStatx(const WalkEntry& from) {
  const struct statx& st = from.st;
  EntrySnapshot entry{.path = std::string(from.path),
                      .mode = st.stx_mode,
                      .uid = st.stx_uid,
                      .gid = st.stx_gid,
                      .flags = FlagsFromStatx(st),
                      .mtime = {.sec = st.stx_mtime.tv_sec, .nsec = st.stx_mtime.tv_nsec}};
  if (S_ISREG(st.stx_mode)) entry.size = st.stx_size;
  if (S_ISCHR(st.stx_mode) || S_ISBLK(st.stx_mode)) {
    entry.device = static_cast<uint64_t>(st.stx_rdev_major) << 32 | st.stx_rdev_minor;
  }
  return entry;
}

}  // namespace

class SnapshotBuilder {
 public:
  Status Add(const WalkEntry& from) {
    EntrySnapshot entry = FromStatx(from);
    if (Status read = Read(from, entry); !read.ok())
      return read.error().WithContext(Printable(from.path));
    if (!S_ISDIR(entry.mode) && from.st.stx_nlink > 1) {
      paths_of_[{from.st.stx_dev_major, from.st.stx_dev_minor, from.st.stx_ino}].push_back(
          entry.path);
    }
    snapshot_.entries_.push_back(std::move(entry));
    return Ok();
  }

  TreeSnapshot Finish() {
    auto& entries = snapshot_.entries_;
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    for (auto& [inode, paths] : paths_of_) {
      if (paths.size() > 1) AddLinkGroup(std::move(paths));
    }
    return std::move(snapshot_);
  }

 private:
  using Inode = std::tuple<uint32_t, uint32_t, uint64_t>;

  Status Read(const WalkEntry& from, EntrySnapshot& entry) {
    TRY(AddXattrs(from, entry));
    if (S_ISLNK(entry.mode)) return AddSymlinkTarget(from, entry);
    if (S_ISREG(entry.mode)) return AddContent(from, entry);
    if (!S_ISDIR(entry.mode)) return Ok();
    if (from.dir_errno == 0) entry.flags = ReadFlags(from.dir_fd);
    return Denied(from.dir_errno, entry);
  }

  Status AddContent(const WalkEntry& from, EntrySnapshot& entry) {
    const Fd file = OpenForReading(from.parent, from.name, 0);
    if (!file.valid()) return Denied(errno, entry);
    entry.flags = ReadFlags(file.get());
    TRY_ASSIGN(entry.content, hasher_.Hash(file.get(), entry.size));
    return Ok();
  }

  // What permissions hide is a fact of the snapshot, anything else is an error.
  static Status Denied(int error, EntrySnapshot& entry) {
    if (error == 0) return Ok();
    if (!IsDenied(error)) return Error::FromErrno(error, "open");
    entry.unreadable_errno = error;
    return Ok();
  }

  void AddLinkGroup(std::vector<std::string> paths) {
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) {
      // Find() hands out entries as constant; this one is ours.
      const auto index = snapshot_.Find(path) - snapshot_.entries_.data();
      snapshot_.entries_[static_cast<size_t>(index)].link_group =
          static_cast<int32_t>(snapshot_.link_groups_.size());
    }
    snapshot_.link_groups_.push_back(std::move(paths));
  }

  ContentHasher hasher_;
  TreeSnapshot snapshot_;
  std::map<Inode, std::vector<std::string>> paths_of_;
};

Result<TreeSnapshot> TreeSnapshot::Capture(const std::string& root) {
  TRY_ASSIGN(const Fd dir, OpenDirectory(root));
  return CaptureAt(dir.get());
}

Result<TreeSnapshot> TreeSnapshot::CaptureAt(int root) {
  SnapshotBuilder builder;
  TRY(WalkTree(root, [&builder](const WalkEntry& entry) { return builder.Add(entry); }));
  return builder.Finish();
}

const EntrySnapshot* TreeSnapshot::Find(std::string_view path) const {
  const auto at = std::lower_bound(
      entries_.begin(), entries_.end(), path,
      [](const EntrySnapshot& entry, std::string_view key) { return entry.path < key; });
  return at != entries_.end() && at->path == path ? &*at : nullptr;
}

}  // namespace sandglass::test
