// HttpServer: `sandglass mcp --http`: the protocol's "streamable HTTP" for clients on this machine. It listens on the loopback device
// only, and wants a token from everybody. One thread, the loop's.
//
// A client posts its messages; each is answered by JSON or by a stream of events (http_stream.h). `initialize` opens a session, which
// has a conversation of its own; a request that names its version has one all to itself. All share the service. What clients can cause is bounded: connections, sessions, requests
// under way and their sizes (limits in http_server.cc and http/connection.h); beyond them a client is refused or closed, never others.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/http/connection.h"
#include "api/mcp/conversation.h"
#include "api/mcp/http_stream.h"
#include "api/participant.h"
#include "base/fd.h"

namespace sandglass::api::mcp {

// Whoever reaches the port may talk to the server.
struct ServeWithoutToken {
  explicit ServeWithoutToken(std::string_view /*reason*/) {}
};

struct HttpOptions {
  uint16_t port = 0;  // 0: any that is free
  std::string token;
  std::optional<ServeWithoutToken> open = {};
  http::ConnectionLimits limits = {};
};

class HttpServer final : public Participant {
 public:
  // The service outlives it. kConflict: the port is taken.
  static Result<std::unique_ptr<HttpServer>> Listen(Service& service, HttpOptions options,
                                                    Logger log);
  ~HttpServer() override;

  uint16_t port() const { return port_; }
  // Where clients post.
  std::string url() const;

  void AddTo(std::vector<pollfd>& fds) const override;
  std::optional<Instant> Deadline() const override;
  void Work() override;
  bool has_unsent() const override;
  void Flush() override;

 private:
  struct Client {
    Client(Fd socket, const http::ConnectionLimits& limits, const Clock& clock)
        : connection(std::move(socket), limits, clock) {}
    http::Connection connection;
    std::shared_ptr<HttpStream> stream;  // of the request that it waits for; also with who answers
    std::unique_ptr<Conversation> conversation;  // of one that has no session
    Instant last_alive{};
  };
  struct Session {
    Session(Service& service, const Logger& log) : conversation(service, log) {}
    // Null: it is not kept, or cannot be resumed.
    std::shared_ptr<HttpStream> Kept(uint64_t number) const;
    std::map<uint64_t, std::shared_ptr<HttpStream>> streams;  // of requests, that can be resumed
    uint64_t next_stream = 1;
    std::shared_ptr<HttpStream> listening;  // the one of GET; it is resumed like the others
    Instant last_used{};
    Conversation conversation;
  };
  // Why a request is not even looked at.
  struct Refusal {
    int status;
    ApiError error;
    http::Headers headers = {};
  };
  using Sessions = std::map<std::string, std::unique_ptr<Session>, std::less<>>;

  HttpServer(Service& service, HttpOptions options, Logger log);
  Status Bind();
  void Accept();
  void Serve(Client& client);
  void TakeBacklogs();
  static void Detach(Client& client);
  static void Forget(Client& client);
  void DropClosed();
  void KeepAlive();
  void ForgetOldSessions();

  void Handle(Client& client, const http::Request& request);
  std::optional<Refusal> FindObjection(const http::Request& request) const;
  void Refuse(Client& client, const Refusal& refusal);
  bool RefusesVersion(Client& client, const http::Request& request);
  void Post(Client& client, const http::Request& request);
  void PostStateless(Client& client, const http::Request& request, const Message& message,
                     Line line);
  void PostInSession(Client& client, const http::Request& request, Line line);
  void BeginSession(Client& client, const http::Request& request, Line line);
  void Get(Client& client, const http::Request& request);
  void Delete(Client& client, const http::Request& request);
  // Refuses and returns null if it names none, or one that there is not.
  Session* SessionOf(Client& client, const http::Request& request);
  void TakeIn(Session& session, Line line, const std::shared_ptr<HttpStream>& stream);
  std::shared_ptr<HttpStream> StreamIn(Session& session, Client& client,
                                       const http::Request& request, http::Headers headers);

  Service& service_;
  const HttpOptions options_;
  const Logger log_;
  SteadyClock clock_;
  Fd listener_;
  uint16_t port_ = 0;
  Sessions sessions_;
  std::list<Client> clients_;
};

}  // namespace sandglass::api::mcp
