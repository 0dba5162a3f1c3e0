// The one table of system calls that supervision knows: what the filter does with each, where its paths and descriptors are,
// what kind of change it makes and which handler performs it. The filter, the dispatcher and docs/supervised_calls.md are made
// from it, so a call is added in one place.
//
// Everything that is not in the table runs natively; in a project it then meets the read-only mount. Constant data; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace sandglass::bridge {

enum class OpClass : uint8_t {
  kNames,
  kContent,
  kMetadata,
  kQuestion,
  kBookkeeping,
  kNative,  // lets a request of a call pass whose other requests are refused
  kForbidden
};

enum class Handler : uint8_t {
  kOpen,
  kOpen2,
  kRemove,
  kRename,
  kLink,
  kSymlink,
  kMakeDir,
  kMakeNode,
  kTruncate,
  kAllocate,
  kChmod,
  kChown,
  kSetTimes,
  kSetXattr,
  kRemoveXattr,
  kSetInodeFlags,
  kAccess,
  kStatFs,
  kSocket,
  kBind,
  kConnect,
  kUmask,
  kRoot,
  kCredentials,
  kNone,  // the filter answers
};
inline constexpr size_t kHandlers = static_cast<size_t>(Handler::kNone) + 1;

// Indexes of arguments; -1: there is none. A path without a dirfd starts at the working directory.
struct PathArg {
  int8_t dirfd = -1;
  int8_t path = -1;
};

// When the filter takes the row: always, or by the lower half of one argument.
struct When {
  enum class Kind : uint8_t { kAlways, kBits, kEquals, kBetween } kind = Kind::kAlways;
  uint8_t arg = 0;
  uint32_t operand = 0;
  uint32_t last = 0;  // kBetween: from `operand` to it
};

struct SyscallRule {
  const char* name;
  uint32_t number;
  OpClass op;
  Handler handler;
  PathArg at = {};
  PathArg to = {};    // rename, link: the new name
  int8_t fd = -1;     // the object by descriptor instead of a path
  int8_t flags = -1;  // AT_* or O_* flags
  int8_t value =
      -1;  // the first argument of what is to be done (mode, owner, times, ...); the rest follows it
  uint32_t fixed = 0;  // flags, or a layout, that the call implies
  When when = {};
  uint16_t error = 0;  // not 0: the filter answers with it
};

// How utime() and its relatives spell times in memory; `fixed` of their rows.
enum class TimeLayout : uint32_t { kTimespec, kTimeval, kSeconds };

enum class Interface : uint8_t { kAmd64, kI386 };

// Rows of one number lie together; the first that applies counts. Of the 32-bit interface, calls
// that look the same in registers and memory are supervised, others are refused or meet the read-only mount.
std::span<const SyscallRule> SyscallTable(Interface interface = Interface::kAmd64);

// The row that the filter notified for; null: none.
const SyscallRule* FindRule(Interface interface, uint32_t number,
                            std::span<const uint64_t, 6> args);

// docs/supervised_calls.md.
std::string SyscallTableAsMarkdown();

}  // namespace sandglass::bridge
