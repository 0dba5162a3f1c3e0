#include "base/shared_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace sandglass {

SharedOutput::SharedOutput(int fd) : shared_(fd) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return;
  const bool is_null = S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
  if (S_ISREG(st.st_mode) || is_null) kind_ = Kind::kFile;
  if (S_ISSOCK(st.st_mode)) kind_ = Kind::kSocket;
  if (!S_ISFIFO(st.st_mode)) return;
  // Refused for the pipe of another user, and where nobody reads it.
  own_ = Fd(
      ::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (own_) kind_ = Kind::kOwnPipe;
}

Result<size_t> SharedOutput::Write(std::string_view bytes) const {
  if (bytes.empty()) return size_t{0};
  pollfd room{shared_, POLLOUT, 0};
  if (kind_ == Kind::kUnknown && ::poll(&room, 1, 0) <= 0) return size_t{0};
  const size_t size =
      kind_ == Kind::kUnknown ? std::min<size_t>(bytes.size(), PIPE_BUF) : bytes.size();
  const ssize_t written = kind_ == Kind::kSocket
                              ? ::send(shared_, bytes.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : ::write(fd(), bytes.data(), size);
  if (written >= 0) return static_cast<size_t>(written);
  if (errno == EAGAIN || errno == EINTR) return size_t{0};
  if (errno == EPIPE) return Error(Code::kCancelled, "nobody reads any more");
  return Error::FromErrno(errno, "write");
}

}  // namespace sandglass
