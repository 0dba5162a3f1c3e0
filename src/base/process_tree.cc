#include "base/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "base/fd.h"

namespace sandglass {
namespace {

struct Process {
  pid_t parent = 0;
  char state = '?';
  uint64_t start = 0;
};

// "pid (name) state ppid ...": the name may hold anything, also ")".
std::optional<Process> ParseStat(const char* text) {
  const char* after_name = std::strrchr(text, ')');
  Process process;
  if (after_name == nullptr ||
      std::sscanf(after_name,
                  ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
                  "%" SCNu64,
                  &process.state, &process.parent, &process.start) != 3)
    return std::nullopt;
  return process;
}

std::optional<Process> ReadProcess(int proc, std::string_view pid) {
  const Fd file(::openat(proc, fmt::format("{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  char text[512];
  const ssize_t size = ::read(file.get(), text, sizeof(text) - 1);
  if (size <= 0) return std::nullopt;
  text[size] = '\0';
  return ParseStat(text);
}

std::map<pid_t, Process> AllProcesses() {
  std::map<pid_t, Process> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (!proc) return all;
  while (const dirent* entry = ::readdir(proc.get())) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc()) continue;
    if (const auto process = ReadProcess(::dirfd(proc.get()), name)) all.emplace(pid, *process);
  }
  return all;
}

bool IsAlive(const Process& process) { return process.state != 'Z' && process.state != 'X'; }

bool IsBelow(const std::map<pid_t, Process>& all, pid_t pid, pid_t ancestor) {
  // Read while processes came and went, the map may even hold a circle.
  for (size_t steps = 0; steps <= all.size(); ++steps) {
    const auto found = all.find(pid);
    if (found == all.end()) return false;
    pid = found->second.parent;
    if (pid == ancestor) return true;
  }
  return false;
}

}  // namespace

std::vector<pid_t> DescendantsOf(pid_t ancestor) {
  const std::map<pid_t, Process> all = AllProcesses();
  std::vector<pid_t> descendants;
  for (const auto& [pid, process] : all) {
    if (IsAlive(process) && IsBelow(all, pid, ancestor)) descendants.push_back(pid);
  }
  return descendants;
}

std::optional<uint64_t> StartTimeOf(pid_t pid) {
  const Fd proc(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto process = ReadProcess(proc.get(), fmt::format("{}", pid));
  if (!process || !IsAlive(*process)) return std::nullopt;
  return process->start;
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& [pid, process] : AllProcesses()) {
    if (IsAlive(process) && process.parent == parent) children.push_back(pid);
  }
  return children;
}

}  // namespace sandglass
