// Processes as /proc shows them. One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace sandglass {

// The living processes below `ancestor`, without itself and without those that have ended and wait to be reaped. A process that is
// born meanwhile may be missed: whoever wants to end all asks again until there are none.
std::vector<pid_t> DescendantsOf(pid_t ancestor);
// The same, but only those whose parent it is now.
std::vector<pid_t> ChildrenOf(pid_t parent);
// When it started, in ticks since the machine did: with its pid that names one process for good. Nullopt: it is gone, or has ended and
// waits to be reaped.
std::optional<uint64_t> StartTimeOf(pid_t pid);

}  // namespace sandglass
