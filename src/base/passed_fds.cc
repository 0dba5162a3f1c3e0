#include "base/passed_fds.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace sandglass {
namespace {

constexpr size_t kControlBytes = CMSG_SPACE(kMaxPassedFds * sizeof(int));

void TakeFds(msghdr& message, ReceivedMessage& received) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count && received.fd_count < kMaxPassedFds; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      received.fds[received.fd_count++] = Fd(fd);
    }
  }
}

}  // namespace

Status SendWithFds(int socket, ByteView bytes, std::span<const int> fds) {
  CHECK(!fds.empty() && fds.size() <= kMaxPassedFds);
  iovec data{const_cast<uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[kControlBytes] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return Error::FromErrno(errno, "send descriptors");
  }
  return Ok();
}

Result<ReceivedMessage> ReceiveWithFds(int socket, std::span<uint8_t> buffer) {
  iovec data{buffer.data(), buffer.size()};
  alignas(cmsghdr) char control[kControlBytes] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t size = -1;
  do {
    size = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (size < 0 && errno == EINTR);
  if (size < 0 && errno == EAGAIN) return Error(Code::kBusy, "no message is waiting", EAGAIN);
  if (size < 0) return Error::FromErrno(errno, "receive descriptors");
  ReceivedMessage received;
  received.size = static_cast<size_t>(size);
  TakeFds(message, received);
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return Error(Code::kInvalid, "a message with more bytes or descriptors than agreed");
  return received;
}

}  // namespace sandglass
