#include "tests/model/inventory.h"

#include <fcntl.h>

#include <algorithm>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "tests/support/tree_walk.h"

namespace sandglass::model {
namespace {

Spot Look(int root_fd, std::string path) {
  Spot spot{.path = std::move(path)};
  spot.exists = fstatat(root_fd, spot.path.c_str(), &spot.st, AT_SYMLINK_NOFOLLOW) == 0;
  struct stat parent;
  const std::string parent_path(ParentOf(spot.path));
  spot.parent_exists = spot.exists || parent_path.empty() ||
                       (fstatat(root_fd, parent_path.c_str(), &parent, AT_SYMLINK_NOFOLLOW) == 0 &&
                        S_ISDIR(parent.st_mode));
  return spot;
}

bool SameInode(const Spot& a, const Spot& b) {
  return a.exists && b.exists && a.st.st_ino == b.st.st_ino && a.st.st_dev == b.st.st_dev;
}

}  // namespace

const std::vector<std::string>& DirectoryPaths() {
  static const std::vector<std::string> kPaths = {"a", "b", "c", "a/d", "b/d", "c/d"};
  return kPaths;
}

const std::vector<std::string>& FileNames() {
  static const std::vector<std::string> kNames = {"f0", "f1", "f2", "odd\n\xff"};
  return kNames;
}

Inventory::Inventory(int root_fd, uint32_t directories) : root_fd_(root_fd) {
  for (const std::string& name : FileNames()) spots_.push_back(Look(root_fd, name));
  for (uint32_t i = 0; i < directories; ++i) {
    const std::string& dir = DirectoryPaths()[i];
    for (const std::string& name : FileNames())
      spots_.push_back(Look(root_fd, JoinPath(dir, name)));
    spots_.push_back(Look(root_fd, dir));
    spots_.back().for_directory = true;
  }
}

const Spot* Inventory::Pick(uint32_t choice, const Predicate& fits) const {
  for (size_t i = 0; i < spots_.size(); ++i) {
    const Spot& spot = spots_[(choice + i) % spots_.size()];
    if (fits(spot)) return &spot;
  }
  return nullptr;
}

const Spot* Inventory::PeerOf(const Spot& spot) const {
  const auto found = std::find_if(spots_.begin(), spots_.end(), [&](const Spot& other) {
    return &other != &spot && SameInode(spot, other);
  });
  return found == spots_.end() ? nullptr : &*found;
}

bool Inventory::HasPeer(const Spot& spot) const { return PeerOf(spot) != nullptr; }

bool Inventory::IsEmptyDirectory(const Spot& spot) const {
  if (!spot.is_directory()) return false;
  Result<Fd> dir = OpenBeneath(root_fd_, spot.path, O_RDONLY | O_DIRECTORY);
  if (!dir.ok()) return false;
  Result<std::vector<std::string>> names = test::ListDirectory(dir->get());
  return names.ok() && names->empty();
}

}  // namespace sandglass::model
