#include "shim/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <variant>

namespace sandglass::shim {

void Channel::Send(const control::ShimMessage& message) {
  const auto kind = std::holds_alternative<control::Output>(message) ? control::LineKind::kBulk
                                                                     : control::LineKind::kUrgent;
  if (!queue_.Push(control::Encode(message), kind).ok()) broken_ = true;
}

void Channel::Flush() {
  while (!queue_.empty() && !broken_) {
    const std::string_view front = queue_.Front();
    // write() and not send(): in a VM the channel is a character device. SIGPIPE is ignored.
    const ssize_t written = ::write(fd_.get(), front.data(), front.size());
    if (written > 0) {
      queue_.Consume(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      broken_ = true;
    }
  }
}

}  // namespace sandglass::shim
