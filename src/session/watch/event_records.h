// The records that the kernel writes into a buffer about changes of files: of inotify, and of fanotify with FAN_REPORT_DFID_NAME.
//
// Pure functions that check every length, though the bytes come from the kernel: names in them are of anybody's making. The views in a
// record point into the buffer. Value types; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace sandglass::session {

struct InotifyRecord {
  int watch = -1;
  uint32_t mask = 0;
  uint32_t cookie = 0;
  std::string_view name;  // "": the folder itself
};

// kCorrupt: a record is not whole, or has a name that is none.
Result<std::vector<InotifyRecord>> ParseInotify(ByteView buffer);

struct FanotifyRecord {
  uint64_t mask = 0;
  int32_t pid = 0;
  int32_t handle_type = 0;
  ByteView handle;        // of the folder; empty: the record names none, as that of an overflow
  std::string_view name;  // in the folder; "": the folder itself
};

// kVersion: the kernel speaks another version. kCorrupt.
Result<std::vector<FanotifyRecord>> ParseFanotify(ByteView buffer);

}  // namespace sandglass::session
