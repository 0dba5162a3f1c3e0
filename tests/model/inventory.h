// Inventory: what is where in the project right now, over a fixed set of paths that sequences use. Few paths, so that
// operations meet each other often: the same name is deleted, recreated, linked and renamed again and again. Value type.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sandglass::model {

struct Spot {
  std::string path;
  bool for_directory = false;  // directories may move here; other objects live in the other spots
  bool exists = false;
  bool parent_exists = false;
  struct stat st = {};

  bool free() const { return !exists && parent_exists; }
  bool is_file() const { return exists && S_ISREG(st.st_mode); }
  bool is_directory() const { return exists && S_ISDIR(st.st_mode); }
  bool is_other() const { return exists && !S_ISDIR(st.st_mode); }  // a file, symlink, FIFO, ...
  uint64_t size() const { return static_cast<uint64_t>(st.st_size); }
};

class Inventory {
 public:
  using Predicate = std::function<bool(const Spot&)>;

  // Over the first `directories` of DirectoryPaths() and the root.
  Inventory(int root_fd, uint32_t directories);

  // The first that fits, counted from `choice` and around; null: none does. Lives as long as the inventory.
  const Spot* Pick(uint32_t choice, const Predicate& fits) const;
  // Does another spot name the same inode?
  bool HasPeer(const Spot& spot) const;
  const Spot* PeerOf(const Spot& spot) const;
  bool IsEmptyDirectory(const Spot& spot) const;

 private:
  int root_fd_;
  std::vector<Spot> spots_;
};

// The directories and names that sequences are made of; "" (the root) is not among the directories.
const std::vector<std::string>& DirectoryPaths();
const std::vector<std::string>& FileNames();

}  // namespace sandglass::model
