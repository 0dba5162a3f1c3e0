// What undo, redo and restore print.
#pragma once

#include <string_view>

#include "base/result.h"
#include "cli/console.h"
#include "undo/types.h"

namespace sandglass::cli {

struct RewindWords {
  std::string_view done;     // "undone"
  std::string_view planned;  // "would be undone"
};

// Prints the report of a rewind that was made, or that there was nothing to do.
void PrintRewind(const undo::RewindReport& report, const undo::RecoveryReport& recovery,
                 const RewindWords& words, Console& console);
// Prints what a rewind would do. Fails as the rewind itself would if conflicts are in its way and it is not to be forced.
Status PrintPlan(const undo::RewindReport& plan, const undo::RecoveryReport& recovery,
                 const RewindWords& words, undo::Force force, Console& console);
// Adds the conflicts that the plan found to the error that --json prints; the message itself names
// them for people.
void ExplainRefusal(const Result<undo::RewindReport>& plan, Console& console);

}  // namespace sandglass::cli
