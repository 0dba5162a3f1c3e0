// What the program's exit code says. The one place where an Error becomes one.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace sandglass::cli {

// Of `run` the exit code is the command's own, and may be any number.
enum class ExitCode : uint8_t { kOk = 0, kFailed = 1, kUsage = 2, kConflict = 3, kNotRun = 125 };

struct ExitCodeRow {
  ExitCode code;
  std::string_view meaning;
};
// For help and the manual page.
inline constexpr ExitCodeRow kExitCodes[] = {
    {ExitCode::kOk, "done"},
    {ExitCode::kFailed, "failed; the message says why"},
    {ExitCode::kUsage, "wrong usage"},
    {ExitCode::kConflict,
     "someone else changed something in between, and nothing was touched; also by a dry run that "
     "finds such a conflict"},
    {ExitCode::kNotRun,
     "of run alone: the command was not run, or not to its end, for a reason of ours, or some of "
     "what "
     "it staged was not applied. All its "
     "other exit codes are the "
     "command's: 128+n for signal n, 126 if it may not be executed, 127 if there is no such "
     "program"},
};

ExitCode ExitCodeFor(Code code);

}  // namespace sandglass::cli
