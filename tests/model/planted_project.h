// The project that every sequence starts from.
#pragma once

#include <cstdint>
#include <string>

namespace sandglass::model {

// Fills the empty folder: every size class, hard links, a symlink, xattrs, odd names, old times.
void PlantProject(const std::string& project, uint32_t salt);

}  // namespace sandglass::model
