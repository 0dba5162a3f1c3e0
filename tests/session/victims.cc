#include "tests/session/victims.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/io.h"
#include "base/process_tree.h"
#include "tests/support/must.h"

namespace sandglass::test {
namespace {

// The last number in this line is its number in its own namespace.
bool IsFirstOfItsNamespace(pid_t pid) {
  const auto status = ReadFileAt(AT_FDCWD, fmt::format("/proc/{}/status", pid).c_str(), 1 << 20);
  if (!status.ok()) return false;
  const size_t at = status->find("\nNSpid:");
  if (at == std::string::npos) return false;
  const std::string line = status->substr(at + 1, status->find('\n', at + 1) - at - 1);
  return line.ends_with("\t1");
}

}  // namespace

std::string_view NameOf(Victim victim) {
  switch (victim) {
    case Victim::kSession:
      return "session";
    case Victim::kBridge:
      return "bridge";
    case Victim::kShim:
      return "shim";
    case Victim::kKeeper:
      return "keeper";
    case Victim::kAll:
      return "all";
  }
  return "";
}

Cast CastOf(pid_t session) {
  Cast cast{.session = session};
  for (const pid_t child : ChildrenOf(session))
    (IsFirstOfItsNamespace(child) ? cast.shims : cast.bridges).push_back(child);
  for (const pid_t shim : cast.shims) cast.keepers = ChildrenOf(shim);
  return cast;
}

bool Kill(const Cast& cast, Victim victim) {
  std::vector<pid_t> pids;
  const auto add = [&](const std::vector<pid_t>& more) {
    pids.insert(pids.end(), more.begin(), more.end());
  };
  const bool all = victim == Victim::kAll;
  if (all || victim == Victim::kSession) pids.push_back(cast.session);
  if (all || victim == Victim::kBridge) add(cast.bridges);
  if (all || victim == Victim::kShim) add(cast.shims);
  if (all || victim == Victim::kKeeper) add(cast.keepers);
  for (const pid_t pid : pids) ::kill(pid, SIGKILL);
  return !pids.empty();
}

void AdoptOrphans() { MustCall(::prctl(PR_SET_CHILD_SUBREAPER, 1), "become a subreaper"); }

std::vector<pid_t> SurvivorsAfter(std::chrono::seconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    std::vector<pid_t> alive = DescendantsOf(::getpid());
    if (alive.empty() || std::chrono::steady_clock::now() > end) return alive;
    ::usleep(2000);
  }
}

}  // namespace sandglass::test
