#include "api/stdio/server.h"

#include <string>
#include <utility>

#include "api/stdio/messages.h"

namespace sandglass::api::stdio {

Server::Server(ServerOptions options) : LineServer(std::move(options)) {}

Result<std::unique_ptr<Server>> Server::Open(ServerOptions options) {
  std::unique_ptr<Server> server(new Server(std::move(options)));
  TRY(server->TakeSignalsOver());
  return server;
}

void Server::TakeLine(const Result<std::string_view>& line) {
  if (!line.ok())
    return Send(EncodeRefusal({std::nullopt,
                               {ApiCode::kTooLong, line.error().message(),
                                Json::Object({{"max_bytes", kMaxLineBytes}})}}));
  auto parsed = ParseRequest(*line);
  if (const auto* refused = std::get_if<Refused>(&parsed)) {
    log().Warn("malformed request", {{"code", NameOf(refused->error.code)}});
    return Send(EncodeRefusal(*refused));
  }
  auto& request = std::get<Request>(parsed);
  const std::string id = request.request_id;
  host().Take(*request.operation, {id, std::move(request.payload), [this, id](Answer answer) {
                                     Send(EncodeResponse(id, answer));
                                   }});
}

void Server::Tell(std::string_view event, Json payload) { Send(EncodeEvent(event, payload)); }

}  // namespace sandglass::api::stdio
