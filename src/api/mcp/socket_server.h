// SocketServer: `sandglass mcp --socket`: clients that talk in lines, by a Unix socket of which only its owner can make use. One thread,
// the loop's.
//
// A socket that a program left behind is replaced, one that somebody serves is not, and ours is gone when the server is. A client
// that leaves cancels what it asked for; the others do not notice.
#pragma once

#include <sys/stat.h>

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/mcp/line_peer.h"
#include "api/participant.h"
#include "base/fd.h"

namespace sandglass::api::mcp {

struct SocketOptions {
  std::string path;
  std::string token = "";  // that clients have to have; "": none
  std::chrono::milliseconds stall_timeout = kStallTimeout;
};

class SocketServer final : public Participant {
 public:
  // The service outlives it. kConflict: somebody serves that socket. kExists: there is something else of that name.
  static Result<std::unique_ptr<SocketServer>> Listen(Service& service, SocketOptions options,
                                                      Logger log);
  ~SocketServer() override;
  SocketServer(const SocketServer&) = delete;
  SocketServer& operator=(const SocketServer&) = delete;

  void AddTo(std::vector<pollfd>& fds) const override;
  std::optional<Instant> Deadline() const override;
  void Work() override;
  bool has_unsent() const override;
  void Flush() override;

 private:
  struct Client {
    Client(Fd socket, Service& service, const SocketOptions& options, const Logger& log);
    Fd socket;
    LinePeer peer;
  };

  SocketServer(Service& service, SocketOptions options, Logger log);
  Status Bind();
  void Accept();
  static bool IsOver(const Client& client);

  Service& service_;
  const SocketOptions options_;
  const Logger log_;
  Fd listener_;
  struct stat made_{};  // the socket's file, if it is ours
  std::list<Client> clients_;
};

}  // namespace sandglass::api::mcp
