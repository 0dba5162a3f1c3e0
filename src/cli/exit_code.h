// What the program's exit code says. The one place where an Error becomes one.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace sandglass::cli {

enum class ExitCode : uint8_t { kOk = 0, kFailed = 1, kUsage = 2, kConflict = 3 };

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
};

ExitCode ExitCodeFor(Code code);

}  // namespace sandglass::cli
