// The environment of a world: a short list of names, and nothing else of the host's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "world/local/child/plan.h"

namespace sandglass::world {

// The folders of a PATH without those that the host has and a world with these mounts does not see.
std::string VisibleFolders(std::string_view path, const std::vector<MountEntry>& mounts);

// NAME=value each. Values come from this process's environment.
std::vector<std::string> WorldEnvironment(const std::string& home,
                                          const std::vector<MountEntry>& mounts);

}  // namespace sandglass::world
