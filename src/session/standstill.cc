#include "session/standstill.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/io.h"
#include "base/process_tree.h"

namespace sandglass::session {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience{50};
constexpr useconds_t kLookAgainUs = 100;

std::vector<pid_t> ThreadsOf(pid_t process) {
  std::vector<pid_t> threads;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/task", process), error)) {
    const std::string name = entry.path().filename().native();
    pid_t thread = -1;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread > 0) threads.push_back(thread);
  }
  return threads;
}

// "pid:[4026532001]".
std::string PidNamespaceOf(pid_t thread) {
  std::error_code error;
  return fs::read_symlink(fmt::format("/proc/{}/ns/pid", thread), error).native();
}

// The line of a status file; "": there is none.
std::string_view Field(std::string_view status, std::string_view name) {
  const size_t begin = status.find(fmt::format("\n{}:\t", name));
  if (begin == status.npos) return "";
  status.remove_prefix(begin + name.size() + 3);
  return status.substr(0, status.find('\n'));
}

std::string StatusOf(pid_t process) {
  constexpr size_t kMaxStatus = size_t{1} << 16;
  auto text = ReadFileAt(AT_FDCWD, fmt::format("/proc/{}/status", process).c_str(), kMaxStatus);
  return text.ok() ? std::move(*text) : "";
}

// As the world's own /proc has it, which is read much faster than that of a busy machine: the shim, a keeper and the shell.
bool OnlyTheShellIsThere(const Session::Parts& parts) {
  constexpr int kShimKeeperShell = 3;
  if (parts.shell < 0) return false;
  std::error_code error;
  int processes = 0;
  const std::string proc = fmt::format("/proc/{}/root/proc", parts.world->init_pid());
  for (const auto& entry : fs::directory_iterator(proc, error))
    processes += std::isdigit(static_cast<unsigned char>(entry.path().filename().native()[0]));
  return !error && processes <= kShimKeeperShell;
}

// The tracer, in its own process.
class Tracer {
 public:
  Tracer(pid_t shim, pid_t asleep) : shim_(shim), asleep_(asleep), world_(PidNamespaceOf(shim)) {}

  // Processes that are born meanwhile are found in the next round; once all are stopped there are none.
  void StopAll(std::vector<pid_t> processes) {
    const Clock::time_point end = Clock::now() + kPatience;
    while (SeizeNew(processes)) {
      AwaitStops(end);
      if (Clock::now() > end) return;
      processes = ProcessesOfCommands(shim_);
    }
  }

 private:
  bool SeizeNew(const std::vector<pid_t>& processes) {
    bool found = false;
    for (const pid_t process : processes) {
      if (process == asleep_) continue;
      for (const pid_t thread : ThreadsOf(process)) {
        if (!known_.insert(thread).second) continue;
        if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) continue;
        // From here on its number stays its own; before, it may have become that of somebody else.
        if (!world_.empty() && PidNamespaceOf(thread) != world_) strangers_.insert(thread);
        ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
        moving_.insert(thread);
        found = true;
      }
    }
    return found;
  }

  // Each is reported once: stopped, or ended. A signal that it was about to get reaches it when we are gone. A stranger can only be let
  // go when it is stopped.
  void AwaitStops(Clock::time_point end) {
    while (!moving_.empty() && Clock::now() < end) {
      const pid_t thread = ::waitpid(-1, nullptr, __WALL | WNOHANG);
      if (thread > 0)
        moving_.erase(thread);
      else
        ::usleep(kLookAgainUs);
      if (strangers_.erase(thread) > 0) ::ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
    }
  }

  const pid_t shim_, asleep_;
  const std::string world_;  // its pid namespace; "": nobody may know
  std::set<pid_t> known_, moving_, strangers_;
};

[[noreturn]] void Trace(Tracer tracer, const std::vector<pid_t>& processes, const Fd& session) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  tracer.StopAll(processes);
  char byte = 0;
  (void)::send(session.get(), &byte, 1, MSG_NOSIGNAL);
  while (::read(session.get(), &byte, 1) < 0 && errno == EINTR) continue;
  ::_exit(0);
}

}  // namespace

// Keepers are children of the shim, but so is what a command leaves behind that killed its keeper. Only commands have a filter more
// than the shim, and nobody gets rid of one.
std::vector<pid_t> ProcessesOfCommands(pid_t shim) {
  constexpr std::string_view kFilters = "Seccomp_filters";
  const std::string shims_filters(Field(StatusOf(shim), kFilters));
  std::vector<pid_t> processes = DescendantsOf(shim);
  std::erase_if(processes, [&](pid_t process) {
    const std::string status = StatusOf(process);
    return Field(status, "PPid") == std::to_string(shim) &&
           Field(status, kFilters) == shims_filters;
  });
  return processes;
}

Standstill::Standstill(const Session::Parts& parts) {
  if (parts.processes.empty() || OnlyTheShellIsThere(parts)) return;
  const pid_t shim = parts.world->init_pid(), asleep = parts.shell;
  std::vector<pid_t> processes = ProcessesOfCommands(shim);
  std::erase(processes, asleep);
  int ends[2];
  if (processes.empty() || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  Fd ours(ends[0]), tracers(ends[1]);
  tracer_ = ::fork();
  if (tracer_ == 0) {
    ours.Reset();
    Trace(Tracer(shim, asleep), processes, tracers);
  }
  if (tracer_ < 0) return;
  tracers.Reset();
  char byte = 0;
  while (::read(ours.get(), &byte, 1) < 0 && errno == EINTR) continue;
  end_ = std::move(ours);
}

// Before anything else goes on, everybody is let go.
Standstill::~Standstill() {
  if (tracer_ < 0) return;
  end_.Reset();
  while (::waitpid(tracer_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace sandglass::session
