#include "api/line_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sandglass::api {
namespace {

constexpr int kEndingSignals[] = {SIGTERM, SIGINT, SIGHUP};
constexpr size_t kReadBytes = size_t{64} << 10;
// How long the end of the program waits for a client to read what is left.
constexpr std::chrono::milliseconds kLastFlush{2'000};
// Sent bytes at the front of the queue are dropped when so many have gathered.
constexpr size_t kCompactBytes = size_t{64} << 10;

sigset_t TakenSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : kEndingSignals) ::sigaddset(&set, number);
  ::sigaddset(&set, SIGPIPE);  // a client that went away is an error of write()
  return set;
}

}  // namespace

LineServer::LineServer(ServerOptions options)
    : options_(std::move(options)), host_(options_.host, *this, *this) {}

Status LineServer::TakeSignalsOver() {
  const sigset_t taken = TakenSignals();
  if (::sigprocmask(SIG_BLOCK, &taken, &mask_before_) != 0)
    return Error::FromErrno(errno, "block signals");
  signals_ = Fd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return Error::FromErrno(errno, "signalfd");
  return Ok();
}

LineServer::~LineServer() {
  if (!signals_) return;
  TakeSignals();  // what came too late must not end us now
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

// --- The main loop

Status LineServer::Serve() {
  while (!finished()) {
    if (host_.has_deed()) {
      host_.DoDeed();
    } else if (session::Session* session = host_.session()) {
      const Status idle = session->Idle();
      if (!idle.ok()) host_.LoseSession(idle.error());
    } else {
      WaitAlone();
    }
  }
  host_.BeginShutdown();
  FlushForAWhile();
  host_.EndSession();  // while there still is somebody to be told
  return Ok();
}

bool LineServer::finished() const {
  if (host_.has_deed()) return false;
  return ending_ || (input_ended_ && unread_.empty() && !has_backlog());
}

bool LineServer::wants_out() const { return host_.has_deed() || finished(); }

void LineServer::WaitAlone() {
  std::vector<pollfd> fds;
  AddTo(fds);
  int patience = -1;
  if (const auto deadline = Deadline()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - clock_.Now());
    patience = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
  }
  (void)::poll(fds.data(), fds.size(), patience);
  Work();
}

void LineServer::AddTo(std::vector<pollfd>& fds) const {
  fds.push_back({signals_.get(), POLLIN, 0});
  fds.push_back({takes_requests() && !input_ended_ ? options_.in : -1, POLLIN, 0});
  // Without a wish it still tells that nobody reads any more.
  fds.push_back(
      {client_gone_ ? -1 : options_.out, static_cast<short>(unsent_.empty() ? 0 : POLLOUT), 0});
}

std::optional<Instant> LineServer::Deadline() const {
  if (has_backlog() && takes_requests()) return clock_.Now();
  if (unsent_.empty() || stalled_) return std::nullopt;
  return last_read_ + options_.stall_timeout;
}

void LineServer::Work() {
  TakeSignals();
  NoticeEnds();
  WriteOutput();
  if (takes_requests()) ReadInput();
  TakeLines();
  WriteOutput();
}

// --- What comes

bool LineServer::takes_requests() const {
  return !ending_ && !host_.has_deed() && unsent_.size() - sent_ < kAnswerQueue;
}

void LineServer::TakeSignals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGPIPE) continue;
    options_.host.log.Info("ending", {{"signal", info.ssi_signo}});
    ending_ = true;
    host_.BeginShutdown();
  }
}

void LineServer::NoticeEnds() {
  pollfd out{options_.out, 0, 0};
  if (client_gone_ || ::poll(&out, 1, 0) <= 0 ||
      (out.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0)
    return;
  options_.host.log.Info("the client is gone");
  client_gone_ = ending_ = true;
  unsent_.clear();
  sent_ = 0;
  host_.BeginShutdown();
}

void LineServer::ReadInput() {
  if (input_ended_ || unread_.size() >= kReadBytes) return;
  pollfd in{options_.in, POLLIN, 0};
  if (::poll(&in, 1, 0) <= 0) return;
  char buffer[kReadBytes];
  const ssize_t got = ::read(options_.in, buffer, sizeof(buffer));
  if (got > 0) unread_.append(buffer, static_cast<size_t>(got));
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
    input_ended_ = true;
    unread_ += '\n';  // a last line without its end counts
  }
}

// One after the other, as long as nothing must be done first.
void LineServer::TakeLines() {
  while (takes_requests()) {
    if (has_backlog()) {
      TakeBacklog();
      continue;
    }
    std::string_view bytes = unread_;
    const auto line = lines_.Next(bytes);
    const size_t taken = unread_.size() - bytes.size();
    if (line) TakeLine(*line);
    unread_.erase(0, taken);
    if (!line) return;
  }
}

// --- What goes

size_t LineServer::OutputRoom() const {
  const size_t waiting = unsent_.size() - sent_;
  return waiting < kOutputQueue ? kOutputQueue - waiting : 0;
}

void LineServer::Send(std::string_view line) {
  if (client_gone_) return;
  if (unsent_.empty()) last_read_ = clock_.Now();
  unsent_ += line;
}

void LineServer::WriteOutput() {
  while (sent_ < unsent_.size()) {
    pollfd out{options_.out, POLLOUT, 0};
    if (::poll(&out, 1, 0) <= 0 || (out.revents & POLLOUT) == 0) break;
    // A pipe that is writable takes this much without blocking, and the descriptor is shared with others: its flags are not ours.
    const size_t size = std::min<size_t>(unsent_.size() - sent_, PIPE_BUF);
    const ssize_t written = ::write(options_.out, unsent_.data() + sent_, size);
    if (written <= 0) break;  // NoticeEnds tells if nobody reads
    sent_ += static_cast<size_t>(written);
    last_read_ = clock_.Now();
    stalled_ = false;
  }
  if (sent_ == unsent_.size() || sent_ > kCompactBytes) {
    unsent_.erase(0, sent_);
    sent_ = 0;
  }
  if (!unsent_.empty() && !stalled_ && clock_.Now() >= last_read_ + options_.stall_timeout) {
    stalled_ = true;
    options_.host.log.Warn("the client does not read; output of commands is dropped");
  }
}

void LineServer::FlushForAWhile() {
  const Instant deadline = clock_.Now() + kLastFlush;
  while (!unsent_.empty() && !client_gone_ && clock_.Now() < deadline) {
    pollfd out{options_.out, POLLOUT, 0};
    (void)::poll(&out, 1, 100);
    NoticeEnds();
    WriteOutput();
  }
}

}  // namespace sandglass::api
