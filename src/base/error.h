// Error: what went wrong, in a form that both a program and a person can use.
//
// `code` is stable and part of the public contract (its string form appears in every interface);
// `message` says what happened and what to do about it. Where a system call failed, `sys_errno`
// keeps the kernel's own answer so that a bridge can hand it to the caller unchanged. Value type;
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sandglass {

enum class Code : uint8_t {
  kInvalid,        // the request makes no sense; the caller must change it
  kNotFound,       // the named thing does not exist
  kExists,         // the named thing exists already
  kDenied,         // permission or policy says no
  kConflict,       // a person changed something in between; nothing was touched
  kCorrupt,        // stored data fails its checksum or does not parse
  kBusy,           // someone else uses it now; try again later
  kLocked,         // another process holds the store
  kUnsupported,    // this place or kernel cannot do it
  kNoSpace,        // disk full or quota reached
  kLimit,          // a configured limit was reached
  kIo,             // the system failed in a way that no other code describes
  kVersion,        // the store was written by another format version
  kUnprotected,    // the step was not recorded in full and cannot be undone
  kNotRestorable,  // undo could not be exact here, so the operation is refused
  kFrozen,         // the object is kept for undo and must not change
  kOutsideRoot,    // a path leads out of the project
  kCancelled,      // someone ended it before it finished
  kForeign,        // the store or the place belongs to another project
};

// The stable spelling, e.g. "not_found".
std::string_view CodeName(Code code);

class Error {
 public:
  Error(Code code, std::string message, int sys_errno = 0)
      : code_(code), sys_errno_(sys_errno), message_(std::move(message)) {}

  // The failure of a system call: `what` names the call and its object, e.g. "open src/main.cc".
  static Error FromErrno(int sys_errno, std::string_view what);

  Code code() const { return code_; }
  int sys_errno() const { return sys_errno_; }
  const std::string& message() const { return message_; }

  // The same error with "context: " in front of its message.
  Error WithContext(std::string_view context) const;
  // For people and logs: "not_found: open src/main.cc: No such file or directory".
  std::string ToString() const;

 private:
  Code code_;
  int sys_errno_;
  std::string message_;
};

// What a file system bridge answers for an error: the kernel's own errno where there was one.
int ErrnoFor(const Error& error);

}  // namespace sandglass
