// Place: a project folder and its undo store, opened once, with what was found out about the ground they stand on.
//
// Both are reached through descriptors from here on, never through absolute paths again, so that nothing that happens to the
// folders above can lead us elsewhere. Immutable after Open except for the statistics; any thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "undo/capture_stats.h"
#include "undo/object.h"
#include "undo/undo_log.h"

namespace sandglass::undo {

struct Place {
  std::string project_path, store_path;
  Fd root;   // of the project, O_RDONLY
  Fd store;  // of the store
  Identifier identifier;
  ObjectId root_id;
  uint64_t root_mount = 0;
  bool root_encrypted = false;
  StoreAbilities abilities;
  std::array<uint8_t, 16> boot_id{};
  mutable CaptureStats stats;
};

enum class StoreAccess : uint8_t { kReadOnly, kReadWrite };

// Opens both folders (creating the store's if need be) and probes. Does not look at what the store holds.
Result<std::unique_ptr<Place>> OpenPlace(const UndoPaths& paths, StoreAccess access);

// The folder for everything that Sandglass keeps of its user.
std::filesystem::path StateFolder();
// The name under which things of a project are filed, from its real path.
std::string PathKey(const std::filesystem::path& real);
// Creates the folder `path`, private to its owner, and those above that are missing. `what` is for the error.
Status MakeFolders(const std::string& path, std::string_view what);

// Creates `name` below `dir_fd` if it is missing and opens it.
Result<Fd> OpenOrMakeDir(int dir_fd, const char* name);
Result<Fd> OpenSubdir(int dir_fd, const char* name);
bool NameExists(int dir_fd, const char* name);
// Empty if it cannot be read.
std::vector<std::string> ListNames(int dir_fd);

}  // namespace sandglass::undo
