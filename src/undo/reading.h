// Reading steps from a store without owning it: summaries, diffs, manifests. Only reads; folders may vanish under it (an owner evicts),
// which then is kNotFound. Any thread.
#pragma once

#include <initializer_list>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "undo/object.h"
#include "undo/place.h"
#include "undo/types.h"

namespace sandglass::undo {

// kNotFound: no such step.
Result<std::vector<Change>> ReadChanges(const Place& place, StepId step);
Result<StepDiff> ReadDiff(const Place& place, StepId step);
Result<std::string> ReadManifest(const Place& place, StepId step);

// How many names the steps in these folders keep of which objects.
Result<std::unordered_map<ObjectId, uint32_t>> CollectAnchored(
    std::initializer_list<int> step_folders);
// Every identity that stands in the journals in these folders.
Result<std::unordered_set<ObjectId>> CollectIdentities(std::initializer_list<int> step_folders);

}  // namespace sandglass::undo
