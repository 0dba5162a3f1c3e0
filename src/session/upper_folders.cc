#include "session/upper_folders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

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
  return lock;
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
    if (LockFolder(entry.path().native()).ok()) RemoveFolder(entry.path().native());
  }
}

}  // namespace sandglass::session
