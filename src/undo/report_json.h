// What undo tells, as JSON: for --json, and for a program that asked another one to rewind. Pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "undo/types.h"

namespace sandglass::undo {

Json ToJson(const StepInfo& step);
Json ToJson(const Barrier& barrier);
Json ToJson(const Change& change);
Json ToJson(const std::vector<Conflict>& conflicts);
Json ToJson(const RewindReport& report);
Json ToJson(const RecoveryReport& recovery);

// The inverse. kInvalid: it is none, and the message names the member.
Result<RewindReport> RewindReportFromJson(const Json& json);
Result<RecoveryReport> RecoveryReportFromJson(const Json& json);
// Of the member `key`.
Result<std::vector<Conflict>> ConflictsFromJson(const Json& object, std::string_view key);

}  // namespace sandglass::undo
