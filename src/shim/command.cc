#include "shim/command.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/process_tree.h"

namespace sandglass::shim {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr size_t kAckBytes = size_t{64} << 10;
// A terminal does not tell how much it holds; it never holds more.
constexpr size_t kTerminalHoldsBytes = size_t{128} << 10;
constexpr std::chrono::milliseconds kKillAgain{10};
constexpr char kEndOfTransmission = '\x04';

size_t BytesIn(const Fd& pipe) {
  int count = 0;
  return ::ioctl(pipe.get(), FIONREAD, &count) == 0 ? static_cast<size_t>(count) : 0;
}

}  // namespace

Command::Command(control::Exec exec, Spawned spawned, Channel& channel, MonotonicTime now)
    : exec_(std::move(exec)), spawned_(std::move(spawned)), channel_(channel) {
  if (spawned_.output)
    sources_.push_back({.stream = control::Stream::kStdout, .fd = std::move(spawned_.output)});
  if (spawned_.errors)
    sources_.push_back({.stream = control::Stream::kStderr, .fd = std::move(spawned_.errors)});
  if (exec_.timeout) times_out_ = now + *exec_.timeout;
}

// --- What the host says ---

void Command::Cancel(MonotonicTime now) {
  if (std::exchange(cancelled_, true)) return;
  times_out_.reset();
  kill_at_ = now + exec_.grace;
  SignalAll(SIGTERM);
  SignalAll(SIGCONT);  // who is stopped would not hear the other one
}

void Command::Signal(int number) {
  int foreground = 0;
  if (exec_.pty && ::ioctl(sources_.front().fd.get(), TIOCGPGRP, &foreground) == 0 &&
      foreground > 0) {
    ::kill(-foreground, number);
    return;
  }
  SignalAll(number);
}

void Command::Resize(control::TerminalSize size) {
  const winsize window{.ws_row = size.rows, .ws_col = size.columns};
  if (exec_.pty) ::ioctl(sources_.front().fd.get(), TIOCSWINSZ, &window);
}

void Command::TakeInput(control::Input input) {
  if (!exec_.takes_input || input_ends_) {
    channel_.Send(control::Problem{id(), "input for a command that takes none"});
    return;
  }
  if (input_.size() + input.data.size() > control::kWindowBytes) {
    channel_.Send(control::Problem{id(), "more input than the window allows"});
    return;
  }
  if (!spawned_.input) {
    InputTaken(input.data.size());  // nobody reads it any more
    return;
  }
  input_ += input.data;
  input_ends_ = input.eof;
}

void Command::OutputAcknowledged(size_t bytes) {
  unacknowledged_ -= std::min(bytes, unacknowledged_);
}

// --- What happens in the world ---

void Command::KeeperGone() {
  ReadReports();
  keeper_gone_ = true;
  if (wait_status_) return;
  channel_.Send(control::Problem{id(), "the keeper of the command was killed"});
  OnEnded(SIGKILL);
}

void Command::AddTo(std::vector<pollfd>& waits) const {
  const auto add = [&](const Fd& fd, short events) {
    if (fd) waits.push_back({.fd = fd.get(), .events = events});
  };
  add(spawned_.reports, POLLIN);
  if (!input_.empty() || input_ends_) add(spawned_.input, POLLOUT);
  for (const Source& source : sources_) {
    if (completed_ || MayRead(source)) add(source.fd, POLLIN);
  }
}

void Command::Work() {
  ReadReports();
  WriteInput();
  for (Source& source : sources_) completed_ ? Drop(source) : ReadOutput(source);
  CompleteIfDrained();
}

void Command::CheckTime(MonotonicTime now) {
  if (times_out_ && now >= *times_out_) {
    timed_out_ = !wait_status_;
    Cancel(now);
  }
  if (kill_at_ && now >= *kill_at_) KillAll(now);
}

std::optional<MonotonicTime> Command::Deadline() const {
  if (times_out_ && kill_at_) return std::min(*times_out_, *kill_at_);
  return times_out_ ? times_out_ : kill_at_;
}

// --- Its end ---

void Command::ReadReports() {
  Report report;
  while (spawned_.reports) {
    const ssize_t size = ::read(spawned_.reports.get(), &report, sizeof(report));
    if (size < 0) return;
    if (size != sizeof(report)) {
      spawned_.reports.Reset();  // the keeper is gone
    } else if (report.fate == Fate::kEnded) {
      OnEnded(report.value);
    } else {
      failure_ = report;
    }
  }
}

void Command::OnEnded(int wait_status) {
  if (wait_status_) return;
  wait_status_ = wait_status;
  times_out_.reset();
  for (Source& source : sources_) {
    source.left = exec_.pty ? kTerminalHoldsBytes : BytesIn(source.fd);
    source.drained = false;
  }
}

void Command::CompleteIfDrained() {
  if (!wait_status_ || completed_) return;
  for (const Source& source : sources_) {
    if (source.fd && !source.drained && source.left > 0) return;
  }
  const int status = *wait_status_;
  control::StepCompleted end{.id = id(), .timed_out = timed_out_};
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
    end.exit_code = 128 + WTERMSIG(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  if (failure_) end.error = Explain(*failure_, exec_);
  channel_.Send(std::move(end));
  completed_ = true;
  spawned_.input.Reset();
  if (exec_.pty) sources_.front().fd.Reset();
}

// --- Input ---

void Command::WriteInput() {
  while (!input_.empty() && spawned_.input) {
    const ssize_t written = ::write(spawned_.input.get(), input_.data(), input_.size());
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0) {
      // The command has closed its end: what comes is taken and dropped.
      InputTaken(input_.size());
      input_.clear();
      spawned_.input.Reset();
      return;
    }
    InputTaken(static_cast<size_t>(written));
    input_.erase(0, static_cast<size_t>(written));
  }
  if (input_ends_) CloseInput();
}

void Command::InputTaken(size_t bytes) {
  input_taken_ += bytes;
  if (input_taken_ < kAckBytes) return;
  channel_.Send(control::Ack{id(), input_taken_});
  input_taken_ = 0;
}

void Command::CloseInput() {
  if (!spawned_.input) return;
  // A terminal cannot be half closed; this is what a person would type.
  if (exec_.pty && ::write(spawned_.input.get(), &kEndOfTransmission, 1) < 0 && errno == EAGAIN)
    return;
  spawned_.input.Reset();
}

// --- Output ---

size_t Command::WindowLeft() const { return control::kWindowBytes - unacknowledged_; }

bool Command::MayRead(const Source& source) const {
  return source.fd && WindowLeft() > 0 && !channel_.paused();
}

void Command::ReadOutput(Source& source) {
  while (MayRead(source) && !(wait_status_ && source.left == 0)) {
    size_t wanted = std::min(kReadBytes, WindowLeft());
    if (wait_status_) wanted = std::min(wanted, source.left);
    std::string data(wanted, '\0');
    const ssize_t size = ::read(source.fd.get(), data.data(), data.size());
    if (size < 0 && errno == EAGAIN) {
      source.drained = true;  // counts only after the end
      return;
    }
    if (size <= 0) {
      source.fd.Reset();  // EIO: the last one has closed the terminal
      return;
    }
    data.resize(static_cast<size_t>(size));
    source.drained = false;
    source.left -= std::min(source.left, data.size());
    unacknowledged_ += data.size();
    channel_.Send(control::Output{id(), source.stream, std::move(data)});
  }
}

void Command::Drop(Source& source) {
  if (!source.fd) return;
  char dropped[kReadBytes];
  const ssize_t size = ::read(source.fd.get(), dropped, sizeof(dropped));
  if (size == 0 || (size < 0 && errno != EAGAIN)) source.fd.Reset();
}

// --- Signals ---

void Command::SignalAll(int number) {
  if (keeper_gone_) return;  // its pid may be another's by now
  for (const pid_t pid : DescendantsOf(spawned_.keeper)) ::kill(pid, number);
}

void Command::KillAll(MonotonicTime now) {
  kill_at_.reset();
  if (keeper_gone_) return;
  ::kill(spawned_.keeper,
         SIGCONT);  // its command may have stopped it, to be deemed running for ever
  const std::vector<pid_t> left = DescendantsOf(spawned_.keeper);
  for (const pid_t pid : left) ::kill(pid, SIGKILL);
  // Without a report the keeper may have been stopped before it started its command, and do so now.
  if (!left.empty() || !wait_status_) kill_at_ = now + kKillAgain;
}

}  // namespace sandglass::shim
