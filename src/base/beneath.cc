#include "base/beneath.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

namespace sandglass {
namespace {

// The kernel takes at most PATH_MAX (4096) bytes with the NUL; longer paths are walked in pieces of
// this size.
constexpr size_t kMaxPieceBytes = 4000;
// Errors show the beginning of a path only: it may be far longer than anyone wants to read.
constexpr size_t kMaxShownBytes = 200;
// EAGAIN says that a rename raced with the walk, or that a lease is being broken and O_NONBLOCK
// forbids to wait.
constexpr int kMaxTries = 1000;
constexpr int kPatientAfter = 16;  // whoever renames all the time must get done some time

constexpr uint64_t kStayBeneath =
    RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;

Error OpenError(int sys_errno, std::string_view path) {
  const std::string what =
      fmt::format("open {}", path.empty() ? "." : path.substr(0, kMaxShownBytes));
  if (sys_errno == EXDEV) {
    return Error(Code::kOutsideRoot,
                 fmt::format("{}: the path leaves the root or enters another mount", what),
                 sys_errno);
  }
  if (sys_errno == ELOOP) {
    return Error(Code::kOutsideRoot,
                 fmt::format("{}: a symbolic link is in the way and is not followed", what),
                 sys_errno);
  }
  return Error::FromErrno(sys_errno, what);
}

// Opens one piece, which the kernel takes as a whole.
Result<Fd> OpenPiece(int base_fd, std::string_view piece, int flags, mode_t mode) {
  char path[kMaxPieceBytes + 1] = ".";
  if (!piece.empty()) {
    std::memcpy(path, piece.data(), piece.size());
    path[piece.size()] = '\0';
  }
  open_how how{};
  how.flags = static_cast<uint32_t>(flags | O_CLOEXEC);
  // openat2() is strict where open() is lenient: a mode without a use for it is EINVAL.
  const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  how.mode = creates ? mode : 0;
  how.resolve = kStayBeneath;
  for (int tries = 1;; ++tries) {
    const long fd = ::syscall(SYS_openat2, base_fd, path, &how, sizeof(how));
    if (fd >= 0) return Fd(static_cast<int>(fd));
    const bool transient = errno == EAGAIN || errno == EINTR;
    if (!transient || tries == kMaxTries) return OpenError(errno, piece);
    if (tries > kPatientAfter) ::sched_yield();
  }
}

// Cuts from `rest` as many whole components as fit into one piece, and the slashes after them.
// Empty: not even one fits.
std::string_view TakePiece(std::string_view& rest) {
  const size_t slash = rest.rfind('/', kMaxPieceBytes);
  if (slash == std::string_view::npos) return {};
  const std::string_view piece = rest.substr(0, slash);
  rest.remove_prefix(std::min(rest.find_first_not_of('/', slash), rest.size()));
  return piece;
}

}  // namespace

Result<Fd> OpenBeneath(int root_fd, std::string_view rel_path, int flags, mode_t mode) {
  if (rel_path.find('\0') != std::string_view::npos) {
    return Error(Code::kInvalid, "path contains a NUL byte");
  }
  if (rel_path.starts_with('/')) return OpenError(EXDEV, rel_path);
  std::string_view rest = rel_path;
  Fd base;  // owns the directory reached so far, none at the root
  while (rest.size() > kMaxPieceBytes) {
    const std::string_view piece = TakePiece(rest);
    if (piece.empty()) return OpenError(ENAMETOOLONG, rel_path);
    const int from = base ? base.get() : root_fd;
    TRY_ASSIGN(base, OpenPiece(from, piece, O_PATH | O_DIRECTORY, 0));
  }
  return OpenPiece(base ? base.get() : root_fd, rest, flags, mode);
}

Result<Fd> OpenDirBeneath(int root_fd, std::string_view rel_path) {
  return OpenBeneath(root_fd, rel_path, O_PATH | O_DIRECTORY);
}

}  // namespace sandglass
