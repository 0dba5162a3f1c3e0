// What undo tells, as lines for a person. Pure functions. undo/report_json.h has the same for programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "undo/types.h"

namespace sandglass::cli {

// "2 created, 1 deleted"; "no changes".
std::string CountsText(const undo::ChangeCounts& counts);
// One line for each entry.
std::string HistoryText(const std::vector<undo::HistoryEntry>& history);
// "created   src/a.txt (12 B)"
std::string ChangeText(const undo::Change& change);
// A file that programs outside run or obey, and that the step left behind: "git runs it". nullopt: there is nothing to say.
std::optional<std::string_view> FlagOf(const undo::Change& change);
// What a summary says of such files: ".envrc (direnv runs it) and 2 more"; "": there is none.
std::string FlagsText(const std::vector<undo::Change>& changes);
Json FlagsToJson(const std::vector<undo::Change>& changes);
// "edited    src/a.txt: has been changed since"
std::string ConflictText(const undo::Conflict& conflict);
// Indented lines for all parts of the report; of long lists only the first, how many more there are, and `all`: "--json lists all".
std::string RewindText(const undo::RewindReport& report, std::string_view all);
// "3, 2, 1"
std::string StepsText(const std::vector<StepId>& steps);
// What opening the store did; "" when it had nothing to do.
std::string RecoveryText(const undo::RecoveryReport& recovery);

}  // namespace sandglass::cli
