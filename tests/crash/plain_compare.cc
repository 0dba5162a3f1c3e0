#include "tests/crash/plain_compare.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fd.h"

namespace sandglass::crash {
namespace {

constexpr uint32_t kUserFlags = FS_SYNC_FL | FS_IMMUTABLE_FL | FS_APPEND_FL | FS_NODUMP_FL |
                                FS_NOATIME_FL | FS_DIRSYNC_FL | FS_NOCOW_FL;

Error Failed(std::string_view what, const std::string& path) {
  return Error::FromErrno(errno, fmt::format("{} {}", what, path));
}

// O_NOATIME is for owners only; without it the content is the same.
Fd OpenToRead(const std::string& path, int flags) {
  Fd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME | flags));
  if (!fd.valid() && errno == EPERM) {
    fd = Fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | flags));
  }
  return fd;
}

Result<std::string> ReadContent(int fd, uint64_t size, const std::string& path) {
  std::string content(size + 1, '\0');  // one more, so that the end is seen
  size_t filled = 0;
  while (true) {
    const ssize_t got = read(fd, content.data() + filled, content.size() - filled);
    if (got < 0) return Failed("read", path);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
    if (filled == content.size()) content.resize(content.size() * 2);
  }
  content.resize(filled);
  return content;
}

Result<std::string> ReadTarget(const std::string& path) {
  std::string target(4096, '\0');
  const ssize_t length = readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return Failed("readlink", path);
  target.resize(static_cast<size_t>(length));
  return target;
}

Result<std::map<std::string, std::string>> ReadXattrs(const std::string& path) {
  std::map<std::string, std::string> found;
  std::string names(65536, '\0');
  const ssize_t length = llistxattr(path.c_str(), names.data(), names.size());
  if (length < 0 && (errno == ENOTSUP || errno == EACCES)) return found;
  if (length < 0) return Failed("listxattr", path);
  for (const char* name = names.data(); name < names.data() + length; name += strlen(name) + 1) {
    std::string value(65536, '\0');
    const ssize_t size = lgetxattr(path.c_str(), name, value.data(), value.size());
    if (size < 0) return Failed("getxattr", path);
    value.resize(static_cast<size_t>(size));
    found.emplace(name, std::move(value));
  }
  return found;
}

uint32_t ReadUserFlags(int fd) {
  int flags = 0;
  if (ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) return 0;
  return static_cast<uint32_t>(flags) & kUserFlags;
}

// Sorted, so that the twin of a path depends on the tree alone and not on the order of the directory.
Result<std::vector<std::string>> ReadNames(int dir_fd, const std::string& path) {
  DIR* dir = fdopendir(dup(dir_fd));
  if (dir == nullptr) return Failed("opendir", path);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

class TreeReader {
 public:
  explicit TreeReader(std::string root) : root_(std::move(root)) {}

  Status Visit(const std::string& rel) {
    const std::string path = rel.empty() ? root_ : root_ + "/" + rel;
    struct stat st;
    if (lstat(path.c_str(), &st) != 0) return Failed("lstat", path);
    PlainEntry& entry = tree_[rel];
    entry = FromStat(st);
    const auto id =
        std::make_pair(static_cast<uint64_t>(st.st_dev), static_cast<uint64_t>(st.st_ino));
    entry.twin = first_path_.emplace(id, rel).first->second;
    TRY_ASSIGN(entry.xattrs, ReadXattrs(path));
    if (S_ISLNK(st.st_mode)) {
      TRY_ASSIGN(entry.body, ReadTarget(path));
    }
    if (S_ISREG(st.st_mode)) TRY(VisitFile(path, st, entry));
    if (S_ISDIR(st.st_mode)) TRY(VisitDirectory(path, rel, entry));
    return Ok();
  }

  PlainTree Take() { return std::move(tree_); }

 private:
  static PlainEntry FromStat(const struct stat& st) {
    PlainEntry entry;
    entry.mode = st.st_mode & (S_IFMT | 07777);
    entry.uid = st.st_uid;
    entry.gid = st.st_gid;
    entry.device = S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) ? st.st_rdev : 0;
    entry.mtime_ns = st.st_mtim.tv_sec * 1'000'000'000LL + st.st_mtim.tv_nsec;
    return entry;
  }

  static Status VisitFile(const std::string& path, const struct stat& st, PlainEntry& entry) {
    const Fd fd = OpenToRead(path, 0);
    if (!fd.valid() && errno != EACCES) return Failed("open", path);
    if (!fd.valid()) {
      entry.body = "unreadable: " + std::to_string(st.st_size);
      return Ok();
    }
    entry.flags = ReadUserFlags(fd.get());
    TRY_ASSIGN(entry.body, ReadContent(fd.get(), static_cast<uint64_t>(st.st_size), path));
    return Ok();
  }

  Status VisitDirectory(const std::string& path, const std::string& rel, PlainEntry& entry) {
    const Fd fd = OpenToRead(path, O_DIRECTORY);
    if (!fd.valid() && errno != EACCES) return Failed("open", path);
    if (!fd.valid()) {
      entry.body = "unreadable";
      return Ok();
    }
    entry.flags = ReadUserFlags(fd.get());
    TRY_ASSIGN(const std::vector<std::string> names, ReadNames(fd.get(), path));
    const std::string prefix = rel.empty() ? "" : rel + "/";
    for (const std::string& name : names) TRY(Visit(prefix + name));
    return Ok();
  }

  const std::string root_;
  PlainTree tree_;
  std::map<std::pair<uint64_t, uint64_t>, std::string> first_path_;  // by device and inode number
};

std::string Seconds(int64_t ns) {
  return fmt::format("{}.{:09}", ns / 1'000'000'000, ns % 1'000'000'000);
}

std::string DescribeXattrs(const std::map<std::string, std::string>& xattrs) {
  std::string text;
  for (const auto& [name, value] : xattrs) text += fmt::format(" {}[{}]", name, value.size());
  return text.empty() ? " none" : text;
}

std::string DescribeBodies(const std::string& want, const std::string& got) {
  const auto differ = std::mismatch(want.begin(), want.end(), got.begin(), got.end());
  return fmt::format("{} bytes -> {} bytes, first other byte at {}", want.size(), got.size(),
                     differ.first - want.begin());
}

void CompareEntries(const std::string& path, const PlainEntry& want, const PlainEntry& got,
                    bool compare_mtime, std::vector<std::string>& out) {
  const auto differs = [&](std::string_view what, const std::string& detail) {
    out.push_back(fmt::format("{}: {} {}", path.empty() ? "." : path, what, detail));
  };
  if (want.mode != got.mode) differs("mode", fmt::format("{:o} -> {:o}", want.mode, got.mode));
  if (want.uid != got.uid || want.gid != got.gid) {
    differs("owner", fmt::format("{}:{} -> {}:{}", want.uid, want.gid, got.uid, got.gid));
  }
  if (want.device != got.device) {
    differs("device", fmt::format("{:x} -> {:x}", want.device, got.device));
  }
  if (want.flags != got.flags) differs("flags", fmt::format("{:x} -> {:x}", want.flags, got.flags));
  if (compare_mtime && want.mtime_ns != got.mtime_ns) {
    differs("mtime", Seconds(want.mtime_ns) + " -> " + Seconds(got.mtime_ns));
  }
  if (want.body != got.body) differs("content", DescribeBodies(want.body, got.body));
  if (want.twin != got.twin) differs("same inode as", want.twin + " -> " + got.twin);
  if (want.xattrs != got.xattrs) {
    differs("xattrs", DescribeXattrs(want.xattrs) + " ->" + DescribeXattrs(got.xattrs));
  }
}

}  // namespace

Result<PlainTree> ReadPlainTree(const std::string& root) {
  TreeReader reader(root);
  TRY(reader.Visit(""));
  return reader.Take();
}

std::vector<std::string> PlainDifferences(const PlainTree& want, const PlainTree& got,
                                          const std::set<std::string>& any_mtime) {
  std::vector<std::string> differences;
  for (const auto& [path, entry] : want) {
    const auto other = got.find(path);
    if (other == got.end()) {
      differences.push_back(path + ": missing");
      continue;
    }
    CompareEntries(path, entry, other->second, !any_mtime.contains(path), differences);
  }
  for (const auto& [path, entry] : got) {
    if (!want.contains(path)) differences.push_back(path + ": should not exist");
  }
  return differences;
}

std::set<std::string> PathsWithOtherMtime(const PlainTree& a, const PlainTree& b) {
  std::set<std::string> paths;
  for (const auto& [path, entry] : a) {
    const auto other = b.find(path);
    if (other != b.end() && other->second.mtime_ns != entry.mtime_ns) paths.insert(path);
  }
  return paths;
}

}  // namespace sandglass::crash
