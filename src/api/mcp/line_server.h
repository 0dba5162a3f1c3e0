// LineServer: `sandglass mcp` on the standard streams: one client, one message per line.
//
// The end of input lets what is under way come to its end, and then ends the program; if nobody reads either, a command is ended first.
#pragma once

#include <optional>
#include <vector>

#include "api/mcp/line_peer.h"
#include "api/participant.h"

namespace sandglass::api::mcp {

class LineServer final : public Participant {
 public:
  LineServer(Service& service, LinePeer::Options options, const Logger& log)
      : peer_(service, std::move(options), log) {}

  void AddTo(std::vector<pollfd>& fds) const override { peer_.AddTo(fds); }
  std::optional<Instant> Deadline() const override { return peer_.Deadline(); }
  void Work() override { peer_.Work(); }
  Stay stay() const override {
    if (peer_.gone()) return Stay::kNo;
    return peer_.ended() ? Stay::kUntilDone : Stay::kOn;
  }
  bool has_unsent() const override { return peer_.has_unsent(); }
  void Flush() override { peer_.Flush(); }

 private:
  LinePeer peer_;
};

}  // namespace sandglass::api::mcp
