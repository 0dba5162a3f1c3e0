#include "api/server_loop.h"

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
// How long the end of the program waits for clients to read what is left.
constexpr std::chrono::milliseconds kLastFlush{2'000};

sigset_t TakenSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : kEndingSignals) ::sigaddset(&set, number);
  ::sigaddset(&set, SIGPIPE);  // a client that went away is an error of write()
  return set;
}

}  // namespace

ServerLoop::ServerLoop(HostOptions options)
    : log_(options.log), host_(std::move(options), *this, *this) {}

Result<std::unique_ptr<ServerLoop>> ServerLoop::Open(HostOptions options) {
  std::unique_ptr<ServerLoop> loop(new ServerLoop(std::move(options)));
  TRY(loop->TakeSignalsOver());
  return loop;
}

Status ServerLoop::TakeSignalsOver() {
  const sigset_t taken = TakenSignals();
  if (::sigprocmask(SIG_BLOCK, &taken, &mask_before_) != 0)
    return Error::FromErrno(errno, "block signals");
  signals_ = Fd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return Error::FromErrno(errno, "signalfd");
  return Ok();
}

ServerLoop::~ServerLoop() {
  if (!signals_) return;
  TakeSignals();  // what came too late must not end us now
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

Status ServerLoop::Serve() {
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

bool ServerLoop::finished() const {
  if (host_.has_deed()) return false;
  return ending_ || std::ranges::any_of(participants_, [](const Participant* participant) {
           return participant->stay() != Stay::kOn;
         });
}

bool ServerLoop::wants_out() const { return host_.has_deed() || finished(); }

void ServerLoop::WaitAlone() {
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

void ServerLoop::AddTo(std::vector<pollfd>& fds) const {
  fds.push_back({signals_.get(), POLLIN, 0});
  for (const Participant* participant : participants_) participant->AddTo(fds);
}

std::optional<Instant> ServerLoop::Deadline() const {
  std::optional<Instant> first;
  for (const Participant* participant : participants_) {
    const auto next = participant->Deadline();
    if (next && (!first || *next < *first)) first = next;
  }
  return first;
}

void ServerLoop::Work() {
  TakeSignals();
  for (Participant* participant : participants_) {
    participant->Work();
    if (participant->stay() == Stay::kNo) End();
  }
}

void ServerLoop::TakeSignals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGPIPE) continue;
    log_.Info("ending", {{"signal", info.ssi_signo}});
    End();
  }
}

void ServerLoop::End() {
  if (std::exchange(ending_, true)) return;
  host_.BeginShutdown();
}

// --- What goes

void ServerLoop::Tell(std::string_view event, Json payload) {
  for (Participant* participant : participants_) participant->Tell(event, payload);
}

size_t ServerLoop::OutputRoom() const {
  size_t room = kOutputQueue;
  for (const Participant* participant : participants_)
    room = std::min(room, participant->OutputRoom());
  return room;
}

bool ServerLoop::stalled() const {
  return ending_ || std::ranges::any_of(participants_, [](const Participant* participant) {
           return participant->stalled();
         });
}

void ServerLoop::FlushForAWhile() {
  const Instant deadline = clock_.Now() + kLastFlush;
  const auto has_unsent = [](const Participant* participant) { return participant->has_unsent(); };
  while (std::ranges::any_of(participants_, has_unsent) && clock_.Now() < deadline) {
    std::vector<pollfd> fds;
    for (const Participant* participant : participants_) participant->AddTo(fds);
    for (pollfd& fd : fds) fd.events &= POLLOUT;
    (void)::poll(fds.data(), fds.size(), 100);
    for (Participant* participant : participants_) participant->Flush();
  }
}

}  // namespace sandglass::api
