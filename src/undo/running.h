// Running programs: the kernel lets nobody write to one (ETXTBSY). A rewind gives its names a fresh inode instead, which is exact only if
// all of them are in the project. Free functions; any thread.
#pragma once

#include <optional>
#include <string>
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

// Would taking the step back have to write to the object at `now`, which had `path`, while it runs and no fresh inode can take its place?
std::optional<Conflict> CheckRunning(const Place& place, const ObjectsTable& objects,
                                     const StepView& view, const std::string& path,
                                     const std::string& now, const Found& found);

}  // namespace sandglass::undo
