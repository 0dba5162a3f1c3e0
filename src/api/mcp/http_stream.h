// HttpStream: the answer to one POST, or what a client listens to by a GET. An answer that is there at once is a JSON text; whatever
// takes longer, or says something before, is a stream of events. A stream that can be resumed keeps its events, so that a client that
// lost its connection gets what it missed when it comes back. One thread.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "api/http/connection.h"
#include "api/mcp/http_rules.h"
#include "api/mcp/request.h"

namespace sandglass::api::mcp {

class HttpStream final : public Exchange {
 public:
  struct Options {
    uint64_t number = 0;         // of the session; 0: it cannot be resumed
    bool primes = false;         // with an empty event, from which it can be resumed
    bool accepts_events = true;  // else only the answer is sent
    bool maps_errors = false;    // of the protocol to those of HTTP
    http::Headers headers = {};
  };
  HttpStream(http::Connection& connection, Options options);

  void Send(const Json& message) override;
  void Answer(const std::optional<Json>& message) override;
  bool has_room() const override;
  bool can_send() const override { return options_.accepts_events; }

  // Begins the stream of events, if nothing was said yet and the client takes one.
  void Open();
  // A client that was not answered for long is shown that the connection lives.
  void KeepAlive();
  // The connection is gone. What comes is kept for a client that resumes.
  void Detach() { connection_ = nullptr; }
  // Everything behind that event, and what comes. The stream has no other connection.
  void Resume(http::Connection& connection, uint64_t after);

  bool is_answered() const { return is_answered_; }
  bool is_attached() const { return connection_ != nullptr; }
  bool can_be_resumed() const { return options_.number != 0 && is_open_; }
  uint64_t number() const { return options_.number; }

 private:
  struct Event {
    uint64_t number;
    std::string data;
  };
  void AddEvent(std::string data);
  void Write(const Event& event);
  void Respond(const std::optional<Json>& message);
  http::Headers StreamHeaders() const;

  http::Connection* connection_;  // null: it was lost, or has its answer
  const Options options_;
  std::deque<Event> events_;  // that can be asked for again
  size_t kept_bytes_ = 0;
  uint64_t next_event_ = 0;
  bool is_open_ = false;
  bool is_answered_ = false;
};

}  // namespace sandglass::api::mcp
