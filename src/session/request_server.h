// RequestServer: where a running session can be reached by other programs of the same user: a socket in the store of each project.
//
// One connection brings one request and gets one answer. Who may connect is said twice: the store and the socket are the user's own,
// and the peer must have the session's user id, or be root. Nothing here blocks: call Work() whenever a descriptor of AddTo() is ready.
// A session that dies leaves its socket behind; nobody answers there, and the next session removes it. One thread.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "control/line_reader.h"
#include "session/held_requests.h"
#include "session/rewind_request.h"

namespace sandglass::session {

inline constexpr char kSocketName[] = "session";

class RequestServer {
 public:
  // The caller holds the locks of these stores.
  static Result<std::unique_ptr<RequestServer>> Open(const std::vector<std::string>& stores,
                                                     const Clock& clock);
  RequestServer(const RequestServer&) = delete;
  RequestServer& operator=(const RequestServer&) = delete;
  // Whoever still waits is told that the session has ended.
  ~RequestServer();

  using ConnectionId = uint64_t;
  struct Asked {
    ConnectionId connection;
    SessionRequest request;
  };
  void AddTo(std::vector<pollfd>& fds) const;
  // When to call Work() even if nothing is ready.
  std::optional<Instant> Deadline() const;
  // Takes what came, sends what can be sent. What is no request is refused here.
  std::vector<Asked> Work();
  // The line that answers. No connection of that id: whoever asked has gone, and nothing happens.
  void Answer(ConnectionId connection, const std::string& line);
  // At once, before the answer to the same connection; lost if it does not take that now.
  void Tell(ConnectionId connection, const undo::RewindProgress& progress);
  // Until all answers are sent, or nobody takes them.
  void Flush();

 private:
  explicit RequestServer(const Clock& clock) : clock_(clock) {}
  struct Door {
    Fd store, listener;
  };
  struct Connection {
    Fd socket;
    Instant opened;
    control::LineReader lines{kMaxRequestBytes};
    bool asked = false;
    std::string unsent;
  };
  Status OpenDoor(const std::string& store);
  void Accept(const Door& door);
  // True: it is over.
  bool Read(ConnectionId id, Connection& connection, std::vector<Asked>& asked);
  bool Write(Connection& connection);

  const Clock& clock_;
  std::vector<Door> doors_;
  std::map<ConnectionId, Connection> connections_;
  ConnectionId next_ = 1;
};

// Also true where that cannot be told.
bool SessionListens(const std::string& store);

// Has the session that owns this store do it. Blocks. kNotFound: nobody listens there. kCancelled: the session ended before it
// answered. kDenied: it belongs to somebody else.
Result<RewindAnswer> AskSession(const std::string& store, const RewindRequest& request,
                                const TellProgress& tell = {});
// The same of what is held. kBusy: asked for a list, the session did not answer in time, because it is at work.
Result<HeldAnswer> AskSession(const std::string& store, const HeldRequest& request);

}  // namespace sandglass::session
