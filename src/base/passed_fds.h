// Descriptors that travel with a message over an AF_UNIX socket that keeps messages apart (SOCK_SEQPACKET). Free functions, any
// thread; a child may send between fork and exec.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

namespace sandglass {

inline constexpr size_t kMaxPassedFds = 4;

// One message: `bytes` with at most kMaxPassedFds descriptors, which stay ours too. Blocks as the socket does.
Status SendWithFds(int socket, ByteView bytes, std::span<const int> fds);

struct ReceivedMessage {
  size_t size = 0;      // 0: the other end is gone
  size_t fd_count = 0;  // the valid ones at the front of `fds`
  std::array<Fd, kMaxPassedFds> fds;
};

// The next message, without waiting. What the sender made too large is an error, and none of its descriptors stay open.
// kBusy: there is none. kInvalid: more bytes than `buffer` holds, or more descriptors than kMaxPassedFds.
Result<ReceivedMessage> ReceiveWithFds(int socket, std::span<uint8_t> buffer);

}  // namespace sandglass
