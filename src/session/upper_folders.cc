#include "session/upper_folders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/io.h"

namespace sandglass::session {

namespace fs = std::filesystem;

// One on top of another cannot take changes, and its marks need attributes.
Status CheckCanBeUpper(const std::string& folder) {
  struct statfs info{};
  if (::statfs(folder.c_str(), &info) != 0) return Error::FromErrno(errno, folder);
  if (info.f_type == OVERLAYFS_SUPER_MAGIC)
    return Error(Code::kUnsupported, fmt::format("{} lies on an overlay itself", folder));
  if (::setxattr(folder.c_str(), "user.overlay.probe", "y", 1, 0) != 0)
    return Error(Code::kUnsupported,
                 fmt::format("the file system of {} has no extended attributes", folder), errno);
  (void)::removexattr(folder.c_str(), "user.overlay.probe");
  return Ok();
}

Result<Fd> LockFolder(const std::string& folder) {
  Fd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return Error::FromErrno(errno, fmt::format("lock {}", folder));
  // Whoever had it locked until now may have removed it.
  struct stat locked{}, there{};
  const bool same = ::fstat(lock.get(), &locked) == 0 && ::lstat(folder.c_str(), &there) == 0 &&
                    locked.st_dev == there.st_dev && locked.st_ino == there.st_ino;
  if (!same) return Error(Code::kNotFound, fmt::format("lock {}: it is gone", folder), ENOENT);
  return lock;
}

// Between making and locking it, another session may take it for one that nobody uses.
Result<LockedFolder> MakeLockedFolder(const std::string& place, std::string_view prefix) {
  constexpr int kTries = 100;
  for (int attempt = 1;; ++attempt) {
    std::string folder = fmt::format("{}/{}XXXXXX", place, prefix);
    if (::mkdtemp(folder.data()) == nullptr)
      return Error::FromErrno(errno, fmt::format("make a folder in {}", place));
    auto lock = LockFolder(folder);
    if (lock.ok()) return LockedFolder{std::move(folder), std::move(*lock)};
    if (attempt == kTries) return lock.error();
  }
}

void RemoveFolder(const std::string& folder) {
  const fs::path path = folder;
  const Fd parent(::open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (parent) (void)RemoveTreeAt(parent.get(), path.filename().c_str());
}

void RemoveUnused(const std::string& place, std::string_view prefix) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(place, error)) {
    if (!entry.path().filename().native().starts_with(prefix)) continue;
    const auto lock = LockFolder(entry.path().native());
    if (lock.ok()) RemoveFolder(entry.path().native());
  }
}

}  // namespace sandglass::session
