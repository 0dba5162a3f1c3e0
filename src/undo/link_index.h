// Finds another name of an object in the project by walking it. Only needed where inodes cannot be anchored in the store, and then
// only for files that had several names. Built on first use. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "undo/object.h"
#include "undo/place.h"

namespace sandglass::undo {

class LinkIndex {
 public:
  explicit LinkIndex(const Place& place) : place_(place) {}
  // A path at which `object` can be found now. Walks again if it had one that does not lead to it any more; what gets its first name
  // after the walk has to be added.
  std::optional<std::string> Find(ObjectId object);
  // Has the walk seen every folder? If not, what was not found may still have a name.
  bool complete() const { return complete_; }
  using Each = std::function<void(ObjectId, const std::string&)>;
  enum class Which : uint8_t { kAll, kSeveralNames };
  // Every name below an open folder, or every one of an object that has several.
  void ForEachBelow(int dir_fd, const std::string& path, Which which, const Each& each) {
    Walk(dir_fd, path, which, each);
  }
  void Add(ObjectId object, const std::string& path) { paths_[object] = path; }

 private:
  void Build();
  bool Leads(const std::string& path, ObjectId object) const;
  // Below the folder `top`, which has the path `path`. Needs two descriptors, however deep the tree is.
  void Walk(int top, const std::string& path, Which which, const Each& each);
  // One folder; adds the folders in it to `folders`, by their paths below `top`.
  void WalkFolder(int top, const std::string& below, const std::string& path, Which which,
                  const Each& each, std::vector<std::string>& folders);

  const Place& place_;
  bool built_ = false;
  bool complete_ = true;
  std::unordered_map<ObjectId, std::string> paths_;
};

// Path from the project's root of an open object under any of its names: the one it was opened by, or else, if it has others,
// one found by a walk. nullopt: it has none in the project. kUnsupported: it may have one, but a part of the project cannot be
// searched.
Result<std::optional<std::string>> AnyPathOf(const Place& place, const OpenObject& object);

}  // namespace sandglass::undo
