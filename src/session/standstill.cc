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
#include <cstring>
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
constexpr std::chrono::milliseconds kPatienceWithNewborns{1'000};
constexpr useconds_t kLookAgainUs = 100;
constexpr size_t kMostStillRunning = 255;  // told as one byte

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

// As the world's own /proc has them, which is read much faster than that of a busy machine: by their numbers there, with those that
// have ended and wait to be reaped. Empty: it cannot be read.
std::vector<std::string> NumbersInTheWorld(pid_t shim) {
  std::error_code error;
  std::vector<std::string> numbers;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/root/proc", shim), error)) {
    std::string name = entry.path().filename().native();
    if (std::isdigit(static_cast<unsigned char>(name[0]))) numbers.push_back(std::move(name));
  }
  return error ? std::vector<std::string>() : numbers;
}

// The shim, a keeper and the shell.
bool OnlyTheShellIsThere(const Session::Parts& parts) {
  constexpr size_t kShimKeeperShell = 3;
  if (parts.shell < 0) return false;
  const auto numbers = NumbersInTheWorld(parts.world->init_pid());
  return !numbers.empty() && numbers.size() <= kShimKeeperShell;
}

// Below one thread, without the time that it takes to read all of /proc. Empty as well where the kernel has no such file.
std::vector<pid_t> ChildrenAtAGlance(pid_t thread) {
  constexpr size_t kMaxChildren = size_t{1} << 20;
  const std::string path = fmt::format("/proc/{}/task/{}/children", thread, thread);
  const auto text = ReadFileAt(AT_FDCWD, path.c_str(), kMaxChildren);
  std::vector<pid_t> children;
  if (!text.ok()) return children;
  const char* at = text->data();
  const char* const end = at + text->size();
  for (pid_t child = 0; at < end; ++at) {
    const auto parsed = std::from_chars(at, end, child);
    if (parsed.ec != std::errc()) break;
    children.push_back(child);
    at = parsed.ptr;
  }
  return children;
}

// In a call that the bridge holds: there it can be killed, but not stopped, and it is stopped before it runs again. The name is that of
// a function of the kernel; one that does not tell it costs patience and nothing else.
bool WaitsForTheBridge(pid_t thread) {
  constexpr size_t kMaxName = 256;
  const auto where = ReadFileAt(AT_FDCWD, fmt::format("/proc/{}/wchan", thread).c_str(), kMaxName);
  return where.ok() && where->find("seccomp") != where->npos;
}

// Asleep in the kernel where nothing stops it (the parent of a vfork), or gone.
bool CannotRun(pid_t thread) {
  const std::string status = StatusOf(thread);
  const std::string_view state = Field(status, "State");
  return state.empty() || std::string_view("DtZX").find(state[0]) != std::string_view::npos;
}

// The tracer, in its own process.
class Tracer {
 public:
  Tracer(pid_t shim, pid_t asleep) : shim_(shim), asleep_(asleep), world_(PidNamespaceOf(shim)) {}

  // Once seized, a thread starts nobody who is not stopped too. So nobody is waited for before all are seized: while that lasted, those
  // that are not would start others. Returns how many may still run.
  size_t StopAll(const std::vector<pid_t>& processes) {
    const Clock::time_point begin = Clock::now();
    bool all = false;
    SeizeNew(processes);
    while (!all && Clock::now() < begin + PatienceWithNewborns()) {
      all = IsNobodyNew();
      if (!all) Chase();
    }
    AwaitStops(Clock::now() + kPatience);
    std::erase_if(moving_, CannotRun);
    return moving_.size() + free_.size() + (all ? 0 : 1);
  }

 private:
  // Whom we may not trace could start others for ever.
  std::chrono::milliseconds PatienceWithNewborns() const {
    return free_.empty() ? kPatienceWithNewborns : kPatience;
  }

  // Of processes that start one another and end, all may be gone by the time that they are looked at. But then others are there.
  bool IsNobodyNew() {
    const std::vector<std::string> before = NumbersInTheWorld(shim_);
    return !SeizeNew(ProcessesOfCommands(shim_)) && NumbersInTheWorld(shim_) == before;
  }

  // True: there was one that had not been seen before, whether or not it was still there.
  bool SeizeNew(const std::vector<pid_t>& processes) {
    bool found = false;
    for (const pid_t process : processes) {
      if (process == asleep_) continue;
      for (const pid_t thread : ThreadsOf(process)) found |= Seize(thread);
    }
    return found;
  }

  bool Seize(pid_t thread) {
    constexpr long kBornStopped = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
    if (!known_.insert(thread).second) return false;
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, kBornStopped) == 0) {
      ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
      Expect(thread);
    } else if (errno == EPERM && !IsOurs(thread)) {
      free_.insert(thread);
    }
    return true;
  }

  // A process that starts the next one and ends may be gone whenever all of /proc was read. Its child becomes that of a keeper, and
  // all that keepers have are processes of commands.
  void Chase() {
    constexpr int kGlances = 50;
    const std::vector<pid_t> keepers = ChildrenAtAGlance(shim_);
    for (int i = 0; i < kGlances; ++i) {
      for (const pid_t keeper : keepers) {
        for (const pid_t process : ChildrenAtAGlance(keeper)) {
          if (process != asleep_) Seize(process);
        }
      }
    }
  }

  // Of one that we trace: from here on its number stays its own; before, it may have become that of somebody else.
  void Expect(pid_t thread) {
    if (!world_.empty() && PidNamespaceOf(thread) != world_) strangers_.insert(thread);
    moving_.insert(thread);
  }

  // It was born to one that was seized, or has ended.
  static bool IsOurs(pid_t thread) {
    const std::string status = StatusOf(thread);
    return Field(status, "TracerPid") == std::to_string(::getpid()) || CannotRun(thread);
  }

  // Each is reported once: stopped, or ended. A signal that it was about to get reaches it when we are gone.
  void AwaitStops(Clock::time_point end) {
    while (!moving_.empty() && Clock::now() < end) {
      int status = 0;
      const pid_t thread = ::waitpid(-1, &status, __WALL | WNOHANG);
      if (thread > 0) {
        Stopped(thread, status);
        continue;
      }
      std::erase_if(moving_,
                    [&](pid_t one) { return !strangers_.contains(one) && WaitsForTheBridge(one); });
      ::usleep(kLookAgainUs);
    }
  }

  // A stranger can only be let go when it is stopped; so can its child.
  void Stopped(pid_t thread, int status) {
    constexpr int kEventShift = 16;
    unsigned long child = 0;
    const int event = status >> kEventShift;
    if (known_.insert(thread).second) Expect(thread);
    if ((event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
         event == PTRACE_EVENT_CLONE) &&
        ::ptrace(PTRACE_GETEVENTMSG, thread, nullptr, &child) == 0 &&
        known_.insert(static_cast<pid_t>(child)).second)
      Expect(static_cast<pid_t>(child));
    moving_.erase(thread);
    if (strangers_.erase(thread) > 0) ::ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
  }

  const pid_t shim_, asleep_;
  const std::string world_;  // its pid namespace; "": nobody may know
  std::set<pid_t> known_, moving_, strangers_;
  std::set<pid_t> free_;  // whom somebody else traces, or nobody may
};

[[noreturn]] void Trace(Tracer tracer, const std::vector<pid_t>& processes, const Fd& session) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  char byte = static_cast<char>(std::min(tracer.StopAll(processes), kMostStillRunning));
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

Standstill::Standstill(const Session::Parts& parts, Shell shell) {
  if (parts.processes.empty()) return;
  if (shell == Shell::kWaits && OnlyTheShellIsThere(parts)) return;
  const pid_t shim = parts.world->init_pid();
  const pid_t asleep = shell == Shell::kWaits ? parts.shell : -1;
  std::vector<pid_t> processes = ProcessesOfCommands(shim);
  std::erase(processes, asleep);
  if (processes.empty()) return;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    parts.log.Warn("nobody could be stopped", {{"why", std::strerror(errno)}});
    return;
  }
  Fd ours(ends[0]), tracers(ends[1]);
  tracer_ = ::fork();
  if (tracer_ == 0) {
    ours.Reset();
    Trace(Tracer(shim, asleep), processes, tracers);
  }
  if (tracer_ < 0) {
    parts.log.Warn("nobody could be stopped", {{"why", std::strerror(errno)}});
    return;
  }
  tracers.Reset();
  uint8_t running = 0;
  ssize_t told = 0;
  while ((told = ::read(ours.get(), &running, 1)) < 0 && errno == EINTR) continue;
  if (told != 1)
    parts.log.Warn("nobody could be stopped", {{"why", "the tracer was killed"}});
  else if (running > 0)
    parts.log.Warn("processes could not be stopped", {{"running", running}});
  end_ = std::move(ours);
}

// Before anything else goes on, everybody is let go.
Standstill::~Standstill() {
  if (tracer_ < 0) return;
  end_.Reset();
  while (::waitpid(tracer_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace sandglass::session
