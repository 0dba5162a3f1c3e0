#include "session/shell_channel.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/bytes.h"
#include "base/io.h"
#include "session/shell_rc.h"

namespace sandglass::session {
namespace {

constexpr size_t kReadBytes = size_t{16} << 10;
// Whoever asks without reading the answers loses them.
constexpr size_t kMaxUnsentBytes = size_t{16} << 20;

}  // namespace

Result<ShellChannel> ShellChannel::Open() {
  ShellChannel channel;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error::FromErrno(errno, "socketpair");
  channel.ours_ = Fd(ends[0]);
  channel.theirs_ = Fd(ends[1]);
  channel.script_ = Fd(::memfd_create("sandglass-shell", MFD_CLOEXEC));
  if (!channel.script_) return Error::FromErrno(errno, "memfd_create");
  TRY(WriteFully(channel.script_.get(), AsBytes(ShellRc())));
  return channel;
}

void ShellChannel::CloseGiven() {
  theirs_.Reset();
  script_.Reset();
}

void ShellChannel::AddTo(std::vector<pollfd>& fds) const {
  const short events = unsent_.empty() ? POLLIN : POLLIN | POLLOUT;
  fds.push_back({ours_.get(), events, 0});
}

std::vector<Result<ShellMessage>> ShellChannel::Work() {
  std::vector<Result<ShellMessage>> messages;
  if (!ours_) return messages;
  Write();
  std::string buffer(kReadBytes, '\0');
  const ssize_t got = ::recv(ours_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  // Nobody is left that could speak, and a descriptor that hung up would wake us again and again.
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) ours_.Reset();
  std::string_view bytes(buffer.data(), got > 0 ? static_cast<size_t>(got) : 0);
  while (auto frame = frames_.Next(bytes)) {
    if (frame->ok())
      messages.push_back(DecodeShellMessage(**frame));
    else
      messages.emplace_back(frame->error());
  }
  return messages;
}

void ShellChannel::Send(const std::string& tag, const ShellReply& reply) {
  if (unsent_.size() > kMaxUnsentBytes) return;
  unsent_ += Encode(tag, reply);
  Write();
}

void ShellChannel::Write() {
  while (ours_ && !unsent_.empty()) {
    const ssize_t sent =
        ::send(ours_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return;  // full, or gone, which reading tells
    unsent_.erase(0, static_cast<size_t>(sent));
  }
}

}  // namespace sandglass::session
