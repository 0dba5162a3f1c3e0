// Looker: what has a path now. Meant for paths in order: neighbours share the open folder. One thread.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"
#include "undo/object.h"
#include "undo/place.h"

namespace sandglass::undo {

struct Found {
  ObjectId id;
  FileStat stat;
};

class Looker {
 public:
  explicit Looker(const Place& place) : place_(place) {}
  // nullopt: nothing has that name. Never leaves the project.
  std::optional<Found> At(const std::string& path);
  // The last look failed for lack of permission, not of an object.
  bool denied() const { return denied_; }

 private:
  std::optional<Found> Examine(int dir, const char* name);

  const Place& place_;
  std::string folder_path_;
  Fd folder_;
  bool folder_denied_ = false;
  bool denied_ = false;
};

}  // namespace sandglass::undo
