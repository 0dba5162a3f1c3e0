#include "cli/exit_code.h"

namespace sandglass::cli {

ExitCode ExitCodeFor(Code code) {
  switch (code) {
    case Code::kInvalid:
      return ExitCode::kUsage;
    case Code::kConflict:
      return ExitCode::kConflict;
    case Code::kNotFound:
    case Code::kExists:
    case Code::kDenied:
    case Code::kCorrupt:
    case Code::kBusy:
    case Code::kLocked:
    case Code::kUnsupported:
    case Code::kNoSpace:
    case Code::kLimit:
    case Code::kIo:
    case Code::kVersion:
    case Code::kUnprotected:
    case Code::kNotRestorable:
    case Code::kFrozen:
    case Code::kOutsideRoot:
    case Code::kCancelled:
    case Code::kForeign:
      return ExitCode::kFailed;
  }
  return ExitCode::kFailed;
}

}  // namespace sandglass::cli
