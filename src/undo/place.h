// Place: a project folder and its undo store, opened once, with what was found out about the ground they stand on.
//
// Both are reached through descriptors from here on, never through absolute paths again, so that nothing that happens to the
// folders above can lead us elsewhere. Immutable once it is probed except for the statistics; any thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "undo/capture_stats.h"
#include "undo/object.h"
#include "undo/undo_log.h"

namespace sandglass::undo {

// A folder that was made a moment ago, and goes again with this unless it is to stay. What somebody put into it keeps it.
class FreshFolder {
 public:
  FreshFolder() = default;  // none
  explicit FreshFolder(std::string path) : path_(std::move(path)) {}
  ~FreshFolder();
  FreshFolder(FreshFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  FreshFolder& operator=(FreshFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }

  void Keep() { path_.clear(); }

 private:
  std::string path_;
};

struct Place {
  std::string project_path, store_path;
  FreshFolder fresh_store;  // kept once the store is one
  Fd root;                  // of the project, O_RDONLY
  Fd store;                 // of the store
  FileSystemId file_system;
  Identifier identifier;
  ObjectId root_id;
  uint64_t root_mount = 0;
  bool root_encrypted = false;
  StoreAbilities abilities;
  std::array<uint8_t, 16> boot_id{};
  mutable CaptureStats stats;
};

enum class StoreAccess : uint8_t { kReadOnly, kReadWrite };

// Opens both folders, creating the store's if need be. Of what the store holds it only asks for whom, and changes nothing.
Result<std::unique_ptr<Place>> OpenPlace(const UndoPaths& paths, StoreAccess access);
// Finds out what can be done here, with two files that come and go in the store: only of a store that is ours.
Status ProbeStore(Place& place);

struct StoreOwner;
// The identities of a folder's file system: those that `owner` has, if it is this folder, else new ones. The kernel may tell more about a
// file system today, or less, than when the store was signed.
Result<Identifier> IdentifierFor(int root_fd, const FileSystemId& file_system,
                                 const StoreOwner* owner);

// The folder for everything that Sandglass keeps of its user. kInvalid: SANDGLASS_HOME is no absolute path. kNotFound: the user has no
// home folder.
Result<std::filesystem::path> StateFolder();
// The name under which things of a project are filed, from its real path.
std::string PathKey(const std::filesystem::path& real);
// Creates the folder `path`, private to its owner, and those above that are missing; says what it made of `path` itself. `what` is for
// the error.
Result<FreshFolder> MakeFolders(const std::string& path, std::string_view what);

// Creates `name` below `dir_fd` if it is missing and opens it.
Result<Fd> OpenOrMakeDir(int dir_fd, const char* name);
Result<Fd> OpenSubdir(int dir_fd, const char* name);
// Opens a regular file of the store, with O_CREAT in `flags` as a private one. kCorrupt: a symlink or something else has its name;
// nothing is followed out of the store, and nothing waits.
Result<Fd> OpenStoreFile(int dir_fd, const char* name, int flags);
bool NameExists(int dir_fd, const char* name);
Result<std::vector<std::string>> ListNames(int dir_fd);
// The same where a folder that cannot be read is as good as an empty one.
std::vector<std::string> ListNamesIfReadable(int dir_fd);

}  // namespace sandglass::undo
