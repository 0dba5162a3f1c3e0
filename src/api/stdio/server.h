// Server: `sandglass serve --stdio`: requests on one descriptor, responses and events on another, all in the one thread that the
// session has too.
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
#include <vector>

#include "api/host.h"
#include "api/limits.h"
#include "base/clock.h"
#include "base/fd.h"
#include "control/line_reader.h"
#include "session/loop_guest.h"

namespace sandglass::api::stdio {

inline constexpr size_t kOutputQueue = size_t{256} << 10;
inline constexpr size_t kAnswerQueue = size_t{1} << 20;
inline constexpr std::chrono::milliseconds kStallTimeout{30'000};

struct ServerOptions {
  int in = 0, out = 1;
  HostOptions host;
  std::chrono::milliseconds stall_timeout = kStallTimeout;
};

class Server final : public Outlet, public session::LoopGuest {
 public:
  // Takes SIGTERM, SIGINT, SIGHUP and SIGPIPE over for as long as it lives. There is no other thread.
  static Result<std::unique_ptr<Server>> Open(ServerOptions options);
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Until there is nothing left to do.
  Status Serve();

  void Tell(std::string_view event, Json payload) override;
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

 private:
  explicit Server(ServerOptions options);
  bool finished() const;
  bool takes_requests() const;
  void WaitAlone();
  void TakeSignals();
  void ReadInput();
  void TakeLines();
  void TakeLine(const Result<std::string_view>& line);
  void NoticeEnds();
  void Send(std::string line);
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

}  // namespace sandglass::api::stdio
