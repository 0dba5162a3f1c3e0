#include "api/mcp/http_stream.h"

#include <fmt/format.h>

#include <utility>

#include "api/participant.h"

namespace sandglass::api::mcp {
namespace {

// Of one stream, for a client that comes back; the newest events count, and the last one whatever its size. All streams of all sessions
// together keep 128 MiB of them, and their answers.
constexpr size_t kMaxKeptBytes = size_t{256} << 10;
// When a client that lost its connection should come back.
constexpr int kRetryMs = 1'000;

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kEvents = "text/event-stream";

int StatusFor(const Json& message) {
  const Json* error = message.Find("error");
  if (error == nullptr) return 200;
  switch (error->Find("code")->AsInt().value_or(0)) {
    case kMethodNotFound:
      return 404;
    case -32700:
    case -32600:
    case kHeaderMismatch:
    case kUnsupportedVersion:
      return 400;
    default:
      return 200;
  }
}

}  // namespace

HttpStream::HttpStream(http::Connection& connection, Options options)
    : connection_(&connection), options_(std::move(options)) {}

http::Headers HttpStream::StreamHeaders() const {
  http::Headers headers = options_.headers;
  headers.emplace_back("Content-Type", kEvents);
  headers.emplace_back("Cache-Control", "no-cache, no-transform");
  return headers;
}

void HttpStream::Open() {
  if (is_open_ || is_answered_ || !options_.accepts_events) return;
  is_open_ = true;
  if (connection_ != nullptr) connection_->BeginStream(200, StreamHeaders());
  if (options_.primes) AddEvent("");
}

void HttpStream::Send(const Json& message) {
  if (is_answered_ || !options_.accepts_events) return;
  Open();
  AddEvent(WriteJson(message));
}

void HttpStream::Answer(const std::optional<Json>& message) {
  CHECK(!is_answered_);
  if (!is_open_) {
    is_answered_ = true;
    return Respond(message);
  }
  if (message) AddEvent(WriteJson(*message));
  is_answered_ = true;
  if (auto* connection = std::exchange(connection_, nullptr)) connection->EndStream();
}

void HttpStream::Respond(const std::optional<Json>& message) {
  auto* connection = std::exchange(connection_, nullptr);
  if (connection == nullptr) return;
  http::Headers headers = options_.headers;
  if (!message) return connection->Respond(202, std::move(headers), "");
  headers.emplace_back("Content-Type", kJson);
  connection->Respond(options_.maps_errors ? StatusFor(*message) : 200, std::move(headers),
                      WriteJson(*message));
}

bool HttpStream::has_room() const {
  if (!options_.accepts_events) return false;
  return connection_ != nullptr ? connection_->unsent_bytes() < kOutputQueue
                                : kept_bytes_ < kOutputQueue;
}

void HttpStream::KeepAlive() {
  if (is_open_ && !is_answered_ && connection_ != nullptr) connection_->Stream(":\n\n");
}

void HttpStream::AddEvent(std::string data) {
  Event event{next_event_++, std::move(data)};
  if (connection_ != nullptr) Write(event);
  if (options_.number == 0) return;
  kept_bytes_ += event.data.size();
  events_.push_back(std::move(event));
  while (kept_bytes_ > kMaxKeptBytes && events_.size() > 1) {
    kept_bytes_ -= events_.front().data.size();
    events_.pop_front();
  }
}

void HttpStream::Write(const Event& event) {
  std::string text;
  if (options_.number != 0)
    text += fmt::format("id: {}\n", ToText({options_.number, event.number}));
  if (event.data.empty()) text += fmt::format("retry: {}\n", kRetryMs);
  text += fmt::format("data: {}\n\n", event.data);
  connection_->Stream(text);
}

void HttpStream::Resume(http::Connection& connection, uint64_t after) {
  connection_ = &connection;
  connection.BeginStream(200, StreamHeaders());
  for (const Event& event : events_) {
    if (event.number > after) Write(event);
  }
  if (!is_answered_) return;
  connection_ = nullptr;
  connection.EndStream();
}

}  // namespace sandglass::api::mcp
