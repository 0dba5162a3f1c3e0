// The folders of the host's system that a world of root can have an overlay of, so that it can install packages: what it changes
// there goes to a layer of its own, and the host's folders stay as they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sandglass::world {

struct SystemFolder {
  std::string path;           // real
  std::string why_read_only;  // "": it can be the lower folder of an overlay
};

// Those that this machine has, judged by what is mounted now.
std::vector<SystemFolder> SystemFolders();

// "": nothing is mounted below the folder. Else what. Pure: the text is that of /proc/self/mountinfo.
std::string MountBelowFolder(std::string_view mountinfo, std::string_view folder);

struct OverlayFolders {
  std::string upper, work;
};
// Makes what is missing of the folders of one overlay in the layer of the system.
Result<OverlayFolders> MakeOverlayFolders(const std::string& system_layer,
                                          const std::string& folder);

}  // namespace sandglass::world
