#include "base/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace sandglass {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kInvalid:
      return "invalid";
    case Code::kNotFound:
      return "not_found";
    case Code::kExists:
      return "exists";
    case Code::kDenied:
      return "denied";
    case Code::kConflict:
      return "conflict";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kBusy:
      return "busy";
    case Code::kLocked:
      return "locked";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kNoSpace:
      return "no_space";
    case Code::kLimit:
      return "limit";
    case Code::kIo:
      return "io";
    case Code::kVersion:
      return "version";
    case Code::kUnprotected:
      return "unprotected";
    case Code::kNotRestorable:
      return "not_restorable";
    case Code::kFrozen:
      return "frozen";
    case Code::kOutsideRoot:
      return "outside_root";
    case Code::kCancelled:
      return "cancelled";
    case Code::kForeign:
      return "foreign";
  }
  return "unknown";
}

namespace {

Code CodeForErrno(int sys_errno) {
  switch (sys_errno) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
      return Code::kNotFound;
    case EEXIST:
    case ENOTEMPTY:
      return Code::kExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kDenied;
    case EBUSY:
    case ETXTBSY:
    case EAGAIN:
      return Code::kBusy;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Code::kNoSpace;
    case EINVAL:
    case ENAMETOOLONG:
    case EBADF:
      return Code::kInvalid;
    case EXDEV:
    case EOPNOTSUPP:
    case ENOSYS:
    case EMLINK:
      return Code::kUnsupported;
    default:
      return Code::kIo;
  }
}

}  // namespace

Error Error::FromErrno(int sys_errno, std::string_view what) {
  return Error(CodeForErrno(sys_errno), fmt::format("{}: {}", what, std::strerror(sys_errno)),
               sys_errno);
}

Error Error::WithContext(std::string_view context) const {
  return Error(code_, fmt::format("{}: {}", context, message_), sys_errno_);
}

std::string Error::ToString() const { return fmt::format("{}: {}", CodeName(code_), message_); }

int ErrnoFor(const Error& error) {
  if (error.sys_errno() != 0) return error.sys_errno();
  switch (error.code()) {
    case Code::kInvalid:
      return EINVAL;
    case Code::kNotFound:
      return ENOENT;
    case Code::kExists:
      return EEXIST;
    case Code::kDenied:
      return EPERM;
    case Code::kConflict:
      return EBUSY;
    case Code::kCorrupt:
      return EIO;
    case Code::kBusy:
      return EBUSY;
    case Code::kLocked:
      return EBUSY;
    case Code::kUnsupported:
      return EOPNOTSUPP;
    case Code::kNoSpace:
      return ENOSPC;
    case Code::kLimit:
      return ENOSPC;
    case Code::kIo:
      return EIO;
    case Code::kVersion:
      return EIO;
    case Code::kUnprotected:
      return EPERM;
    case Code::kNotRestorable:
      return EPERM;
    case Code::kFrozen:
      return EPERM;
    case Code::kOutsideRoot:
      return EXDEV;
    case Code::kCancelled:
      return EINTR;
    case Code::kForeign:
      return EPERM;
  }
  return EIO;
}

}  // namespace sandglass
