#include "api/mcp/socket_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/peer_user.h"

namespace sandglass::api::mcp {
namespace {

constexpr size_t kMaxClients = 32;
constexpr int kBacklog = 32;

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path))
    return Error(Code::kInvalid, fmt::format("the path of a socket has 1 to {} bytes",
                                             sizeof(address.sun_path) - 1));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

bool IsServed(const sockaddr_un& address) {
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  // EAGAIN: more clients wait than the server's backlog holds.
  return ::connect(probe.get(), generic, sizeof(address)) == 0 || errno != ECONNREFUSED;
}

// Removes a socket whose server is gone.
Status MakeWay(const sockaddr_un& address) {
  const char* path = address.sun_path;
  struct stat found{};
  if (::lstat(path, &found) != 0)
    return errno == ENOENT ? Ok() : Status(Error::FromErrno(errno, path));
  if (!S_ISSOCK(found.st_mode))
    return Error(Code::kExists, fmt::format("{} is no socket; it is left alone", path));
  if (IsServed(address))
    return Error(Code::kConflict, fmt::format("another program serves {}", path));
  if (::unlink(path) != 0 && errno != ENOENT)
    return Error::FromErrno(errno, fmt::format("remove the socket {} that was left behind", path));
  return Ok();
}

}  // namespace

SocketServer::Client::Client(Fd connected, Service& service, const SocketOptions& options,
                             const Logger& log)
    : socket(std::move(connected)),
      peer(service,
           {.ends = {socket.get(), socket.get()},
            .stall_timeout = options.stall_timeout,
            .token = options.token},
           log) {}

SocketServer::SocketServer(Service& service, SocketOptions options, Logger log)
    : service_(service), options_(std::move(options)), log_(std::move(log)) {}

Result<std::unique_ptr<SocketServer>> SocketServer::Listen(Service& service, SocketOptions options,
                                                           Logger log) {
  std::unique_ptr<SocketServer> server(
      new SocketServer(service, std::move(options), std::move(log)));
  TRY(server->Bind());
  return server;
}

Status SocketServer::Bind() {
  TRY_ASSIGN(const sockaddr_un address, AddressOf(options_.path));
  TRY(MakeWay(address));
  listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_) return Error::FromErrno(errno, "socket");
  // The file is born with its mode, so that nobody can come before it has it. There is no other thread.
  const mode_t before = ::umask(0177);
  const int bound =
      ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int why = errno;
  ::umask(before);
  if (bound != 0) return Error::FromErrno(why, fmt::format("make the socket {}", options_.path));
  if (::lstat(address.sun_path, &made_) != 0 || ::listen(listener_.get(), kBacklog) != 0)
    return Error::FromErrno(errno, options_.path);
  return Ok();
}

SocketServer::~SocketServer() {
  struct stat found{};
  if (made_.st_ino == 0 || ::lstat(options_.path.c_str(), &found) != 0) return;
  if (found.st_ino == made_.st_ino && found.st_dev == made_.st_dev)
    (void)::unlink(options_.path.c_str());
}

void SocketServer::AddTo(std::vector<pollfd>& fds) const {
  fds.push_back({clients_.size() < kMaxClients ? listener_.get() : -1, POLLIN, 0});
  for (const Client& client : clients_) client.peer.AddTo(fds);
}

std::optional<Instant> SocketServer::Deadline() const {
  std::optional<Instant> first;
  for (const Client& client : clients_) {
    const auto next = client.peer.Deadline();
    if (next && (!first || *next < *first)) first = next;
  }
  return first;
}

void SocketServer::Accept() {
  while (clients_.size() < kMaxClients) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    if (!IsPeerOurUser(socket.get())) continue;
    clients_.emplace_back(std::move(socket), service_, options_, log_);
  }
}

// A client that says no more still gets its answers; one that has no token gets only that.
bool SocketServer::IsOver(const Client& client) {
  if (client.peer.gone()) return true;
  const bool says_no_more = client.peer.is_refused() || client.peer.ended();
  return says_no_more && !client.peer.has_unsent() && !client.peer.has_open_requests();
}

void SocketServer::Work() {
  Accept();
  for (Client& client : clients_) client.peer.Work();
  clients_.remove_if(IsOver);
}

bool SocketServer::has_unsent() const {
  return std::ranges::any_of(clients_,
                             [](const Client& client) { return client.peer.has_unsent(); });
}

void SocketServer::Flush() {
  for (Client& client : clients_) client.peer.Flush();
}

}  // namespace sandglass::api::mcp
