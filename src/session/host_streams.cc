#include "session/host_streams.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace sandglass::session {
namespace {

constexpr int kPassedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};

sigset_t TakenSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int number : kPassedOn) ::sigaddset(&set, number);
  ::sigaddset(&set, SIGPIPE);  // a reader that went away is an error of write()
  return set;
}

}  // namespace

Result<HostStreams> HostStreams::Open(Descriptors descriptors) {
  HostStreams streams(descriptors);
  const sigset_t taken = TakenSignals();
  if (::sigprocmask(SIG_BLOCK, &taken, &streams.mask_before_) != 0)
    return Error::FromErrno(errno, "block signals");
  streams.masked_ = true;
  streams.signals_ = Fd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!streams.signals_.valid()) return Error::FromErrno(errno, "signalfd");
  streams.has_terminal_ = ::isatty(descriptors.in) == 1 && ::isatty(descriptors.out) == 1;
  return streams;
}

Result<std::unique_ptr<HostStreams::RawMode>> HostStreams::BecomeRaw() const {
  if (!has_terminal_) return std::unique_ptr<RawMode>();
  termios settings{};
  if (::tcgetattr(fds_.in, &settings) != 0) return Error::FromErrno(errno, "look at the terminal");
  const termios before = settings;
  ::cfmakeraw(&settings);
  if (::tcsetattr(fds_.in, TCSADRAIN, &settings) != 0)
    return Error::FromErrno(errno, "set the terminal up");
  return std::make_unique<RawMode>(fds_.in, before);
}

HostStreams::HostStreams(HostStreams&& other) noexcept
    : fds_(other.fds_),
      outputs_(std::move(other.outputs_)),
      signals_(std::move(other.signals_)),
      mask_before_(other.mask_before_),
      masked_(std::exchange(other.masked_, false)),
      has_terminal_(other.has_terminal_) {}

HostStreams::~HostStreams() {
  if (!masked_) return;
  while (TakeSignal()) {  // what came too late for the command must not end us now
  }
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::optional<int> HostStreams::TakeSignal() {
  signalfd_siginfo info{};
  if (!signals_.valid() || ::read(signals_.get(), &info, sizeof(info)) != sizeof(info))
    return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

std::optional<control::TerminalSize> HostStreams::terminal() const {
  if (!has_terminal_) return std::nullopt;
  winsize size{};
  if (::ioctl(fds_.out, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    return control::TerminalSize{};
  return control::TerminalSize{size.ws_row, size.ws_col};
}

Result<size_t> HostStreams::Write(control::Stream stream, std::string_view bytes) {
  auto written = outputs_[IndexOf(stream)].Write(bytes);
  if (!written.ok()) return written.error().WithContext("the command's output");
  if (*written > 0) inside_line_[IndexOf(stream)] = bytes[*written - 1] != '\n';
  return written;
}

}  // namespace sandglass::session
