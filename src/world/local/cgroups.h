// Control groups, version 1 or 2, as far as a world's limits need them. Blocking; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sandglass::world {

enum class CgroupVersion : uint8_t { kOne = 1, kTwo = 2 };

// A folder below which this process might make groups with the controller.
struct CgroupPlace {
  CgroupVersion version = CgroupVersion::kTwo;
  std::string folder;
};

// In order of preference: our own group, then (version 2, where a group with processes can have no limited children) its parent,
// which a service manager may have given to us. Pure: the texts are those of /proc/self/mountinfo and /proc/self/cgroup.
std::vector<CgroupPlace> FindCgroupPlaces(std::string_view mountinfo, std::string_view own_groups,
                                          std::string_view controller);
std::vector<CgroupPlace> FindCgroupPlaces(std::string_view controller);

// A new group with that limit; its path. `amount`: bytes, processes, or thousandths of a CPU.
Result<std::string> MakeCgroup(const CgroupPlace& place, std::string_view controller,
                               uint64_t amount);
// One more limit for a group. An error: it does not have that controller.
Status LimitCgroup(const std::string& group, CgroupVersion version, std::string_view controller,
                   uint64_t amount);
Status JoinCgroup(const std::string& group, pid_t pid);
// As the kernel counts them there; 0 also of a group that does not limit memory.
uint64_t OutOfMemoryKillsIn(const std::string& group);
// Its processes have ended, but the kernel may take a moment to notice.
void RemoveCgroup(const std::string& group);

}  // namespace sandglass::world
