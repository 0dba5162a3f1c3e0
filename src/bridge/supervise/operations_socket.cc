// AF_UNIX sockets with names.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "bridge/supervise/decode.h"
#include "bridge/supervise/handlers.h"

namespace sandglass::bridge {

using undo::NodeType;
using undo::Ticket;

namespace {

constexpr timeval kPatience{.tv_sec = 0, .tv_usec = 100'000};

Result<Bytes> AddressOf(Call& call) {
  const auto size = static_cast<uint32_t>(call.Value(1));
  if (size > sizeof(sockaddr_storage)) return Error::FromErrno(EINVAL, "address");
  return call.task.ReadBytes(call.Value(0), size);
}

std::optional<int> SocketOption(int socket, int option) {
  int value = 0;
  socklen_t size = sizeof(value);
  if (::getsockopt(socket, SOL_SOCKET, option, &value, &size) != 0) return std::nullopt;
  return value;
}

std::optional<BoundSockets::Key> KeyOf(int dir, const char* name) {
  struct statx st;
  constexpr unsigned kFlags = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW;
  if (::statx(dir, name, kFlags, STATX_TYPE | STATX_INO | STATX_BTIME, &st) != 0 ||
      !S_ISSOCK(st.stx_mode))
    return std::nullopt;
  return BoundSockets::Key{makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino,
                           st.stx_btime.tv_sec, st.stx_btime.tv_nsec};
}

// A connection may take long, and meanwhile the caller may be killed: waits in short pieces. A limit of the caller's own stays.
class ShortWaits {
 public:
  explicit ShortWaits(int socket) : socket_(socket) {
    socklen_t size = sizeof(before_);
    const bool known = ::getsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &before_, &size) == 0;
    active_ = known && before_.tv_sec == 0 && before_.tv_usec == 0 &&
              (::fcntl(socket, F_GETFL) & O_NONBLOCK) == 0 && Set(kPatience);
  }
  ~ShortWaits() {
    if (active_) Set(before_);
  }
  ShortWaits(const ShortWaits&) = delete;
  ShortWaits& operator=(const ShortWaits&) = delete;
  bool active() const { return active_; }

 private:
  bool Set(const timeval& time) const {
    return ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)) == 0;
  }
  const int socket_;
  timeval before_{};
  bool active_ = false;
};

bool IsUnderWay(int failure) {
  return failure == EAGAIN || failure == EINPROGRESS || failure == EALREADY;
}

Answer ConnectPatiently(Call& call, const Fd& socket, ByteView address) {
  const ShortWaits waits(socket.get());
  while (true) {
    const Answer answer = Plainly(call, [&] {
      return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(address.data()),
                       static_cast<socklen_t>(address.size()));
    });
    const bool waiting = waits.active() && answer.kind == Answer::Kind::kFail &&
                         IsUnderWay(static_cast<int>(answer.value));
    if (!waiting) return Answer{.kind = answer.kind, .value = answer.value};
  }
}

// The world's own are those that it bound in a project, and those on mounts that it can write to. Whatever lies on a read-only
// mount was made by the host.
bool IsOwnSocket(Call& call, const Object& object) {
  const auto key = KeyOf(object.fd.get(), "");
  if (!key) return false;
  if (object.project != nullptr) return call.shared.sockets.Has(*key);
  return !IsOnReadOnlyMount(object.fd.get());
}

Answer ConnectByName(Call& call, const Fd& socket, ByteView address) {
  const std::optional<std::string> path = DecodeUnixPath(address);
  // Abstract names belong to the socket's network namespace.
  if (!path) return ConnectPatiently(call, socket, address);
  ANSWER_ASSIGN(const Object object,
                call.shared.resolver.FindObject(call.caller(), AT_FDCWD, *path, Follow::kYes));
  if (object.failure != 0) return Answer::Fail(object.failure);
  if (const int forbidden = AccessForbidden(call, object.fd.get(), W_OK); forbidden == EACCES)
    return Answer::Fail(forbidden);
  if (!IsOwnSocket(call, object)) return Answer::Fail(ECONNREFUSED);
  sockaddr_un by_descriptor{.sun_family = AF_UNIX};
  const std::string magic = MagicPath(object.fd.get());
  std::memcpy(by_descriptor.sun_path, magic.c_str(), magic.size() + 1);
  return ConnectPatiently(
      call, socket, {reinterpret_cast<const uint8_t*>(&by_descriptor), sizeof(by_descriptor)});
}

}  // namespace

Answer BindSocket(Call& call) {
  ANSWER_ASSIGN(const Bytes given, AddressOf(call));
  const std::optional<std::string> path = DecodeUnixPath(given);
  if (!path) return Answer::Continue();
  ANSWER_ASSIGN(const Location at, call.shared.resolver.FindName(call.caller(), AT_FDCWD, *path));
  if (!at.ours()) return Answer::Continue();
  ANSWER_ASSIGN(const Fd socket, call.task.CopyFd(call.IntArg(call.rule.fd)));
  struct stat st;
  if (::fstatat(at.dir->fd.get(), at.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0)
    return Answer::Fail(EADDRINUSE);
  if (at.slash == Location::Slash::kTrailing) return Answer::Fail(ENOENT);
  sockaddr_un address{.sun_family = AF_UNIX};
  if (at.name.size() >= sizeof(address.sun_path)) return Answer::Fail(ENAMETOOLONG);
  std::memcpy(address.sun_path, at.name.c_str(), at.name.size() + 1);
  Answer answer =
      Complete(call, at.dir->project->interceptor->BeginCreate(at.ref(), NodeType::kSocket),
               [&](const Ticket&) {
                 // An address has no room for a long path; this thread has a working directory of its own.
                 if (::fchdir(at.dir->fd.get()) != 0) return -1;
                 const int bound = ::bind(
                     socket.get(), reinterpret_cast<const sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + at.name.size() + 1));
                 const int failure = errno;
                 CHECK(::chdir("/") == 0);
                 errno = failure;
                 return bound;
               });
  if (answer.kind == Answer::Kind::kReturn) {
    if (const auto key = KeyOf(at.dir->fd.get(), at.name.c_str())) call.shared.sockets.Add(*key);
  }
  return answer;
}

// Which sockets there may be is in registers, so this one may be continued. A datagram can be sent to any name, and sendmsg() has
// the name in memory, where no filter sees it and where it can change; so there are no datagrams here.
Answer MakeSocket(Call& call) {
  constexpr int kTypeBits = 0xf;
  const int type = call.IntArg(1) & kTypeBits;
  return type == SOCK_DGRAM || type == SOCK_RAW ? Answer::Fail(EACCES) : Answer::Continue();
}

// Performed on a copy for every family: continued, the number could mean a socket, and the address a name, that was not judged.
Answer ConnectSocket(Call& call) {
  ANSWER_ASSIGN(const Fd socket, call.task.CopyFd(call.IntArg(call.rule.fd)));
  const std::optional<int> family = SocketOption(socket.get(), SO_DOMAIN);
  if (!family) return Answer::Fail(errno);
  ANSWER_ASSIGN(const Bytes address, AddressOf(call));
  switch (*family) {
    case AF_UNIX:
      return ConnectByName(call, socket, address);
    case AF_INET:
    case AF_INET6:
      return ConnectPatiently(call, socket, address);
    default:
      return Answer::Fail(EAFNOSUPPORT);
  }
}

}  // namespace sandglass::bridge
