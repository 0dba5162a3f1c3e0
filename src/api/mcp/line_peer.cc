#include "api/mcp/line_peer.h"

#include <utility>

#include "api/mcp/http_rules.h"

namespace sandglass::api::mcp {

class LinePeer::LineExchange final : public Exchange {
 public:
  explicit LineExchange(std::shared_ptr<LineChannel> channel) : channel_(std::move(channel)) {}
  void Send(const Json& message) override { channel_->Send(WriteJson(message) + '\n'); }
  void Answer(const std::optional<Json>& message) override {
    if (message) Send(*message);
  }
  bool has_room() const override { return channel_->OutputRoom() > 0; }

 private:
  const std::shared_ptr<LineChannel> channel_;
};

LinePeer::LinePeer(Service& service, Options options, const Logger& log)
    : service_(service),
      token_(std::move(options.token)),
      channel_(std::make_shared<LineChannel>(options.ends, options.stall_timeout, log)),
      is_known_(token_.empty()),
      conversation_(service, log) {}

LinePeer::~LinePeer() = default;

LineChannel::Takes LinePeer::takes() const {
  return service_.takes_requests() && !is_refused_ ? LineChannel::Takes::kYes
                                                   : LineChannel::Takes::kNo;
}

std::optional<Instant> LinePeer::Deadline() const {
  if (conversation_.has_backlog() && service_.takes_requests()) return SteadyClock().Now();
  return channel_->Deadline(takes());
}

bool LinePeer::ended() const {
  return channel_->ended() && !conversation_.has_backlog() && service_.takes_requests();
}

void LinePeer::Work() {
  channel_->Write();
  if (channel_->gone()) return;
  if (takes() == LineChannel::Takes::kYes) channel_->Read();
  const auto may_take = [this] {
    while (conversation_.has_backlog() && service_.takes_requests()) conversation_.TakeBacklog();
    return takes() == LineChannel::Takes::kYes;
  };
  channel_->TakeLines(may_take, [this](const Result<std::string_view>& line) { TakeLine(line); });
  channel_->Write();
}

void LinePeer::TakeLine(const Result<std::string_view>& line) {
  const auto exchange = std::make_shared<LineExchange>(channel_);
  if (!line.ok())
    return exchange->Answer(ErrorMessage({Json(),
                                          {ApiCode::kTooLong, line.error().message(),
                                           Json::Object({{"max_bytes", kMaxLineBytes}})}}));
  Line parsed = ParseLine(*line);
  if (IsKnown(parsed)) return conversation_.Take(std::move(parsed), exchange);
  is_refused_ = true;
  const auto* message = std::get_if<Message>(&parsed.items.front());
  exchange->Answer(
      ErrorMessage({message != nullptr ? message->id : Json(),
                    {ApiCode::kDenied, "the first message has to carry the token in its _meta"}}));
}

bool LinePeer::IsKnown(const Line& line) {
  if (is_known_) return true;
  const auto* message = std::get_if<Message>(&line.items.front());
  const Json* meta = message != nullptr ? message->params.Find("_meta") : nullptr;
  const Json* given = meta != nullptr ? meta->Find(kTokenKey) : nullptr;
  is_known_ =
      given != nullptr && given->AsString() != nullptr && IsSameSecret(*given->AsString(), token_);
  return is_known_;
}

}  // namespace sandglass::api::mcp
