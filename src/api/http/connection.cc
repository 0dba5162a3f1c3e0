#include "api/http/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sandglass::api::http {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
// In one turn, so that a client which sends without an end does not keep the others waiting.
constexpr int kMaxReads = 16;
constexpr size_t kCompactBytes = size_t{64} << 10;
// How long a client that was refused may go on sending.
constexpr std::chrono::milliseconds kDrainTime{2'000};

}  // namespace

Connection::Connection(Fd socket, const ConnectionLimits& limits, const Clock& clock)
    : socket_(std::move(socket)),
      limits_(limits),
      clock_(clock),
      reader_(limits.request),
      request_begun_(clock.Now()),
      idle_since_(request_begun_),
      last_sent_(request_begun_) {}

pollfd Connection::Poll() const {
  // Also while it is answered, because a client that leaves shows it there. Not if what it sent is enough.
  const bool reads = !input_ended_ && unread_.size() < kReadBytes;
  const int events = (reads ? POLLIN : 0) | (unsent_bytes() > 0 ? POLLOUT : 0);
  // Where nothing is to be done, not even that it hung up is told: it would be told again and again.
  return {events != 0 ? socket_.get() : -1, static_cast<short>(events), 0};
}

std::optional<Instant> Connection::Deadline() const {
  if (is_closed()) return std::nullopt;
  std::optional<Instant> first;
  const auto add = [&](Instant at) { first = first ? std::min(*first, at) : at; };
  if (drains_) add(idle_since_ + kDrainTime);
  if (unsent_bytes() > 0) add(last_sent_ + limits_.stall_time);
  if (state_ == State::kIdle && reader_.inside_request())
    add(request_begun_ + limits_.request_time);
  else if (state_ == State::kIdle && looked_)
    add(idle_since_ + limits_.idle_time);
  return first;
}

void Connection::Work() {
  if (is_closed()) return;
  Read();
  Write();
  const auto deadline = Deadline();
  if (deadline && clock_.Now() >= *deadline) Close();
}

void Connection::Read() {
  for (int reads = 0; reads < kMaxReads; ++reads) {
    if (is_closed() || input_ended_ || unread_.size() >= kReadBytes) return;
    char buffer[kReadBytes];
    const ssize_t got = ::recv(socket_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got > 0 && drains_) continue;
    if (got > 0) {
      if (unread_.empty() && !reader_.inside_request()) request_begun_ = clock_.Now();
      unread_.append(buffer, static_cast<size_t>(got));
      looked_ = false;
      continue;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // Who sends no more does not wait for an answer either: no client of ours shuts down one direction only.
    input_ended_ = true;
    if (got < 0 || !has_request()) Close();
  }
}

bool Connection::has_request() const { return !is_closed() && state_ == State::kIdle && !looked_; }

std::optional<Request> Connection::TakeRequest() {
  if (!has_request()) return std::nullopt;
  Reader::Outcome outcome = reader_.Next(unread_);
  if (reader_.TakeExpectation()) Send("HTTP/1.1 100 Continue\r\n\r\n");
  if (outcome.bad) {
    state_ = State::kAnswering;
    closes_ = drains_ = true;
    unread_.clear();
    looked_ = true;
    Respond(outcome.bad->status, {{"Content-Type", "text/plain"}}, outcome.bad->reason + "\n");
    return std::nullopt;
  }
  if (!outcome.request) {
    looked_ = true;
    if (input_ended_) Close();
    return std::nullopt;
  }
  state_ = State::kAnswering;
  is_1_1_ = outcome.request->is_1_1;
  looked_ = unread_.empty();
  if (!outcome.request->keeps_alive || (input_ended_ && looked_)) closes_ = true;
  return std::move(outcome.request);
}

void Connection::AddConnectionHeader(Headers& headers) {
  if (closes_) headers.emplace_back("Connection", "close");
}

void Connection::Respond(int status, Headers headers, std::string_view body) {
  AddConnectionHeader(headers);
  Send(Head(status, headers, Framing::kLength, body.size()));
  Send(body);
  FinishAnswer();
}

void Connection::BeginStream(int status, Headers headers) {
  if (!is_1_1_) closes_ = true;
  AddConnectionHeader(headers);
  Send(Head(status, headers, is_1_1_ ? Framing::kChunks : Framing::kClose));
  state_ = State::kStreaming;
}

void Connection::Stream(std::string_view bytes) {
  if (bytes.empty()) return;  // an empty chunk would be the end
  Send(is_1_1_ ? Chunk(bytes) : std::string(bytes));
}

void Connection::EndStream() {
  if (is_1_1_) Send(Chunk(""));
  FinishAnswer();
}

void Connection::FinishAnswer() {
  state_ = State::kIdle;
  idle_since_ = request_begun_ = clock_.Now();
  Write();
}

void Connection::Send(std::string_view bytes) {
  if (is_closed()) return;
  if (unsent_.empty()) last_sent_ = clock_.Now();
  unsent_ += bytes;
  if (unsent_bytes() > limits_.unsent_bytes) Close();
}

void Connection::Write() {
  while (!is_closed() && unsent_bytes() > 0) {
    const ssize_t sent =
        ::send(socket_.get(), unsent_.data() + sent_, unsent_bytes(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (sent <= 0) return Close();
    sent_ += static_cast<size_t>(sent);
    last_sent_ = clock_.Now();
  }
  if (sent_ == unsent_.size() || sent_ > kCompactBytes) {
    unsent_.erase(0, sent_);
    sent_ = 0;
  }
  if (closes_ && state_ == State::kIdle && unsent_.empty()) EndAfterAnswer();
}

void Connection::EndAfterAnswer() {
  if (!drains_ || input_ended_) return Close();
  (void)::shutdown(socket_.get(), SHUT_WR);
}

void Connection::Close() {
  socket_.Reset();
  unread_.clear();
  unsent_.clear();
  sent_ = 0;
}

}  // namespace sandglass::api::http
