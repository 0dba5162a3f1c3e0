// Server: `sandglass serve --stdio`: the requests of stdio/messages.h, and their responses and events.
#pragma once

#include <memory>
#include <string_view>

#include "api/line_server.h"

namespace sandglass::api::stdio {

class Server final : public LineServer {
 public:
  static Result<std::unique_ptr<Server>> Open(ServerOptions options);

  void Tell(std::string_view event, Json payload) override;

 private:
  explicit Server(ServerOptions options);
  void TakeLine(const Result<std::string_view>& line) override;
};

}  // namespace sandglass::api::stdio
