// Running programs: the kernel lets nobody write to one (ETXTBSY). A rewind gives its names a fresh inode instead, which is exact only if
// all of them are in the project. One thread.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "undo/looker.h"
#include "undo/objects_table.h"
#include "undo/place.h"
#include "undo/step_view.h"

namespace sandglass::undo {

struct NamesInProject {
  std::vector<std::string> paths;
  bool all;  // false: it has names elsewhere, outside of the project or kept by a step
};

// The names of an object that has `path`. Walks the project if there are several.
NamesInProject NamesOf(const Place& place, ObjectId object, const FileStat& stat,
                       const std::string& path);

// Finds what taking a step back would have to write to while it runs, where no fresh inode can take its place.
class RunningPrograms {
 public:
  RunningPrograms(const Place& place, const ObjectsTable& objects, const StepView& view)
      : place_(place), objects_(objects), view_(view) {}
  // Of the object at `now`, which had `path`.
  std::optional<Conflict> Check(const std::string& path, const std::string& now,
                                const Found& found);

 private:
  bool IsWritten(ObjectId object);

  const Place& place_;
  const ObjectsTable& objects_;
  const StepView& view_;
  std::optional<std::unordered_set<ObjectId>> written_;  // by the step; when first asked
};

}  // namespace sandglass::undo
