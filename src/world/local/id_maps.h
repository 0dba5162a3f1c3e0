// The ids of a world's user namespace: those of the host, one to one.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace sandglass::world {

// A map of all ids that `own_map` (a text as in /proc/self/uid_map) knows to themselves. Pure.
std::string IdentityMap(std::string_view own_map);

// For the process `pid`, which has just got its user namespace. Root: all ids. Anyone else: the own user and group, and the right
// to drop supplementary groups is given up, because it could be a way around a group that is denied something.
Status MapIds(pid_t pid);

}  // namespace sandglass::world
