// Connection: one client of an HTTP server: a socket, requests that come one after the other, and what is answered, whole or piece by
// piece. It waits for nothing. What a client can cause is bounded: the length of a request, the time that it may take to come, the bytes
// that wait to be read, and how long they may wait; a connection that goes beyond is closed. One thread.
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/message.h"
#include "base/clock.h"
#include "base/fd.h"

namespace sandglass::api::http {

struct ConnectionLimits {
  Limits request;
  std::chrono::milliseconds request_time{30'000};  // from its first byte to its last
  std::chrono::milliseconds idle_time{120'000};    // between two requests
  std::chrono::milliseconds stall_time{30'000};    // without anything being read
  size_t unsent_bytes = size_t{8} << 20;
};

class Connection {
 public:
  // A connected socket that does not block. The clock outlives it.
  Connection(Fd socket, const ConnectionLimits& limits, const Clock& clock);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  pollfd Poll() const;
  std::optional<Instant> Deadline() const;
  // Reads and writes what is possible, and notices if the client is gone or too slow.
  void Work();

  // The request that is to be answered next, once; nullopt: none is complete, or the last one is not answered yet. What cannot be
  // understood is answered here.
  std::optional<Request> TakeRequest();
  // One is complete, or may be.
  bool has_request() const;

  // --- The answer to the request that was taken
  void Respond(int status, Headers headers, std::string_view body);
  // In pieces; the client sees each at once.
  void BeginStream(int status, Headers headers);
  void Stream(std::string_view bytes);
  void EndStream();

  bool is_closed() const { return !socket_; }
  size_t unsent_bytes() const { return unsent_.size() - sent_; }
  // Closes it once everything is sent.
  void CloseSoon() { closes_ = true; }

 private:
  enum class State : uint8_t { kIdle, kAnswering, kStreaming };
  void Read();
  void Write();
  void Send(std::string_view bytes);
  void AddConnectionHeader(Headers& headers);
  void FinishAnswer();
  void EndAfterAnswer();
  void Close();

  Fd socket_;
  const ConnectionLimits limits_;
  const Clock& clock_;
  Reader reader_;
  State state_ = State::kIdle;
  std::string unread_;
  bool looked_ = true;  // unread_ has no complete request
  std::string unsent_;
  size_t sent_ = 0;
  Instant request_begun_, idle_since_, last_sent_;
  bool is_1_1_ = true;
  bool closes_ = false;
  bool input_ended_ = false;
  bool drains_ =
      false;  // what comes is thrown away, so that a client which still sends can read why it was refused
};

}  // namespace sandglass::api::http
