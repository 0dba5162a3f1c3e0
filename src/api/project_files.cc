#include "api/project_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <utility>

#include "base/rel_path.h"

namespace sandglass::api {
namespace {

std::string Shown(const std::string& path) { return path.empty() ? "the working directory" : path; }

// Unlike base/beneath.h it follows symlinks that stay beneath: whoever reads a file means what is there.
Result<Fd> OpenIn(const std::string& directory, const std::string& path, int flags) {
  TRY_ASSIGN(const Fd root, OpenDirectory(directory));
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const std::string& name = path.empty() ? "." : path;
  for (int tries = 0; tries < 10; ++tries) {
    const long fd = ::syscall(SYS_openat2, root.get(), name.c_str(), &how, sizeof(how));
    if (fd >= 0) return Fd(static_cast<int>(fd));
    if (errno != EAGAIN && errno != EINTR) break;  // a rename came in between
  }
  if (errno == EXDEV || errno == ELOOP)
    return Error(Code::kOutsideRoot, fmt::format("{} leads out of the working directory", path));
  return Error::FromErrno(errno, fmt::format("open {}", Shown(path)));
}

std::string_view TypeName(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "file";
    case S_IFDIR:
      return "directory";
    case S_IFLNK:
      return "symlink";
    case S_IFIFO:
      return "fifo";
    case S_IFSOCK:
      return "socket";
    default:
      return "device";
  }
}

FolderEntry EntryOf(int folder, std::string name, const struct stat& stat) {
  FolderEntry entry{.name = std::move(name),
                    .type = TypeName(stat.st_mode),
                    .size = static_cast<uint64_t>(stat.st_size),
                    .mode = stat.st_mode & 07777,
                    .mtime_ns = stat.st_mtim.tv_sec * 1'000'000'000 + stat.st_mtim.tv_nsec};
  if (!S_ISLNK(stat.st_mode)) return entry;
  char target[PATH_MAX];
  const ssize_t size = ::readlinkat(folder, entry.name.c_str(), target, sizeof(target));
  if (size > 0) entry.target.assign(target, static_cast<size_t>(size));
  return entry;
}

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

}  // namespace

Result<Fd> OpenDirectory(const std::string& directory) {
  Fd root(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return Error::FromErrno(errno, fmt::format("open {}", directory));
  return root;
}

Result<std::string> PathWithin(const std::string& directory, std::string_view given) {
  if (given.starts_with('/')) {
    const auto below = PathBelow(given, directory);
    if (!below)
      return Error(Code::kOutsideRoot,
                   fmt::format("{} does not lie in the working directory {}", given, directory));
    given = *below;
  }
  return NormalizeRelPath(given);
}

Result<std::vector<FolderEntry>> ListFolderIn(const std::string& directory, const std::string& path,
                                              size_t max_entries) {
  TRY_ASSIGN(Fd folder, OpenIn(directory, path, O_RDONLY | O_DIRECTORY));
  const std::unique_ptr<DIR, CloseDir> dir(::fdopendir(folder.get()));
  if (!dir) return Error::FromErrno(errno, fmt::format("list {}", Shown(path)));
  const int fd = folder.Release();
  std::vector<FolderEntry> entries;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string name = entry->d_name;
    struct stat stat{};
    if (name == "." || name == "..") continue;
    if (::fstatat(fd, name.c_str(), &stat, AT_SYMLINK_NOFOLLOW) != 0) continue;  // gone meanwhile
    if (entries.size() == max_entries)
      return Error(Code::kLimit,
                   fmt::format("{} has more than {} entries", Shown(path), max_entries));
    entries.push_back(EntryOf(fd, name, stat));
  }
  std::ranges::sort(entries, {}, &FolderEntry::name);
  return entries;
}

}  // namespace sandglass::api
