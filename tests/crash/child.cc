#include "tests/crash/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sandglass::crash {
namespace {

constexpr unsigned kHangSeconds = 60;
constexpr int kExecFailed = 126;

struct SocketPair {
  Fd ours, theirs;
};

// `theirs` lies above kMarkerFd, so that dup2() onto that number is never a no-op that keeps O_CLOEXEC.
Result<SocketPair> MakeSockets() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    return Error::FromErrno(errno, "socketpair");
  }
  SocketPair pair{Fd(fds[0]), Fd(fds[1])};
  const int high = fcntl(pair.theirs.get(), F_DUPFD_CLOEXEC, kMarkerFd + 1);
  if (high < 0) return Error::FromErrno(errno, "dup");
  pair.theirs = Fd(high);
  return pair;
}

// Runs between fork and exec in a program with threads: async-signal-safe calls only.
[[noreturn]] void BecomeChild(char* const* argv, int output, int socket, Traced traced) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  alarm(kHangSeconds);  // survives exec
  if (chdir("/") != 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0 ||
      dup2(socket, kMarkerFd) < 0) {
    _exit(kExecFailed);
  }
  if (traced == Traced::kYes) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kExecFailed);
    raise(SIGSTOP);
  }
  execv(argv[0], argv);
  _exit(kExecFailed);
}

}  // namespace

std::string ChildEnd::Describe() const {
  if (killed_by_us) return "killed";
  if (signal == SIGALRM) return fmt::format("hung for {} s", kHangSeconds);
  if (signal != 0) return fmt::format("signal {} ({})", signal, strsignal(signal));
  return fmt::format("exit code {}", exit_code);
}

ChildEnd EndOf(int wait_status) {
  ChildEnd end;
  if (WIFEXITED(wait_status)) end.exit_code = WEXITSTATUS(wait_status);
  if (WIFSIGNALED(wait_status)) end.signal = WTERMSIG(wait_status);
  return end;
}

Result<Child> Child::Start(const std::vector<std::string>& argv, const std::string& output,
                           Traced traced) {
  const Fd log(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!log.valid()) return Error::FromErrno(errno, "open " + output);
  TRY_ASSIGN(SocketPair sockets, MakeSockets());
  std::vector<char*> arguments;
  arguments.reserve(argv.size() + 1);
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  // fork() copies our page tables, which hold every tree that is known. A traced child stops before its exec, and would stop us with
  // it after a vfork().
  const pid_t pid = traced == Traced::kYes ? fork() : vfork();
  if (pid < 0) return Error::FromErrno(errno, "fork");
  if (pid == 0) BecomeChild(arguments.data(), log.get(), sockets.theirs.get(), traced);
  return Child(pid, std::move(sockets.ours));
}

Result<bool> Child::TakeOne(Block block, const MarkerSink& sink) {
  std::array<char, 4096> buffer;
  const int flags = block == Block::kYes ? 0 : MSG_DONTWAIT;
  const ssize_t length = recv(socket_.get(), buffer.data(), buffer.size(), flags);
  if (length < 0 && (errno == EAGAIN || errno == ECONNRESET)) return false;
  if (length < 0) return Error::FromErrno(errno, "recv marker");
  if (length == 0) return false;
  TRY(sink(std::string_view(buffer.data(), static_cast<size_t>(length))));
  // A child that is gone by now needs no answer.
  static_cast<void>(send(socket_.get(), "k", 1, MSG_NOSIGNAL));
  return true;
}

Status Child::TakeMarkers(const MarkerSink& sink) {
  while (true) {
    TRY_ASSIGN(const bool more, TakeOne(Block::kNo, sink));
    if (!more) return Ok();
  }
}

Result<ChildEnd> Child::Follow(const MarkerSink& sink) {
  while (true) {
    TRY_ASSIGN(const bool more, TakeOne(Block::kYes, sink));
    if (!more) break;
  }
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) return Error::FromErrno(errno, "waitpid");
  }
  return EndOf(status);
}

}  // namespace sandglass::crash
