// ServerLoop: the one thread of a program that others drive: the host with its session, and the participants through which clients
// reach it (stdio/server.h, mcp/). What a client says and hears is the participants' business.
//
// It ends when a participant has no reason to go on, and on SIGTERM, SIGINT and SIGHUP, which end a running command first.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "api/host.h"
#include "api/participant.h"
#include "base/clock.h"
#include "base/fd.h"
#include "session/loop_guest.h"

namespace sandglass::api {

struct ServerOptions {
  int in = 0, out = 1;
  HostOptions host;
  std::chrono::milliseconds stall_timeout = kStallTimeout;
};

class ServerLoop final : public Outlet, public session::LoopGuest {
 public:
  // Takes SIGTERM, SIGINT, SIGHUP and SIGPIPE over for as long as it lives. There is no other thread.
  static Result<std::unique_ptr<ServerLoop>> Open(HostOptions options);
  ~ServerLoop() override;
  ServerLoop(const ServerLoop&) = delete;
  ServerLoop& operator=(const ServerLoop&) = delete;

  // It outlives Serve(). They work in the order in which they were added.
  void Add(Participant& participant) { participants_.push_back(&participant); }
  // Until there is nothing left to do.
  Status Serve();

  Host& host() { return host_; }
  const Logger& log() const { return log_; }
  // Whether a request can be handed to the host now; otherwise it waits with whoever has it.
  bool takes_requests() const { return !ending_ && !host_.has_deed(); }

  void Tell(std::string_view event, Json payload) override;
  size_t OutputRoom() const override;
  // Who ends does not wait either.
  bool stalled() const override;

  void AddTo(std::vector<pollfd>& fds) const override;
  std::optional<Instant> Deadline() const override;
  void Work() override;
  bool wants_out() const override;
  void OnSafeguard(const session::HeldOperation& held) override { host_.TellSafeguard(held); }
  void OnSafeguardSettled(const std::string& id, undo::Decision decision) override {
    host_.SettleSafeguard(id, decision);
  }

 private:
  explicit ServerLoop(HostOptions options);
  Status TakeSignalsOver();
  bool finished() const;
  void WaitAlone();
  void TakeSignals();
  void End();
  void FlushForAWhile();

  const Logger log_;
  SteadyClock clock_;
  Fd signals_;
  sigset_t mask_before_{};
  std::vector<Participant*> participants_;
  bool ending_ = false;  // a signal came, or nobody reads
  Host host_;
};

}  // namespace sandglass::api
