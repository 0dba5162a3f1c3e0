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

ExitCode ExitCodeOfRun(const Error& error) {
  switch (error.code()) {
    case Code::kUnsupported:
    case Code::kForeign:
      return ExitCode::kRefused;
    case Code::kDenied:
      // With an errno it is the kernel that denied something to us.
      return error.sys_errno() == 0 ? ExitCode::kRefused : ExitCode::kNotRun;
    case Code::kInvalid:
    case Code::kConflict:
    case Code::kNotFound:
    case Code::kExists:
    case Code::kCorrupt:
    case Code::kBusy:
    case Code::kLocked:
    case Code::kNoSpace:
    case Code::kLimit:
    case Code::kIo:
    case Code::kVersion:
    case Code::kUnprotected:
    case Code::kNotRestorable:
    case Code::kFrozen:
    case Code::kOutsideRoot:
    case Code::kCancelled:
      return ExitCode::kNotRun;
  }
  return ExitCode::kNotRun;
}

}  // namespace sandglass::cli
