#include "tests/support/tree_walk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace sandglass::test {
namespace {

// Directories held open at once; deeper ancestors are closed and found again through "..".
constexpr size_t kOpenLevels = 64;

struct DirectoryId {
  uint32_t dev_major;
  uint32_t dev_minor;
  uint64_t inode;
  friend bool operator==(const DirectoryId&, const DirectoryId&) = default;
};

DirectoryId IdOf(const struct statx& st) {
  return {st.stx_dev_major, st.stx_dev_minor, st.stx_ino};
}

Result<struct statx> StatOf(int parent, const char* name) {
  struct statx st{};
  if (::statx(parent, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &st) != 0) {
    return Error::FromErrno(errno, fmt::format("statx {}", name));
  }
  return st;
}

class Walk {
 public:
  explicit Walk(const WalkVisitor& visit) : visit_(visit) {}

  Status Run(int root) {
    TRY(Visit(root, "."));
    while (!levels_.empty()) {
      Level& level = levels_.back();
      if (level.names.empty()) {
        TRY(Leave());
        continue;
      }
      const std::string name = std::move(level.names.back());
      level.names.pop_back();
      path_.resize(level.path_size);
      if (!path_.empty()) path_ += '/';
      path_ += name;
      TRY(Visit(level.fd.get(), name.c_str()));
    }
    return Ok();
  }

 private:
  struct Level {
    Fd fd;
    DirectoryId id;
    size_t path_size;
    std::vector<std::string> names;  // still to be visited
  };

  Status Visit(int parent, const char* name) {
    TRY_ASSIGN(const struct statx st, StatOf(parent, name));
    WalkEntry entry{.parent = parent, .name = name, .path = path_, .st = st};
    if (!S_ISDIR(st.stx_mode)) return visit_(entry);
    Fd dir = OpenForReading(parent, name, O_DIRECTORY);
    entry.dir_fd = dir.get();
    entry.dir_errno = dir.valid() ? 0 : errno;
    TRY(visit_(entry));
    return dir.valid() ? Enter(std::move(dir), IdOf(st)) : Ok();
  }

  Status Enter(Fd dir, DirectoryId id) {
    TRY_ASSIGN(auto names, ListDirectory(dir.get()));
    std::sort(names.rbegin(), names.rend());  // taken from the back
    levels_.push_back(
        {.fd = std::move(dir), .id = id, .path_size = path_.size(), .names = std::move(names)});
    if (levels_.size() > kOpenLevels) levels_[levels_.size() - 1 - kOpenLevels].fd.Reset();
    return Ok();
  }

  Status Leave() {
    const Level left = std::move(levels_.back());
    levels_.pop_back();
    if (levels_.empty() || levels_.back().fd.valid()) return Ok();
    Level& level = levels_.back();
    level.fd = OpenForReading(left.fd.get(), "..", O_DIRECTORY);
    if (!level.fd.valid()) return Error::FromErrno(errno, "reopen a parent directory");
    TRY_ASSIGN(const struct statx st, StatOf(level.fd.get(), "."));
    if (IdOf(st) != level.id)
      return Error(Code::kConflict, "a directory was moved during the walk");
    return Ok();
  }

  const WalkVisitor& visit_;
  std::string path_;
  std::vector<Level> levels_;
};

// The head of a directory record as getdents64 writes it; the name follows and ends with a NUL.
struct DirentHead {
  uint64_t inode;
  int64_t offset;
  uint16_t size;
  uint8_t type;
} __attribute__((packed));

void AppendNames(const char* records, size_t size, std::vector<std::string>& names) {
  for (size_t at = 0; at < size;) {
    DirentHead head;
    std::memcpy(&head, records + at, sizeof head);
    const std::string_view name = records + at + sizeof head;
    if (name != "." && name != "..") names.emplace_back(name);
    at += head.size;
  }
}

}  // namespace

Status WalkTree(int root, const WalkVisitor& visit) { return Walk(visit).Run(root); }

Result<Fd> OpenDirectory(const std::string& path) {
  Fd dir = OpenForReading(AT_FDCWD, path.c_str(), O_DIRECTORY);
  if (!dir.valid()) return Error::FromErrno(errno, "open " + path);
  return dir;
}

Fd OpenForReading(int parent, const char* name, int extra_flags) {
  const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | extra_flags;
  // O_NOATIME is for the owner and for root only.
  const int quiet = ::openat(parent, name, flags | O_NOATIME);
  if (quiet >= 0 || errno != EPERM) return Fd(quiet);
  return Fd(::openat(parent, name, flags));
}

Result<std::vector<std::string>> ListDirectory(int dir) {
  std::vector<std::string> names;
  std::vector<char> buffer(size_t{32} * 1024);
  if (::lseek(dir, 0, SEEK_SET) != 0) return Error::FromErrno(errno, "rewind directory");
  while (true) {
    const long size = ::syscall(SYS_getdents64, dir, buffer.data(), buffer.size());
    if (size < 0) return Error::FromErrno(errno, "read directory");
    if (size == 0) return names;
    AppendNames(buffer.data(), static_cast<size_t>(size), names);
  }
}

}  // namespace sandglass::test
