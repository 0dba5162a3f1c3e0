// LinePeer: a client that sends one message per line, with its conversation. What carries the lines is its owner's business. One thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/line_channel.h"
#include "api/mcp/conversation.h"

namespace sandglass::api::mcp {

// In the `_meta` of the first message of a client that has to have a token.
inline constexpr std::string_view kTokenKey = "sandglass/token";

class LinePeer {
 public:
  struct Options {
    LineChannel::Ends ends;
    std::chrono::milliseconds stall_timeout = kStallTimeout;
    std::string token = "";  // that the client has to have; "": none
  };
  // The service outlives it; the ends do, too.
  LinePeer(Service& service, Options options, const Logger& log);
  ~LinePeer();

  void AddTo(std::vector<pollfd>& fds) const { channel_->AddTo(fds, takes()); }
  std::optional<Instant> Deadline() const;
  void Work();
  void Flush() { channel_->Write(); }

  // Nobody reads what is sent.
  bool gone() const { return channel_->gone(); }
  // Everything that the client said was taken, and it says no more.
  bool ended() const;
  bool has_unsent() const { return channel_->unsent_bytes() > 0; }
  // It had no token, and was told so.
  bool is_refused() const { return is_refused_; }
  bool has_open_requests() const { return conversation_.has_open_requests(); }

 private:
  class LineExchange;
  LineChannel::Takes takes() const;
  void TakeLine(const Result<std::string_view>& line);
  bool IsKnown(const Line& line);

  Service& service_;
  const std::string token_;
  const std::shared_ptr<LineChannel> channel_;  // also with the exchanges that are open
  bool is_known_;
  bool is_refused_ = false;
  Conversation conversation_;
};

}  // namespace sandglass::api::mcp
