#include "base/frames.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <utility>

namespace sandglass {
namespace {

constexpr size_t kHeaderBytes = 4;
using Header = std::array<uint8_t, kHeaderBytes>;

Header HeaderOf(size_t size) {
  Header header;
  for (size_t i = 0; i < kHeaderBytes; ++i) header[i] = static_cast<uint8_t>(size >> (8 * i));
  return header;
}

size_t SizeIn(const Header& header) {
  size_t size = 0;
  for (size_t i = 0; i < kHeaderBytes; ++i) size |= size_t{header[i]} << (8 * i);
  return size;
}

Error Gone() { return Error(Code::kCancelled, "the other end is gone"); }

Error FromSocket(const char* what) {
  const bool gone = errno == EPIPE || errno == ECONNRESET;
  return gone ? Gone() : Error::FromErrno(errno, what);
}

Status SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return FromSocket("send");
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return Ok();
}

Status ReceiveAll(int socket, std::span<char> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_WAITALL);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FromSocket("receive");
    if (got == 0) return Gone();
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return Ok();
}

Result<ReceivedMessage> ReceiveHeader(int socket, Header& header) {
  while (true) {
    auto received = ReceiveWithFds(socket, header);
    if (received.ok() || received.error().code() != Code::kBusy) return received;
    pollfd waiting{socket, POLLIN, 0};
    if (::poll(&waiting, 1, -1) < 0 && errno != EINTR) return Error::FromErrno(errno, "poll");
  }
}

}  // namespace

Status SendFrame(int socket, std::string_view bytes, std::span<const int> fds) {
  if (bytes.size() > std::numeric_limits<uint32_t>::max())
    return Error(Code::kLimit, "a frame longer than 4 GiB");
  const Header header = HeaderOf(bytes.size());
  if (fds.empty()) {
    // In one piece: the other end wakes once.
    std::string whole(header.begin(), header.end());
    return SendAll(socket, whole.append(bytes));
  }
  TRY(SendWithFds(socket, header, fds));
  return SendAll(socket, bytes);
}

Result<Frame> ReceiveFrame(int socket, size_t max_bytes) {
  Header header{};
  auto received = ReceiveHeader(socket, header);
  if (!received.ok()) return received.error().sys_errno() == ECONNRESET ? Gone() : received.error();
  if (received->size == 0) return Gone();
  // The kernel delivers what one call sent of so few bytes in one piece.
  if (received->size != kHeaderBytes) return Error(Code::kInvalid, "half the length of a frame");
  const size_t size = SizeIn(header);
  if (size > max_bytes) return Error(Code::kLimit, "a frame that is too long");
  Frame frame{.bytes = std::string(size, '\0'),
              .fd_count = received->fd_count,
              .fds = std::move(received->fds)};
  TRY(ReceiveAll(socket, frame.bytes));
  return frame;
}

}  // namespace sandglass
