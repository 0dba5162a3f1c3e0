// LineChannel: one client that talks in lines: what it says on one descriptor, what it is told on another, which may be the same. It owns
// neither, waits for nothing, and keeps what the client does not read within the bounds of participant.h. What a line means is the
// business of whoever has the channel. One thread.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/limits.h"
#include "api/participant.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "base/shared_output.h"
#include "control/line_reader.h"

namespace sandglass::api {

class LineChannel {
 public:
  struct Ends {
    int in, out;
  };
  LineChannel(Ends ends, std::chrono::milliseconds stall_timeout, Logger log);
  LineChannel(const LineChannel&) = delete;
  LineChannel& operator=(const LineChannel&) = delete;

  // Whether lines would be taken if they came.
  enum class Takes : uint8_t { kNo, kYes };
  void AddTo(std::vector<pollfd>& fds, Takes takes) const;
  std::optional<Instant> Deadline(Takes takes) const;

  // Notices if nobody reads any more, and writes what there is room for.
  void Write();
  void Read();
  // Hands lines to `take`, one after the other, as long as `may` says so.
  void TakeLines(const std::function<bool()>& may,
                 const std::function<void(const Result<std::string_view>&)>& take);
  // A line with its newline.
  void Send(std::string_view line);

  // Nobody reads what is sent.
  bool gone() const { return gone_; }
  // The client has said its last line.
  bool ended() const { return input_ended_ && unread_.empty(); }
  // It reads fast enough to be asked for more.
  bool keeps_up() const { return unsent_bytes() < kAnswerQueue; }
  size_t unsent_bytes() const { return unsent_.size() - sent_; }
  size_t OutputRoom() const;
  bool stalled() const { return stalled_; }

 private:
  void NoticeEnd();
  void LoseClient(std::string_view why);

  const Ends ends_;
  const SharedOutput out_{ends_.out};
  const std::chrono::milliseconds stall_timeout_;
  const Logger log_;
  SteadyClock clock_;
  control::LineReader lines_{kMaxLineBytes};
  std::string unread_;        // came, and is not cut into lines yet
  bool has_untaken_ = false;  // a line may be in there that could not be taken
  std::string unsent_;
  size_t sent_ = 0;      // of the front of it
  Instant last_read_{};  // by the client
  bool stalled_ = false;
  bool input_ended_ = false;
  bool gone_ = false;
};

}  // namespace sandglass::api
