// The system calls that can touch a file: one row each, saying which arguments lead to it and what the call may do to it.
// The tracer decides by this table where to kill and what to make fail. Constant data; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace sandglass::crash {

enum class CallKind : uint8_t {
  kLook,  // leaves the disk as it is; the memory of a mapped journal may still change between two of them
  kChange,  // may change names, content or metadata, or make them durable
  kOpen,    // a change only when its flags create or truncate
  kOpen2,   // the same, with the flags in memory (openat2)
  kIoctl,   // a change only for some requests
  kMap,     // of a file, unless anonymous
  kUnmap,   // of a file, when the mapping is one
};

enum class SpaceNeed : uint8_t { kNone, kMayRunOut };

inline constexpr int8_t kNoArgument = -1;

struct CallRow {
  long number = -1;
  const char* name = "";
  CallKind kind = CallKind::kLook;
  std::array<int8_t, 2> fds = {kNoArgument, kNoArgument};    // arguments that are descriptors
  std::array<int8_t, 2> paths = {kNoArgument, kNoArgument};  // arguments that are paths
  int8_t flags = kNoArgument;          // open flags, or the request of an ioctl
  SpaceNeed space = SpaceNeed::kNone;  // a full disk can refuse it
  int8_t length = kNoArgument;         // bytes to write, where fewer may be written
};

// Null: the call touches no file.
const CallRow* FindCall(long number);

// Whether open flags create or truncate.
bool FlagsChange(uint64_t open_flags);
bool IoctlChanges(uint64_t request);

}  // namespace sandglass::crash
