// What a world sees, as a list of mounts on top of the host's root, which is there read-only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
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

// Which path of the host a world with these mounts sees at a path that has no symlinks; none: nothing of the host.
std::optional<std::string> SeenAt(const std::vector<MountEntry>& mounts, std::string_view path);
// Is this a folder of the host that such a world sees no folder at?
bool IsHidden(const std::vector<MountEntry>& mounts, const std::string& folder);

}  // namespace sandglass::world
