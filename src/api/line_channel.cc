#include "api/line_channel.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sandglass::api {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
// Sent bytes at the front of the queue are dropped when so many have gathered.
constexpr size_t kCompactBytes = size_t{64} << 10;

}  // namespace

LineChannel::LineChannel(Ends ends, std::chrono::milliseconds stall_timeout, Logger log)
    : ends_(ends), stall_timeout_(stall_timeout), log_(std::move(log)) {}

void LineChannel::AddTo(std::vector<pollfd>& fds, Takes takes) const {
  const bool reads = takes == Takes::kYes && keeps_up() && !input_ended_ && !gone_;
  fds.push_back({reads ? ends_.in : -1, POLLIN, 0});
  // Without a wish it still tells that nobody reads any more.
  fds.push_back({gone_ ? -1 : ends_.out, static_cast<short>(unsent_.empty() ? 0 : POLLOUT), 0});
}

std::optional<Instant> LineChannel::Deadline(Takes takes) const {
  if (has_untaken_ && takes == Takes::kYes && keeps_up()) return clock_.Now();
  if (unsent_.empty() || stalled_) return std::nullopt;
  return last_read_ + stall_timeout_;
}

// --- What comes

void LineChannel::Read() {
  if (input_ended_ || gone_ || unread_.size() >= kReadBytes || !keeps_up()) return;
  pollfd in{ends_.in, POLLIN, 0};
  if (::poll(&in, 1, 0) <= 0) return;
  char buffer[kReadBytes];
  const ssize_t got = ::read(ends_.in, buffer, sizeof(buffer));
  if (got > 0) unread_.append(buffer, static_cast<size_t>(got));
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
    input_ended_ = true;
    unread_ += '\n';  // a last line without its end counts
  }
}

void LineChannel::TakeLines(const std::function<bool()>& may,
                            const std::function<void(const Result<std::string_view>&)>& take) {
  has_untaken_ = !unread_.empty();
  while (keeps_up() && may()) {
    std::string_view bytes = unread_;
    const auto line = lines_.Next(bytes);
    const size_t taken = unread_.size() - bytes.size();
    if (line) take(*line);
    unread_.erase(0, taken);
    has_untaken_ = line.has_value() && !unread_.empty();
    if (!line) return;
  }
}

// --- What goes

size_t LineChannel::OutputRoom() const {
  const size_t waiting = unsent_bytes();
  return waiting < kOutputQueue ? kOutputQueue - waiting : 0;
}

void LineChannel::Send(std::string_view line) {
  if (gone_) return;
  if (unsent_.empty()) last_read_ = clock_.Now();
  unsent_ += line;
}

void LineChannel::NoticeEnd() {
  pollfd out{ends_.out, 0, 0};
  if (gone_ || ::poll(&out, 1, 0) <= 0 || (out.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0)
    return;
  LoseClient("it has closed its end");
}

void LineChannel::LoseClient(std::string_view why) {
  log_.Info("the client is gone", {{"why", why}});
  gone_ = true;
  unsent_.clear();
  sent_ = 0;
}

void LineChannel::Write() {
  NoticeEnd();
  while (sent_ < unsent_.size()) {
    const auto written = out_.Write(std::string_view(unsent_).substr(sent_));
    if (!written.ok()) return LoseClient(written.error().message());
    if (*written == 0) break;
    sent_ += *written;
    last_read_ = clock_.Now();
    stalled_ = false;
  }
  if (sent_ == unsent_.size() || sent_ > kCompactBytes) {
    unsent_.erase(0, sent_);
    sent_ = 0;
  }
  if (!unsent_.empty() && !stalled_ && clock_.Now() >= last_read_ + stall_timeout_) {
    stalled_ = true;
    log_.Warn("the client does not read; output of commands is dropped");
  }
}

}  // namespace sandglass::api
