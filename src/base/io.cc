#include "base/io.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/beneath.h"
#include "base/fd.h"

namespace sandglass {
namespace {

// Calls `transfer(done)` until `size` bytes are done or it returns 0; a signal only means another
// try.
template <class F>
Result<size_t> TransferAll(size_t size, std::string_view what, F transfer) {
  size_t done = 0;
  while (done < size) {
    const ssize_t count = transfer(done);
    if (count == 0) break;
    if (count > 0) {
      done += static_cast<size_t>(count);
    } else if (errno != EINTR) {
      return Error::FromErrno(errno, what);
    }
  }
  return done;
}

Status WroteAll(Result<size_t> done, size_t size) {
  if (!done.ok()) return std::move(done).error();
  // No file system of ours does this; without the check a caller would take lost bytes for written
  // ones.
  if (*done != size) return Error(Code::kIo, "write stopped without an error");
  return Ok();
}

Result<Fd> OpenAt(int dir_fd, const char* name, int flags, mode_t mode = 0) {
  for (;;) {
    Fd fd(::openat(dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC, mode));
    if (fd) return fd;
    if (errno != EINTR) return Error::FromErrno(errno, fmt::format("open {}", name));
  }
}

Result<Fd> CreateTemp(int dir_fd, const char* temp) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL;
  auto fd = OpenAt(dir_fd, temp, kFlags, 0600);
  if (fd.ok() || fd.error().sys_errno() != EEXIST) return fd;
  // Left by a crash. Removed rather than truncated: it may be a link to something else.
  ::unlinkat(dir_fd, temp, 0);
  return OpenAt(dir_fd, temp, kFlags, 0600);
}

Status FillAndRename(int dir_fd, const char* temp, const char* name, std::string_view content,
                     FileSync sync) {
  TRY_ASSIGN(const Fd file, CreateTemp(dir_fd, temp));
  TRY(WriteFully(file.get(), AsBytes(content)));
  if (sync == FileSync::kPower && ::fdatasync(file.get()) != 0) {
    return Error::FromErrno(errno, fmt::format("sync {}", temp));
  }
  if (::renameat(dir_fd, temp, dir_fd, name) != 0) {
    return Error::FromErrno(errno, fmt::format("rename {} to {}", temp, name));
  }
  return Ok();
}

// Opened anew, because an O_PATH descriptor cannot be synced.
Status SyncDir(int dir_fd) {
  TRY_ASSIGN(const Fd dir, OpenAt(dir_fd, ".", O_RDONLY | O_DIRECTORY));
  if (::fsync(dir.get()) != 0) return Error::FromErrno(errno, "sync directory");
  return Ok();
}

bool IsDots(std::string_view name) { return name == "." || name == ".."; }

// Walks the tree with one open descriptor at a time, so that depth costs memory only: down by name,
// up by `..`. A directory that someone moves meanwhile has another `..`; the way up therefore
// checks where it arrives.
class TreeRemover {
 public:
  explicit TreeRemover(int dir_fd) : dir_fd_(dir_fd) {}

  Status Remove(const char* name) {
    if (::unlinkat(dir_fd_, name, 0) == 0 || errno == ENOENT) return Ok();
    if (errno != EISDIR) return Error::FromErrno(errno, fmt::format("remove {}", name));
    TRY(Descend(dir_fd_, name));
    while (!path_.empty()) {
      auto& subdirs = path_.back().subdirs;
      if (subdirs.empty()) {
        TRY(Ascend());
      } else {
        const std::string next = std::move(subdirs.back());
        subdirs.pop_back();
        TRY(Descend(current_.get(), next));
      }
    }
    return Ok();
  }

 private:
  struct Level {
    std::string name;
    dev_t dev;
    ino_t ino;
    std::vector<std::string> subdirs;  // still to be removed
  };

  // Enters a directory and removes everything in it but its subdirectories.
  Status Descend(int parent_fd, const std::string& name) {
    auto opened = OpenForRemoval(parent_fd, name);
    if (!opened.ok()) {
      return opened.error().sys_errno() == ENOENT ? Ok() : std::move(opened).error();
    }
    struct stat stat{};
    if (::fstat(opened->get(), &stat) != 0) return Error::FromErrno(errno, "stat " + name);
    if ((stat.st_mode & S_IRWXU) != S_IRWXU && stat.st_uid == ::geteuid()) {
      // If this fails, removing what is inside will say so.
      (void)::fchmod(opened->get(), S_IRWXU);
    }
    current_ = std::move(*opened);
    path_.push_back({.name = name, .dev = stat.st_dev, .ino = stat.st_ino, .subdirs = {}});
    return RemoveFiles(path_.back().subdirs);
  }

  static Result<Fd> OpenForRemoval(int parent_fd, const std::string& name) {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
    auto dir = OpenBeneath(parent_fd, name, kFlags);
    if (dir.ok() || dir.error().sys_errno() != EACCES) return dir;
    if (::fchmodat(parent_fd, name.c_str(), S_IRWXU, AT_SYMLINK_NOFOLLOW) != 0) return dir;
    return OpenBeneath(parent_fd, name, kFlags);
  }

  Status RemoveFiles(std::vector<std::string>& subdirs) {
    for (;;) {
      const ssize_t size = ::getdents64(current_.get(), entries_, sizeof(entries_));
      if (size == 0) return Ok();
      if (size < 0) return Error::FromErrno(errno, "list " + path_.back().name);
      for (ssize_t at = 0; at < size;) {
        const auto* entry = reinterpret_cast<const dirent64*>(entries_ + at);
        at += entry->d_reclen;
        if (!IsDots(entry->d_name)) TRY(RemoveFile(entry->d_name, entry->d_type, subdirs));
      }
    }
  }

  Status RemoveFile(const char* name, unsigned char type, std::vector<std::string>& subdirs) {
    const bool removed = type != DT_DIR && ::unlinkat(current_.get(), name, 0) == 0;
    if (removed) return Ok();
    if (type == DT_DIR || errno == EISDIR) {
      subdirs.emplace_back(name);
      return Ok();
    }
    return errno == ENOENT ? Ok() : Error::FromErrno(errno, fmt::format("remove {}", name));
  }

  // Leaves the emptied directory and removes it.
  Status Ascend() {
    const std::string name = std::move(path_.back().name);
    path_.pop_back();
    int parent_fd = dir_fd_;
    if (!path_.empty()) {
      TRY_ASSIGN(current_, OpenParent());
      parent_fd = current_.get();
    }
    if (::unlinkat(parent_fd, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return Ok();
    return Error::FromErrno(errno, fmt::format("remove directory {}", name));
  }

  Result<Fd> OpenParent() const {
    TRY_ASSIGN(Fd parent, OpenAt(current_.get(), "..", O_PATH | O_DIRECTORY));
    struct stat stat{};
    if (::fstat(parent.get(), &stat) != 0) return Error::FromErrno(errno, "stat ..");
    if (stat.st_dev != path_.back().dev || stat.st_ino != path_.back().ino) {
      return Error(Code::kBusy, "a directory was moved while its tree was being removed");
    }
    return parent;
  }

  const int dir_fd_;
  Fd current_;  // the directory of path_.back(); the last one entered when path_ is empty
  std::vector<Level> path_;  // from the top of the tree to where we are
  alignas(dirent64) char entries_[32 * 1024];
};

}  // namespace

Status WriteFully(int fd, ByteView bytes) {
  return WroteAll(TransferAll(bytes.size(), "write",
                              [&](size_t done) {
                                return ::write(fd, bytes.data() + done, bytes.size() - done);
                              }),
                  bytes.size());
}

Status PWriteFully(int fd, ByteView bytes, off_t offset) {
  return WroteAll(TransferAll(bytes.size(), "pwrite",
                              [&](size_t done) {
                                return ::pwrite(fd, bytes.data() + done, bytes.size() - done,
                                                offset + static_cast<off_t>(done));
                              }),
                  bytes.size());
}

Result<Bytes> ReadFully(int fd, size_t max) {
  constexpr size_t kFirstBytes = 4096;
  Bytes bytes;
  size_t used = 0;
  for (;;) {
    // Doubling up to one byte beyond the limit: that byte tells "exactly max" from "too much".
    const size_t room = std::min(std::max(kFirstBytes, used * 2), max < SIZE_MAX ? max + 1 : max);
    bytes.resize(room);
    TRY_ASSIGN(const size_t count, TransferAll(room - used, "read", [&](size_t done) {
                 return ::read(fd, bytes.data() + used + done, room - used - done);
               }));
    used += count;
    if (used > max) return Error(Code::kLimit, fmt::format("more than {} bytes to read", max));
    if (used < room) break;
  }
  bytes.resize(used);
  return bytes;
}

Result<size_t> PReadFully(int fd, std::span<uint8_t> out, off_t offset) {
  return TransferAll(out.size(), "pread", [&](size_t done) {
    return ::pread(fd, out.data() + done, out.size() - done, offset + static_cast<off_t>(done));
  });
}

Result<std::string> ReadFileAt(int dir_fd, const char* name, size_t max) {
  TRY_ASSIGN(const Fd file, OpenAt(dir_fd, name, O_RDONLY | O_NONBLOCK));
  auto bytes = ReadFully(file.get(), max);
  if (!bytes.ok()) return bytes.error().WithContext(name);
  return std::string(AsText(*bytes));
}

Status ReplaceFileAt(int dir_fd, const char* name, std::string_view content, FileSync sync) {
  const std::string temp = fmt::format("{}.tmp", name);
  if (auto filled = FillAndRename(dir_fd, temp.c_str(), name, content, sync); !filled.ok()) {
    ::unlinkat(dir_fd, temp.c_str(), 0);
    return filled.error().WithContext(fmt::format("replace {}", name));
  }
  return sync == FileSync::kPower ? SyncDir(dir_fd) : Ok();
}

Status RemoveTreeAt(int dir_fd, const char* name) {
  CHECK(std::strchr(name, '/') == nullptr && !IsDots(name));
  // Whoever still adds files meets us again, but not forever.
  constexpr int kMaxRounds = 8;
  for (int round = 1;; ++round) {
    Status removed = TreeRemover(dir_fd).Remove(name);
    if (removed.ok() || removed.error().sys_errno() != ENOTEMPTY || round == kMaxRounds) {
      return removed;
    }
  }
}

}  // namespace sandglass
