#include "session/files/opening.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string>

#include "base/beneath.h"

namespace sandglass::session::files {
namespace {

constexpr int kMaxTries = 100;  // EAGAIN: a rename raced with the walk

int OpenAt2(int dir_fd, const char* path, int flags, uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<uint32_t>(flags | O_CLOEXEC | O_NOCTTY);
  how.resolve = resolve;
  for (int tried = 1;; ++tried) {
    const long fd = ::syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || tried == kMaxTries)
      return static_cast<int>(fd);
  }
}

Error OpenError(int sys_errno, std::string_view path) {
  const std::string what = fmt::format("open {}", path.empty() ? "." : path);
  if (sys_errno == EXDEV)
    return Error(Code::kOutsideRoot,
                 fmt::format("{}: it leads out of the project or to another mount", what),
                 sys_errno);
  if (sys_errno == ELOOP)
    return Error(Code::kOutsideRoot, fmt::format("{}: too many symbolic links", what), sys_errno);
  return Error::FromErrno(sys_errno, what);
}

}  // namespace

Result<Fd> OpenFollowing(int root_fd, std::string_view path, int flags) {
  // Longer than the kernel takes at once: then without symbolic links, which only a path that a tool made up could have.
  if (path.size() >= PATH_MAX) return OpenBeneath(root_fd, path, flags | O_NONBLOCK);
  const std::string text(path.empty() ? "." : path);
  Fd fd(OpenAt2(root_fd, text.c_str(), flags | O_NONBLOCK,
                RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV));
  if (!fd) return OpenError(errno, path);
  return fd;
}

int OpenName(int dir_fd, const char* name, int flags) {
  return OpenAt2(dir_fd, name, flags | O_NONBLOCK | O_NOFOLLOW,
                 RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

int64_t NanosecondsOf(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

FileVersion VersionOf(const struct stat& st) {
  return {st.st_dev, st.st_ino, static_cast<uint64_t>(st.st_size), NanosecondsOf(st.st_mtim),
          NanosecondsOf(st.st_ctim)};
}

}  // namespace sandglass::session::files
