// Frames: messages of any length with descriptors, over an AF_UNIX stream socket. A frame is its length in four bytes, low first,
// and its bytes; descriptors travel with the length. Both functions block. Free functions, any thread; one sender and one receiver
// per socket.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/passed_fds.h"
#include "base/result.h"

namespace sandglass {

struct Frame {
  std::string bytes;
  size_t fd_count = 0;  // the valid ones at the front of `fds`
  std::array<Fd, kMaxPassedFds> fds;
};

// kCancelled: the other end is gone. The descriptors, at most kMaxPassedFds, stay ours too.
Status SendFrame(int socket, std::string_view bytes, std::span<const int> fds = {});
// kCancelled: the other end is gone. kLimit: longer than `max_bytes`; the socket is of no use after that.
Result<Frame> ReceiveFrame(int socket, size_t max_bytes);

}  // namespace sandglass
