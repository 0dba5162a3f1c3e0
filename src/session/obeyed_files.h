// Files of a project that programs outside of the world run or obey, mostly without being asked: hooks of git, tasks of editors,
// instructions and tools of coding agents. A world may write them; whoever reads what a step did should look at them.
// Pure functions of names, any thread.
#pragma once

#include <optional>
#include <string_view>

namespace sandglass::session {

// Who would run or obey the file at `path` (relative to the project): "git runs it"; nullopt: nobody that we know.
std::optional<std::string_view> WhoObeys(std::string_view path);

}  // namespace sandglass::session
