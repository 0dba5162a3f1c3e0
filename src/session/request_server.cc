#include "session/request_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/peer_user.h"

namespace sandglass::session {
namespace {

constexpr size_t kMaxConnections = 16;
constexpr int kBacklog = 16;
constexpr size_t kReadBytes = size_t{64} << 10;
// From the connection to its whole request.
constexpr std::chrono::milliseconds kPatience{5'000};
constexpr std::chrono::milliseconds kFlushPatience{2'000};
constexpr std::chrono::seconds kListPatience{5};

Result<Fd> OpenStore(const std::string& store) {
  Fd folder(::open(store.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return Error::FromErrno(errno, fmt::format("open the undo store {}", store));
  return folder;
}

// Through the descriptor: a path of any length is too long for an address.
sockaddr_un AddressIn(const Fd& store) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  fmt::format_to_n(address.sun_path, sizeof(address.sun_path) - 1, "/proc/self/fd/{}/{}",
                   store.get(), kSocketName);
  return address;
}

const sockaddr* AsAddress(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

// --- The session's end.

Result<std::unique_ptr<RequestServer>> RequestServer::Open(const std::vector<std::string>& stores,
                                                           const Clock& clock) {
  std::unique_ptr<RequestServer> server(new RequestServer(clock));
  for (const std::string& store : stores) {
    const Status opened = server->OpenDoor(store);
    if (!opened.ok()) return opened.error().WithContext("listen in the undo store");
  }
  return server;
}

Status RequestServer::OpenDoor(const std::string& store) {
  Door door;
  TRY_ASSIGN(door.store, OpenStore(store));
  door.listener = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!door.listener) return Error::FromErrno(errno, "socket");
  // The name gets the mode that the socket has when it is bound.
  if (::fchmod(door.listener.get(), 0600) != 0) return Error::FromErrno(errno, "chmod");
  ::unlinkat(door.store.get(), kSocketName, 0);  // of a session that died
  const sockaddr_un address = AddressIn(door.store);
  if (::bind(door.listener.get(), AsAddress(address), sizeof(address)) != 0)
    return Error::FromErrno(errno, "bind");
  if (::listen(door.listener.get(), kBacklog) != 0) return Error::FromErrno(errno, "listen");
  doors_.push_back(std::move(door));
  return Ok();
}

RequestServer::~RequestServer() {
  for (const Door& door : doors_) {
    ::unlinkat(door.store.get(), kSocketName, 0);
    Accept(door);
  }
  for (auto& [id, connection] : connections_) {
    if (connection.unsent.empty())
      Answer(id, Encode(Refused(Error(Code::kCancelled, "the session has just ended; try again"))));
  }
  Flush();
}

void RequestServer::AddTo(std::vector<pollfd>& fds) const {
  const bool room = connections_.size() < kMaxConnections;
  for (const Door& door : doors_) fds.push_back({room ? door.listener.get() : -1, POLLIN, 0});
  for (const auto& [id, connection] : connections_) {
    // Whoever waits for an answer is not looked at: an end that hung up would wake us again and again.
    const bool waits = connection.asked && connection.unsent.empty();
    const short events = connection.unsent.empty() ? POLLIN : POLLOUT;
    fds.push_back({waits ? -1 : connection.socket.get(), events, 0});
  }
}

std::optional<Instant> RequestServer::Deadline() const {
  std::optional<Instant> first;
  for (const auto& [id, connection] : connections_) {
    const Instant end = connection.opened + kPatience;
    if (!connection.asked && (!first || end < *first)) first = end;
  }
  return first;
}

void RequestServer::Accept(const Door& door) {
  while (connections_.size() < kMaxConnections) {
    Fd socket(::accept4(door.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    const bool welcome = IsPeerOurUser(socket.get());
    const ConnectionId id = next_++;
    Connection& connection = connections_[id];
    connection.socket = std::move(socket);
    connection.opened = clock_.Now();
    if (!welcome)
      Answer(id, Encode(Refused(Error(Code::kDenied, "the session belongs to another user"))));
  }
}

std::vector<RequestServer::Asked> RequestServer::Work() {
  for (const Door& door : doors_) Accept(door);
  std::vector<Asked> asked;
  for (auto& [id, connection] : connections_) {
    if (!connection.asked && Read(id, connection, asked)) connection.socket.Reset();
    if (connection.socket && Write(connection)) connection.socket.Reset();
  }
  std::erase_if(connections_, [](const auto& entry) { return !entry.second.socket; });
  return asked;
}

bool RequestServer::Read(ConnectionId id, Connection& connection, std::vector<Asked>& asked) {
  std::string buffer(kReadBytes, '\0');
  const ssize_t got = ::recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
  const bool later = got < 0 && (errno == EAGAIN || errno == EINTR);
  if (later) return clock_.Now() >= connection.opened + kPatience;
  if (got <= 0) return true;
  std::string_view bytes(buffer.data(), static_cast<size_t>(got));
  const auto line = connection.lines.Next(bytes);
  if (!line) return false;
  connection.asked = true;
  auto request = line->ok() ? DecodeSessionRequest(**line) : line->error();
  if (request.ok())
    asked.push_back({id, std::move(*request)});
  else
    Answer(id, Encode(Refused(request.error().WithContext("request"))));
  return false;
}

bool RequestServer::Write(Connection& connection) {
  while (!connection.unsent.empty()) {
    const ssize_t sent = ::send(connection.socket.get(), connection.unsent.data(),
                                connection.unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return errno != EAGAIN && errno != EINTR;
    connection.unsent.erase(0, static_cast<size_t>(sent));
    if (connection.unsent.empty()) return true;
  }
  return false;
}

void RequestServer::Answer(ConnectionId connection, const std::string& line) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  found->second.asked = true;
  found->second.unsent += line + '\n';
  if (Write(found->second)) found->second.socket.Reset();
}

void RequestServer::Tell(ConnectionId connection, const undo::RewindProgress& progress) {
  const auto found = connections_.find(connection);
  if (found == connections_.end() || !found->second.socket || !found->second.unsent.empty()) return;
  const std::string line = Encode(progress) + '\n';
  const ssize_t sent =
      ::send(found->second.socket.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  // Of a line that has begun the rest must follow.
  if (sent > 0) found->second.unsent = line.substr(static_cast<size_t>(sent));
}

void RequestServer::Flush() {
  for (auto& [id, connection] : connections_) {
    while (connection.socket && !connection.unsent.empty() && !Write(connection)) {
      pollfd room{connection.socket.get(), POLLOUT, 0};
      if (::poll(&room, 1, static_cast<int>(kFlushPatience.count())) <= 0) break;
    }
  }
  connections_.clear();
}

// --- The other end.

namespace {

// kNotFound: nobody listens.
Result<Fd> Connect(const std::string& store) {
  TRY_ASSIGN(const Fd folder, OpenStore(store));
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return Error::FromErrno(errno, "socket");
  const sockaddr_un address = AddressIn(folder);
  if (::connect(socket.get(), AsAddress(address), sizeof(address)) == 0) return socket;
  const bool nobody = errno == ENOENT || errno == ECONNREFUSED;
  return nobody ? Error(Code::kNotFound, "no session listens there")
                : Error::FromErrno(errno, "reach the session");
}

// A session that refuses us has answered, and does not listen any more.
void Say(const Fd& socket, std::string line) {
  line += '\n';
  (void)::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL);
}

Error Ended() {
  return Error(Code::kCancelled,
               "the session ended before it answered; `sandglass history` tells what was done");
}

// Reads the lines of a connection.
class Lines {
 public:
  explicit Lines(const Fd& socket) : socket_(socket) {}
  // Nothing: the other end is gone before its line was whole, or it sends too much.
  std::optional<std::string> Next() {
    std::string buffer(kReadBytes, '\0');
    size_t searched = 0;
    while (read_.size() <= kMaxAnswerBytes) {
      if (const size_t end = read_.find('\n', searched); end != read_.npos) {
        std::string line = read_.substr(0, end);
        read_.erase(0, end + 1);
        return line;
      }
      searched = read_.size();
      const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return std::nullopt;
      read_.append(buffer, 0, static_cast<size_t>(got));
    }
    return std::nullopt;
  }

 private:
  const Fd& socket_;
  std::string read_;
};

}  // namespace

bool SessionListens(const std::string& store) {
  const auto socket = Connect(store);
  return socket.ok() || socket.error().code() != Code::kNotFound;
}

Result<RewindAnswer> AskSession(const std::string& store, const RewindRequest& request,
                                const TellProgress& tell) {
  TRY_ASSIGN(const Fd socket, Connect(store));
  Say(socket, Encode(request));
  Lines lines(socket);
  while (const auto next = lines.Next()) {
    const auto progress = DecodeProgress(*next);
    if (!progress) return DecodeRewindAnswer(*next);
    if (tell) tell(*progress);
  }
  return Ended();
}

Result<HeldAnswer> AskSession(const std::string& store, const HeldRequest& request) {
  TRY_ASSIGN(const Fd socket, Connect(store));
  // Before a denial is answered, processes are ended.
  const timeval patience{.tv_sec = request.id.empty() ? kListPatience.count() : 0, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  Say(socket, Encode(request));
  const auto line = Lines(socket).Next();
  if (!line && errno == EAGAIN)
    return Error(Code::kBusy, "the session is at work and did not answer; try again");
  if (!line) return Ended();
  return DecodeHeldAnswer(*line);
}

}  // namespace sandglass::session
