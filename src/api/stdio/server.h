// Server: `sandglass serve --stdio`: the requests of stdio/messages.h, and their responses and events.
//
// The end of input lets a running command come to its end, and then ends the program; if nobody reads either, the command is ended first.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "api/line_channel.h"
#include "api/server_loop.h"

namespace sandglass::api::stdio {

class Server final : public Participant {
 public:
  // On the ends that the options name. The loop outlives it.
  Server(ServerLoop& loop, const ServerOptions& options);

  void AddTo(std::vector<pollfd>& fds) const override { channel_.AddTo(fds, takes()); }
  std::optional<Instant> Deadline() const override { return channel_.Deadline(takes()); }
  void Work() override;
  Stay stay() const override;
  bool has_unsent() const override { return channel_.unsent_bytes() > 0; }
  void Flush() override { channel_.Write(); }
  void Tell(std::string_view event, const Json& payload) override;
  size_t OutputRoom() const override { return channel_.OutputRoom(); }
  bool stalled() const override { return channel_.stalled(); }

 private:
  LineChannel::Takes takes() const;
  void TakeLine(const Result<std::string_view>& line);

  ServerLoop& loop_;
  LineChannel channel_;
};

}  // namespace sandglass::api::stdio
