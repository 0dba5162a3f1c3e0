// The names in an open folder, straight from the kernel: one buffer for thousands of names instead of a stream object for each
// folder. Free function; any thread, each with its own buffer.
#pragma once

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sandglass::session::files {

inline constexpr size_t kEntryBufferBytes = 64 << 10;

// Calls `entry(name, d_type)` for all but `.` and `..`; the name ends with a NUL and is good during the call only. An error of
// `entry` ends it. Reads on from where `dir_fd` stands.
template <class Entry>
Status ForEachEntry(int dir_fd, std::vector<char>& buffer, Entry entry) {
  buffer.resize(kEntryBufferBytes);
  while (true) {
    const long size = ::syscall(SYS_getdents64, dir_fd, buffer.data(), buffer.size());
    if (size < 0) return Error::FromErrno(errno, "list folder");
    if (size == 0) return Ok();
    for (long at = 0; at < size;) {
      const auto* raw = reinterpret_cast<const dirent64*>(buffer.data() + at);
      at += raw->d_reclen;
      const std::string_view name(raw->d_name);
      if (name == "." || name == "..") continue;
      TRY(entry(name, raw->d_type));
    }
  }
}

}  // namespace sandglass::session::files
