// Finds another name of an object in the project by walking it. Only needed where inodes cannot be anchored in the store, and then
// only for files that had several names. Built on first use. One thread.
#pragma once

#include <functional>
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
  // Every name below an open folder of an object that has several.
  void ForEachLinkBelow(int dir_fd, const std::string& path,
                        const std::function<void(ObjectId, const std::string&)>& each);
  void Add(ObjectId object, const std::string& path) { paths_[object] = path; }

 private:
  using Each = std::function<void(ObjectId, const std::string&)>;
  enum class Which : uint8_t { kAll, kSeveralNames };
  void Walk(int dir_fd, const std::string& path, int depth, Which which, const Each& each);

  const Place& place_;
  bool built_ = false;
  std::unordered_map<ObjectId, std::string> paths_;
};

// Path from the project's root of an open object under any of its names: the one it was opened by, or else, if it has others,
// one found by a walk. nullopt: it has none in the project.
std::optional<std::string> AnyPathOf(const Place& place, const OpenObject& object);

}  // namespace sandglass::undo
