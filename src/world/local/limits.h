// What a world may use at most. Each limit that is asked for is enforced for the world as a whole, or there is no world: cgroups where
// a writable one is found, else a resource limit of the kernel where that means the same. A limit that nobody asks for does not exist.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sandglass::world {

struct Limits {
  std::optional<uint64_t> memory_bytes;
  std::optional<double> cpus;
  std::optional<uint64_t> pids;  // processes and threads, with the shim and one keeper per command
  std::optional<uint64_t> file_bytes;  // of one file
};

enum class CgroupVersion : uint8_t;

// A resource limit that the world's first process sets for itself.
struct ProcessLimit {
  __rlimit_resource resource = RLIMIT_FSIZE;
  rlim_t value = 0;
};

// Owns the control groups of one world and removes them; the world must be gone by then.
class EnforcedLimits {
 public:
  EnforcedLimits() = default;
  EnforcedLimits(EnforcedLimits&&) = default;
  EnforcedLimits& operator=(EnforcedLimits&&) = delete;
  ~EnforcedLimits();

  // kInvalid: a limit makes no sense. kUnsupported: it cannot be enforced here; the error names it.
  static Result<EnforcedLimits> Prepare(const Limits& limits);

  // Puts the world's first process into the groups, before it does anything.
  Status Join(pid_t pid) const;
  // How many processes the kernel has killed because the memory limit was reached.
  uint64_t OutOfMemoryKills() const;
  const std::vector<ProcessLimit>& process_limits() const { return process_limits_; }
  // By which means, and what is not limited: "memory limit: cgroup v1".
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Status AddProcesses(uint64_t count);
  Status AddByGroup(std::string_view controller, uint64_t amount, std::string_view name);
  Result<CgroupVersion> LimitWhereverPossible(std::string_view controller, uint64_t amount);

  std::vector<std::string> groups_;  // paths
  // One of them, for all limits of version 2: there a process is in a single group.
  std::string group_of_version_two_;
  std::vector<ProcessLimit> process_limits_;
  std::vector<std::string> notes_;
};

}  // namespace sandglass::world
