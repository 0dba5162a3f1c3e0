// One case of the parity suite: a system call in one situation. The same program performs all cases natively and in a world, each on
// a stage of its own, and prints what came out; the suite compares the two. Knows nothing of Sandglass.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sandglass::parity {

// What is special in a case; the columns of docs/parity.md.
enum class Kind : uint8_t {
  kPlain,
  kMissing,      // the object or its parent does not exist
  kExists,       // the new name is taken
  kNotFolder,    // a file where a folder has to be
  kFolder,       // a folder where a file is usual, also one that is not empty
  kSymlink,      // a symlink at the end or on the way, loops too
  kDangling,     // a symlink that leads nowhere
  kSlash,        // trailing slashes
  kDots,         // `.`, `..` and absolute paths
  kTooLong,      // names and paths
  kBadArgument,  // addresses, flags and values that make no sense
  kDirfd,        // the path starts at a descriptor
  kDescriptor,   // the object is a descriptor, also an empty path with one
  kFlags,        // flags of the call
  kRights,       // modes, owners, sticky folders
  kSetGid,       // folders that hand on their group
  kUmask,        // the mode of what is created
  kOtherObject,  // FIFOs, sockets, devices
  kOtherPlace,   // objects out of the project, other mounts
  kAfterwards,   // what the call changes for later calls
};
inline constexpr size_t kKinds = static_cast<size_t>(Kind::kAfterwards) + 1;
// As docs/parity.md heads its columns.
std::string_view KindName(Kind kind);

// The user who acts. Only root can become somebody else; an ordinary user performs these cases as himself.
enum class Who : uint8_t { kCaller, kOther };
inline constexpr uid_t kOtherUser = 77;

struct Case {
  std::string call;  // the name in the table of supervised calls
  Kind kind;
  std::string what;  // unique for the call
  // In a process of its own, in the stage. What Sys() returned.
  std::function<long()> act;
  Who who = Who::kCaller;

  std::string Name() const { return call + ": " + what; }
};
using Cases = std::vector<Case>;

// All of them.
Cases AllCases();
void AddNameCases(Cases& cases);
void AddLinkCases(Cases& cases);
void AddOpenCases(Cases& cases);
void AddContentCases(Cases& cases);
void AddMetadataCases(Cases& cases);
void AddXattrCases(Cases& cases);
void AddQuestionCases(Cases& cases);
void AddSocketCases(Cases& cases);
void AddCredentialCases(Cases& cases);

// A system call without the C library in between: its result, or the negative errno.
template <class... Args>
long Sys(long number, Args... args) {
  const long result = ::syscall(number, args...);
  return result < 0 ? -errno : result;
}

// Adds to what is printed of the running case.
void Note(std::string_view text);
void NoteNumber(std::string_view name, uint64_t value);
// What an open descriptor is; the descriptor comes back. Nothing for errors.
long NoteOpened(long fd);

}  // namespace sandglass::parity
