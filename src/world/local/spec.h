// What a local world is to be. Value types.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "world/local/limits.h"
#include "world/local/without_landlock.h"

namespace sandglass::world {

// A world has its projects read-only; kReadWrite means that the bridge will perform its changes. kStaged: it has an overlay of the
// project instead, and what it changes is only in the folder of the stage.
enum class Access : uint8_t { kReadWrite, kReadOnly, kStaged };

struct WorldProject {
  std::string path;
  Access access = Access::kReadWrite;
  // kStaged: folders of overlayfs, on one file system; docs/world.md says which ones will do.
  std::string upper = {}, work = {};
};

struct LocalWorldSpec {
  // Absolute, without symlinks. Commands start in the first one.
  std::vector<WorldProject> projects;
  // A folder of the host that keeps the world's own home, tmp, var_tmp and run; "": they live in memory and go with the world.
  std::string layer;
  // A folder of the host that keeps what the world changes in folders of the system (system_folders.h), for worlds of root; in use by
  // no other world, and one that can be the upper layer of an overlay. "": the system is read-only.
  std::string system_layer;
  // Where the world's home is; "": $HOME, and /tmp/home if there is no such folder.
  std::string home;
  // The home of the user's account, which is hidden too if that is another one; "": what /etc/passwd says.
  std::string account_home;
  // Paths of the host that are visible as they are. What is writable there is written natively, and no undo protects it.
  std::vector<std::string> extra_read_only;
  std::vector<std::string> extra_read_write;
  // Files and folders of the host that the world must not see, wherever they lie: undo stores, our own state. They must exist.
  std::vector<std::string> hidden_paths;
  // Did commands have a chance to change what lies in this folder of the host, one without symlinks? Symlinks there do not decide
  // what of the host's home is shown. Projects and writable extra paths of this world are such anyway. Null: no others are known.
  std::function<bool(const std::string& folder)> changed_by_commands;
  // Installed by each command before its exec; its listener is handed to the host. Empty: commands are not supervised. Nobody
  // answers notifications before Release(), so it must let sendmsg, read, write, close, close_range and execve pass.
  std::vector<sock_filter> command_filter;
  std::string shim_path;
  Limits limits;
  // None: a kernel without the second lock on writing (child/write_places.h) is refused.
  std::optional<WithoutLandlock> without_landlock = {};
};

}  // namespace sandglass::world
