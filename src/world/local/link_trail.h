// Where a path of the host leads, and which symlinks decide that: whoever can change one of those chooses the end. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sandglass::world {

struct LinkTrail {
  std::string end;  // as realpath() has it
  std::vector<std::string>
      folders;  // of the symlinks on the way, each without symlinks; empty: there are none
};

// nullopt: it leads nowhere. `path` is absolute.
std::optional<LinkTrail> FollowLinks(const std::string& path);

}  // namespace sandglass::world
