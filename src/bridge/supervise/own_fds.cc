#include "bridge/supervise/own_fds.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <climits>
#include <limits>

namespace sandglass::bridge {
namespace {

class Name {
 public:
  explicit Name(int fd) { *std::to_chars(text_, text_ + sizeof(text_) - 1, fd).ptr = 0; }
  const char* get() const { return text_; }

 private:
  char text_[std::numeric_limits<int>::digits10 + 3];
};

}  // namespace

OwnFds::OwnFds() : folder_(::open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

Fd OwnFds::Open(int fd, int flags) const {
  return Fd(::openat(folder_.get(), Name(fd).get(), flags | O_CLOEXEC));
}

std::optional<std::string> OwnFds::PathOf(int fd) const {
  char buffer[PATH_MAX];
  const ssize_t size = ::readlinkat(folder_.get(), Name(fd).get(), buffer, sizeof(buffer));
  if (size < 0) return std::nullopt;
  return std::string(buffer, static_cast<size_t>(size));
}

}  // namespace sandglass::bridge
