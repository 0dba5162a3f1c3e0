// The environment of a world: a short list of names, and nothing else of the host's.
#pragma once

#include <string>
#include <vector>

namespace sandglass::world {

// NAME=value each. Values come from this process's environment.
std::vector<std::string> WorldEnvironment(const std::string& home);

}  // namespace sandglass::world
