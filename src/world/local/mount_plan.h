// What a world sees, as a list of mounts on top of the host's root, which is there read-only.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "world/local/child/plan.h"
#include "world/local/spec.h"

namespace sandglass::world {

// Where the world's home is: see LocalWorldSpec::home.
std::string HomeOf(const LocalWorldSpec& spec);

// Makes the folders of the layer. Looks at the host's files, so it is only right for a world that is built at once.
// kInvalid: a path that cannot be a project or be hidden. kNotFound: it is not there. Others as the kernel says.
Result<std::vector<MountEntry>> PlanMounts(const LocalWorldSpec& spec);

}  // namespace sandglass::world
