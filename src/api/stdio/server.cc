#include "api/stdio/server.h"

#include <string>
#include <utility>

#include "api/stdio/messages.h"

namespace sandglass::api::stdio {

Server::Server(ServerLoop& loop, const ServerOptions& options)
    : loop_(loop), channel_({options.in, options.out}, options.stall_timeout, loop.log()) {}

LineChannel::Takes Server::takes() const {
  return loop_.takes_requests() ? LineChannel::Takes::kYes : LineChannel::Takes::kNo;
}

Stay Server::stay() const {
  if (channel_.gone()) return Stay::kNo;
  return channel_.ended() ? Stay::kUntilDone : Stay::kOn;
}

void Server::Work() {
  channel_.Write();
  if (channel_.gone()) return;
  if (loop_.takes_requests()) channel_.Read();
  channel_.TakeLines([this] { return loop_.takes_requests(); },
                     [this](const Result<std::string_view>& line) { TakeLine(line); });
  channel_.Write();
}

void Server::TakeLine(const Result<std::string_view>& line) {
  if (!line.ok())
    return channel_.Send(EncodeRefusal({std::nullopt,
                                        {ApiCode::kTooLong, line.error().message(),
                                         Json::Object({{"max_bytes", kMaxLineBytes}})}}));
  auto parsed = ParseRequest(*line);
  if (const auto* refused = std::get_if<Refused>(&parsed)) {
    loop_.log().Warn("malformed request", {{"code", NameOf(refused->error.code)}});
    return channel_.Send(EncodeRefusal(*refused));
  }
  auto& request = std::get<Request>(parsed);
  const std::string id = request.request_id;
  loop_.host().Take(*request.operation,
                    {id, std::move(request.payload), [this, id](const Answer& answer) {
                       channel_.Send(EncodeResponse(id, answer));
                     }});
}

void Server::Tell(std::string_view event, const Json& payload) {
  channel_.Send(EncodeEvent(event, payload));
}

}  // namespace sandglass::api::stdio
