#include "shim/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/passed_fds.h"
#include "base/signals.h"
#include "control/shim_start.h"

namespace sandglass::shim {
namespace {

constexpr char kShell[] = "/bin/sh";
constexpr size_t kMaxOrderBytes = size_t{32} << 10;  // fits into any socket's buffer
constexpr size_t kOutputStreams = 2;                 // standard output and error
constexpr int kBeyondGiven = control::kFirstGivenFd + static_cast<int>(control::kMaxGivenFds);

struct Pipe {
  Fd read;
  Fd write;
};

// The ends that become descriptors 0 to 2 of the command.
struct CommandEnds {
  Fd input;
  Fd output;
  Fd errors;
};

Result<Pipe> NewPipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::FromErrno(errno, "pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<Fd> Duplicate(const Fd& fd) {
  Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return Error::FromErrno(errno, "dup");
  return copy;
}

void MakeNonBlocking(const Fd& fd) {
  if (fd) ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

Result<Fd> OpenTerminal(control::TerminalSize size) {
  Fd terminal(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal) return Error::FromErrno(errno, "open a terminal");
  const int unlock = 0;
  const winsize window{.ws_row = size.rows, .ws_col = size.columns};
  if (::ioctl(terminal.get(), TIOCSPTLCK, &unlock) != 0 ||
      ::ioctl(terminal.get(), TIOCSWINSZ, &window) != 0)
    return Error::FromErrno(errno, "set up a terminal");
  return terminal;
}

Status ConnectTerminal(control::TerminalSize size, bool takes_input, Spawned& ours) {
  TRY_ASSIGN(ours.output, OpenTerminal(size));
  if (takes_input) {
    TRY_ASSIGN(ours.input, Duplicate(ours.output));
  }
  return Ok();
}

Result<Fd> EmptyInput() {
  Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing) return Error::FromErrno(errno, "open /dev/null");
  return nothing;
}

Status ConnectPipes(bool takes_input, Output output_kind, Spawned& ours, CommandEnds& theirs) {
  if (takes_input) {
    TRY_ASSIGN(Pipe input, NewPipe());
    theirs.input = std::move(input.read);
    ours.input = std::move(input.write);
  } else {
    TRY_ASSIGN(theirs.input, EmptyInput());
  }
  if (output_kind == Output::kGiven) return Ok();
  TRY_ASSIGN(Pipe output, NewPipe());
  TRY_ASSIGN(Pipe errors, NewPipe());
  ours.output = std::move(output.read);
  theirs.output = std::move(output.write);
  ours.errors = std::move(errors.read);
  theirs.errors = std::move(errors.write);
  return Ok();
}

void Tell(int reports, Fate fate, int value) {
  const Report report{fate, value};
  // Nobody else could be told if this fails; the shim then sees the end without a reason.
  [[maybe_unused]] const ssize_t written = ::write(reports, &report, sizeof(report));
}

// --- The command, until its exec ---

class Starter {
 public:
  Starter(const control::Exec& exec, const Supervision& supervision, const Fd& terminal,
          const CommandEnds& ends, int reports)
      : exec_(exec),
        supervision_(supervision),
        terminal_(terminal),
        ends_(ends),
        reports_(reports) {}

  [[noreturn]] void Run() {
    ::setsid();
    UnblockSignals();  // handlers are the keeper's
    ConnectStreams();
    if (exec_.cwd && ::chdir(exec_.cwd->c_str()) != 0) Fail(Fate::kNoFolder);
    if (!supervision_.filter.empty()) BecomeSupervised();
    errno = EINVAL;
    if (exec_.output_given && !(given_[0] && given_[1])) Fail(Fate::kNotReleased);
    // Not closed at once: the pipe of reports must outlive a failing exec.
    ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    HandOverGiven();
    Execute();
    Fail(Fate::kNoProgram);
  }

 private:
  [[noreturn]] void Fail(Fate fate) {
    const Report failure{fate, errno};
    Tell(reports_, fate, failure.value);
    ::_exit(ExitCodeFor(failure));
  }

  void ConnectStreams() {
    if (exec_.pty) {
      const Fd slave(::ioctl(terminal_.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
      if (!slave || ::ioctl(slave.get(), TIOCSCTTY, 0) != 0) Fail(Fate::kNoTerminal);
      for (int stream = 0; stream <= 2; ++stream) ::dup2(slave.get(), stream);
      return;
    }
    ::dup2(ends_.input.get(), 0);
    if (exec_.output_given) return;
    ::dup2(ends_.output.get(), 1);
    ::dup2(ends_.errors.get(), 2);
  }

  // From the filter on until the release nobody answers notifications: only sendmsg, poll, recvmsg and close are called here.
  void BecomeSupervised() {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) Fail(Fate::kNoFilter);
    const Fd release(pair[0]);
    Fd host_end(pair[1]);
    Fd listener(InstallFilter());
    if (!listener) Fail(Fate::kNoFilter);
    const control::ListenerMessage message{exec_.id.value};
    const int fds[control::kListenerMessageFds] = {listener.get(), host_end.get()};
    const ByteView bytes(reinterpret_cast<const uint8_t*>(&message), sizeof(message));
    if (!SendWithFds(supervision_.listener_socket, bytes, fds).ok()) Fail(Fate::kNotReleased);
    listener.Reset();
    host_end.Reset();
    AwaitRelease(release);
  }

  int InstallFilter() {
    const auto filter = supervision_.filter;
    sock_fprog program{static_cast<unsigned short>(filter.size()),
                       const_cast<sock_filter*>(filter.data())};
    constexpr unsigned kFlags =
        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, kFlags, &program));
  }

  void AwaitRelease(const Fd& release) {
    pollfd word{release.get(), POLLIN, 0};
    while (::poll(&word, 1, -1) < 0 && errno == EINTR) continue;
    uint8_t byte = 0;
    auto received = ReceiveWithFds(release.get(), {&byte, 1});
    errno = ECANCELED;
    if (!received.ok() || received->size != 1 || received->fd_count > control::kMaxGivenFds)
      Fail(Fate::kNotReleased);
    if (exec_.output_given && received->fd_count != kOutputStreams) Fail(Fate::kNotReleased);
    for (size_t i = 0; i < received->fd_count; ++i) given_[i] = OutOfTheWay(received->fds[i]);
  }

  // Above the numbers that the program is to find them under.
  static Fd OutOfTheWay(const Fd& fd) {
    return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kBeyondGiven));
  }

  void HandOverGiven() {
    const int first = exec_.output_given ? STDOUT_FILENO : control::kFirstGivenFd;
    for (size_t i = 0; i < given_.size(); ++i) {
      if (given_[i]) ::dup2(given_[i].get(), first + static_cast<int>(i));
    }
  }

  void Execute() {
    for (const control::EnvEntry& entry : exec_.env)
      ::setenv(entry.name.c_str(), entry.value.c_str(), 1);
    std::vector<const char*> argv;
    if (exec_.command) {
      argv = {kShell, "-c", exec_.command->c_str()};
    } else {
      for (const std::string& argument : exec_.argv) argv.push_back(argument.c_str());
    }
    argv.push_back(nullptr);
    ::execvp(argv[0], const_cast<char* const*>(argv.data()));
  }

  const control::Exec& exec_;
  const Supervision& supervision_;
  const Fd& terminal_;
  const CommandEnds& ends_;
  int reports_;
  std::array<Fd, control::kMaxGivenFds> given_;
};

// --- The keeper ---

void CloseAllBut(std::initializer_list<int> kept) {
  std::vector<int> sorted(kept);
  std::ranges::sort(sorted);
  unsigned first = 0;
  for (const int fd : sorted) {
    if (fd < 0) continue;
    const auto number = static_cast<unsigned>(fd);
    if (number > first) ::close_range(first, number - 1, 0);
    first = number + 1;
  }
  ::close_range(first, ~0u, 0);
}

// Until the last process of the command is gone.
[[noreturn]] void ReapAll(pid_t command, int reports) {
  while (true) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, __WALL);
    if (ended == command) Tell(reports, Fate::kEnded, status);
    if (ended < 0 && errno != EINTR) ::_exit(0);
  }
}

void BecomeKeeper() {
  ::setsid();  // signals to a command's group do not reach its keeper
  ::prctl(PR_SET_NAME, "sg-keeper");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ResetHandlers();
}

[[noreturn]] void Keep(Starter& starter, int reports) {
  // Until the exec the two share their memory and we stand still, which saves copying it; what the other one changes there is
  // never looked at again.
  const pid_t command = ::vfork();
  if (command == 0) starter.Run();
  if (command < 0) {
    const Report failure{Fate::kCannotFork, errno};
    Tell(reports, failure.fate, failure.value);
    Tell(reports, Fate::kEnded, W_EXITCODE(ExitCodeFor(failure), 0));
    ::_exit(0);
  }
  CloseAllBut({reports});
  ReapAll(command, reports);
}

// Nothing of other commands may stay open here: they wait for the end of their pipes.
[[noreturn]] void KeepInReserve(const Supervision& supervision, CommandEnds ends, int orders,
                                int reports) {
  BecomeKeeper();
  CloseAllBut({orders, reports, ends.input.get(), ends.output.get(), ends.errors.get(),
               supervision.listener_socket});
  std::string line(kMaxOrderBytes, '\0');
  ssize_t size = 0;
  while ((size = ::recv(orders, line.data(), line.size(), 0)) < 0 && errno == EINTR) continue;
  if (size <= 0) ::_exit(0);
  auto message = control::DecodeHostMessage({line.data(), static_cast<size_t>(size)});
  auto* exec = message.ok() ? std::get_if<control::Exec>(&*message) : nullptr;
  CHECK(exec != nullptr);
  if (!exec->takes_input) {
    auto nothing = EmptyInput();
    ends.input = nothing.ok() ? std::move(*nothing) : Fd();
  }
  Starter starter(*exec, supervision, Fd(), ends, reports);
  Keep(starter, reports);
}

void MakeOursNonBlocking(const Spawned& ours) {
  for (const Fd* fd : {&ours.reports, &ours.input, &ours.output, &ours.errors})
    MakeNonBlocking(*fd);
}

}  // namespace

Result<SpareKeeper> SpareKeeper::Make(const Supervision& supervision, Output output) {
  SpareKeeper spare;
  spare.output_ = output;
  Spawned& ours = spare.spawned_;
  CommandEnds theirs;
  TRY(ConnectPipes(true, output, ours, theirs));
  TRY_ASSIGN(Pipe reports, NewPipe());
  const Fd told(::fcntl(reports.write.get(), F_DUPFD_CLOEXEC, kBeyondGiven));
  int pair[2];
  if (!told || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return Error::FromErrno(errno, "prepare a command");
  spare.orders_ = Fd(pair[0]);
  const Fd orders(pair[1]);
  ours.keeper = ::fork();
  if (ours.keeper < 0) return Error::FromErrno(errno, "fork");
  if (ours.keeper == 0) KeepInReserve(supervision, std::move(theirs), orders.get(), told.get());
  ours.reports = std::move(reports.read);
  MakeOursNonBlocking(ours);
  return spare;
}

std::optional<Spawned> SpareKeeper::Start(const control::Exec& exec) {
  if (OutputOf(exec) != output_) return std::nullopt;
  const std::string line = control::Encode(exec);
  if (line.size() > kMaxOrderBytes ||
      ::send(orders_.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    return std::nullopt;
  if (!exec.takes_input) spawned_.input.Reset();
  return std::move(spawned_);
}

Result<Spawned> Spawn(const control::Exec& exec, const Supervision& supervision) {
  Spawned ours;
  CommandEnds theirs;
  if (exec.pty) {
    TRY(ConnectTerminal(*exec.pty, exec.takes_input, ours));
  } else {
    TRY(ConnectPipes(exec.takes_input, OutputOf(exec), ours, theirs));
  }
  TRY_ASSIGN(Pipe reports, NewPipe());
  // A given descriptor must not take its number.
  const Fd told(::fcntl(reports.write.get(), F_DUPFD_CLOEXEC, kBeyondGiven));
  if (!told) return Error::FromErrno(errno, "dup");
  Starter starter(exec, supervision, ours.output, theirs, told.get());
  ours.keeper = ::fork();
  if (ours.keeper < 0) return Error::FromErrno(errno, "fork");
  if (ours.keeper == 0) {
    BecomeKeeper();
    Keep(starter, told.get());
  }
  ours.reports = std::move(reports.read);
  MakeOursNonBlocking(ours);
  return ours;
}

int ExitCodeFor(const Report& failure) {
  constexpr int kNotFound = 127;
  constexpr int kCannotStart = 126;
  const bool missing = failure.value == ENOENT || failure.value == ENOTDIR;
  return failure.fate == Fate::kNoProgram && missing ? kNotFound : kCannotStart;
}

std::string Explain(const Report& failure, const control::Exec& exec) {
  const auto what = [&]() -> std::string {
    switch (failure.fate) {
      case Fate::kCannotFork:
        return "no new process";
      case Fate::kNoTerminal:
        return "no terminal";
      case Fate::kNoFolder:
        return fmt::format("no folder {}", exec.cwd.value_or(""));
      case Fate::kNoFilter:
        return "no system call filter";
      case Fate::kNotReleased:
        return "the host did not take it under supervision";
      case Fate::kNoProgram:
        return exec.command ? kShell : exec.argv.front();
      case Fate::kEnded:
        break;
    }
    return "ended";
  }();
  return fmt::format("{}: {}", what, std::strerror(failure.value))
      .substr(0, control::kMaxReasonBytes);
}

}  // namespace sandglass::shim
