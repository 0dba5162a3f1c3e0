// Finds another name of an object in the project by walking it. Only needed where inodes cannot be anchored in the store, and then
// only for files that had several names. Built on first use. One thread.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "undo/object.h"
#include "undo/place.h"

namespace sandglass::undo {

class LinkIndex {
 public:
  explicit LinkIndex(const Place& place) : place_(place) {}
  // A path at which `object` can be found now.
  std::optional<std::string> Find(ObjectId object);
  void Add(ObjectId object, const std::string& path) { paths_[object] = path; }

 private:
  void Build(int dir_fd, const std::string& path, int depth);

  const Place& place_;
  bool built_ = false;
  std::unordered_map<ObjectId, std::string> paths_;
};

}  // namespace sandglass::undo
