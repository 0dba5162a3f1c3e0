// Reading a file of a project, in whole or a part of it, chosen by bytes or by lines. Never more than a limit, and always with what is
// needed to go on. Whether the bytes are shown as text or in base64 is the caller's business. Free functions, any thread, blocking.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "session/files/opening.h"

namespace sandglass::session::files {

inline constexpr size_t kDefaultReadBytes = 1 << 20;

struct ByteRange {
  uint64_t offset = 0;
  std::optional<uint64_t> count;  // none: to the end
};
// A line ends behind its "\n".
struct LineRange {
  uint64_t first = 1;
  std::optional<uint64_t> count;
};

struct ReadRequest {
  std::string_view
      path;  // relative to the root; symbolic links are followed as long as they stay beneath it
  std::variant<ByteRange, LineRange> range = ByteRange();
  size_t max_bytes = kDefaultReadBytes;
};

enum class ContentKind : uint8_t { kText, kBinary };  // told by the beginning of the file

struct FileContent {
  std::string bytes;
  uint64_t offset = 0;       // of the first byte
  uint64_t first_line = 0;   // of a range of lines: its first one; else 0
  bool at_end = false;       // nothing comes behind these bytes
  uint64_t next_offset = 0;  // where to go on
  uint64_t next_line = 0;    // the same in lines; a line that was cut is not done
  ContentKind kind = ContentKind::kText;
  FileVersion version;
};

// A range that begins behind the end has no bytes and is at the end.
// kNotFound, kDenied, kOutsideRoot as the kernel says. kInvalid: the path is no regular file, or a line number of 0.
Result<FileContent> ReadFile(int root_fd, const ReadRequest& request);

// All of it, for an edit. kLimit: it has more than `max_bytes`. Symbolic links are not followed: who edits one would replace it.
Result<FileContent> ReadWholeFile(int root_fd, std::string_view path, size_t max_bytes);

}  // namespace sandglass::session::files
