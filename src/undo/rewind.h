// Rewind: takes a step back by replaying its journal from the end to the beginning.
//
// Every inverse first looks whether its operation happened at all and who has the name now, so the same code serves rollback, redo
// (taking back what a rollback recorded), recovery after a crash and taking back a rewind that was itself killed. Objects are put back in
// place; what nobody recorded is never removed. Times and flags of directories come last, deepest first.
#pragma once

#include <atomic>
#include <functional>
#include <unordered_set>

#include "base/result.h"
#include "undo/objects_table.h"
#include "undo/place.h"
#include "undo/step_files.h"
#include "undo/step_view.h"
#include "undo/step_writer.h"
#include "undo/types.h"

namespace sandglass::undo {

// Does the table of objects say how the step being taken back left them? Of a step that never closed it knows only what was before.
enum class Signatures : uint8_t { kCurrent, kOutdated };

struct RewindInput {
  const Place& place;
  ObjectsTable& objects;
  const StepView& view;
  StepFiles& files;  // of the step being taken back
  StepWriter* recorder =
      nullptr;                  // records what the rewind does; null: taking back a killed rewind
  StepFiles* origin = nullptr;  // without recorder: the step that the killed rewind was taking back
  Force force = Force::kNo;
  SymlinkPolicy symlinks = SymlinkPolicy::kReadWrite;
  Signatures signatures = Signatures::kOutdated;
  std::atomic<uint64_t>* folder_renames = nullptr;  // counts them, if there is anyone to tell
  const std::unordered_set<ObjectId>* keep =
      nullptr;  // objects that a person changed after a crash, or while the step was open
  std::function<void(size_t done, size_t records)> progress;  // empty: nobody is told
};

// An error leaves the rest undone. With a recorder, the caller takes the recorder's step back; without one, running it again goes on where
// it stopped.
Status Rewind(const RewindInput& input, RewindReport& report);

// Did a rewind with these conflicts leave preimages unused? What somebody else's object keeps out of its name gets one beside; anything else
// that is in the way keeps contents from coming back.
bool LeavesSomething(const std::vector<Conflict>& conflicts);

// The warning about a symlink that the policy keeps from coming back.
std::string LinkLeftOut(std::string_view path);

}  // namespace sandglass::undo
