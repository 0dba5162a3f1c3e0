// LineServer: what the interfaces that talk in lines share: requests on one descriptor, what is answered and told on another, all in
// the one thread that the session has too. What a line means is the business of the protocols (stdio/server.h, mcp/server.h).
//
// What a client that does not read can cause is bounded: while more than kAnswerQueue bytes wait to be read, no further request is
// taken; while more than kOutputQueue do, a command's output is left with the command, which waits as it would for any pipe. If nothing
// was read for the stall timeout, output is dropped and counted instead, so that the world goes on; the next event says how much.
//
// The end of input lets a running command come to its end, and then ends the session; a client that is gone, so that nobody reads
// either, and SIGTERM, SIGINT and SIGHUP end the command first.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/host.h"
#include "api/limits.h"
#include "base/clock.h"
#include "base/fd.h"
#include "control/line_reader.h"
#include "session/loop_guest.h"

namespace sandglass::api {

inline constexpr size_t kOutputQueue = size_t{256} << 10;
inline constexpr size_t kAnswerQueue = size_t{1} << 20;
inline constexpr std::chrono::milliseconds kStallTimeout{30'000};

struct ServerOptions {
  int in = 0, out = 1;
  HostOptions host;
  std::chrono::milliseconds stall_timeout = kStallTimeout;
};

class LineServer : public Outlet, public session::LoopGuest {
 public:
  ~LineServer() override;
  LineServer(const LineServer&) = delete;
  LineServer& operator=(const LineServer&) = delete;

  // Until there is nothing left to do.
  Status Serve();

  size_t OutputRoom() const override;
  // Who ends does not wait either.
  bool stalled() const override { return stalled_ || ending_; }

  void AddTo(std::vector<pollfd>& fds) const override;
  std::optional<Instant> Deadline() const override;
  void Work() override;
  bool wants_out() const override;
  void OnSafeguard(const session::SafeguardAsked& asked) override { host_.TellSafeguard(asked); }
  void OnSafeguardSettled(const session::SafeguardKey& key, undo::Decision decision) override {
    host_.SettleSafeguard(key, decision);
  }

 protected:
  explicit LineServer(ServerOptions options);
  // Takes SIGTERM, SIGINT, SIGHUP and SIGPIPE over for as long as it lives. There is no other thread.
  Status TakeSignalsOver();

  // One line of the client's, or why it could not be read.
  virtual void TakeLine(const Result<std::string_view>& line) = 0;
  // Requests that came and wait for a deed before they can be taken; they go before further lines. TakeBacklog takes one.
  virtual bool has_backlog() const { return false; }
  virtual void TakeBacklog() {}

  // A line with its newline.
  void Send(std::string_view line);
  Host& host() { return host_; }
  const Logger& log() const { return options_.host.log; }
  Instant Now() const { return clock_.Now(); }

 private:
  bool finished() const;
  bool takes_requests() const;
  void WaitAlone();
  void TakeSignals();
  void ReadInput();
  void TakeLines();
  void NoticeEnds();
  void WriteOutput();
  void FlushForAWhile();

  const ServerOptions options_;
  SteadyClock clock_;
  Fd signals_;
  sigset_t mask_before_{};
  control::LineReader lines_{kMaxLineBytes};
  std::string unread_;  // came, and is not cut into lines yet
  std::string unsent_;
  size_t sent_ = 0;      // of the front of it
  Instant last_read_{};  // by the client
  bool stalled_ = false;
  bool input_ended_ = false;
  bool ending_ = false;  // a signal came, or nobody reads
  bool client_gone_ = false;
  Host host_;
};

}  // namespace sandglass::api
