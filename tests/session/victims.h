// Who plays which part in a running session, and how they are killed. The one place that knows how to tell the processes apart. One
// thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string_view>
#include <vector>

namespace sandglass::test {

enum class Victim { kSession, kBridge, kShim, kKeeper, kAll };
inline constexpr Victim kVictims[] = {Victim::kSession, Victim::kBridge, Victim::kShim,
                                      Victim::kKeeper, Victim::kAll};
std::string_view NameOf(Victim victim);

struct Cast {
  pid_t session = -1;
  std::vector<pid_t> bridges;
  std::vector<pid_t> shims;    // process 1 of the world
  std::vector<pid_t> keepers;  // between the shim and each command
};
Cast CastOf(pid_t session);

// False: nobody plays that part.
bool Kill(const Cast& cast, Victim victim);

// From now on what our children leave behind becomes our child, so that nobody escapes the next function.
void AdoptOrphans();
// Waits until no descendant of ours is left, and collects them. The pids of those that stayed.
std::vector<pid_t> SurvivorsAfter(std::chrono::seconds patience);

}  // namespace sandglass::test
