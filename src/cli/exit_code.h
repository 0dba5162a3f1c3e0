// What the program's exit code says. The one place where an Error becomes one.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace sandglass::cli {

// Of `run` the exit code is the command's own, and may be any number.
enum class ExitCode : uint8_t {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,
  kConflict = 3,
  kNotRun = 125,
  kRefused = 126
};

struct ExitCodeRow {
  ExitCode code;
  std::string_view meaning;
};
// For help and the manual page.
inline constexpr ExitCodeRow kExitCodes[] = {
    {ExitCode::kOk, "done"},
    {ExitCode::kFailed, "failed; the message says why"},
    {ExitCode::kUsage, "wrong usage; of run and shell that is 125"},
    {ExitCode::kConflict,
     "someone else changed something in between, and nothing was touched; also by a dry run that "
     "finds such a conflict"},
    {ExitCode::kNotRun,
     "of run and shell alone: the command was not run, or not to its end, for a reason of ours, or "
     "some of "
     "what it staged was not applied"},
    {ExitCode::kRefused,
     "of run alone: it was refused, and nothing ran: a protection or a limit cannot be had here, "
     "or the project is none that can be protected. Also if the command may not be executed. All "
     "its other exit codes are the command's: 128+n for signal n, 127 if there is no such "
     "program"},
};

ExitCode ExitCodeFor(Code code);
// Of `run`, where nothing ran. What fails later is kNotRun.
ExitCode ExitCodeOfRun(const Error& error);

}  // namespace sandglass::cli
