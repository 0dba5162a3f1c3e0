// Whole reads and writes over descriptors, and a few operations on names in a directory. A signal
// or a short count never shows: each call either does all of its work or returns the Error. Free
// functions, any thread, blocking.
//
// `name` is one component in the directory `dir_fd`, never a path; symlinks are not followed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace sandglass {

// On error some of the bytes may have been written.
Status WriteFully(int fd, ByteView bytes);
Status PWriteFully(int fd, ByteView bytes, off_t offset);

// Everything up to the end. kLimit: there are more than `max` bytes.
Result<Bytes> ReadFully(int fd, size_t max);
// Fills `out` from `offset`; the count is smaller than out.size() only where the file ends.
Result<size_t> PReadFully(int fd, std::span<uint8_t> out, off_t offset);

// The content of a small file. kLimit: it has more than `max` bytes.
Result<std::string> ReadFileAt(int dir_fd, const char* name, size_t max);

enum class FileSync : uint8_t {
  kNone,   // survives the death of the process
  kPower,  // survives the loss of power
};

// Puts `content` (mode 0600) in place of `name` by rename: a reader or a crash sees the old file or
// the new one, never a part. Uses the name `<name>.tmp`, so only one writer at a time. On error the
// old file stays.
Status ReplaceFileAt(int dir_fd, const char* name, std::string_view content,
                     FileSync sync = FileSync::kNone);

// Removes a file or a whole tree of any depth; that it is missing is success. Never follows a
// symlink and never enters another mount (kOutsideRoot). Directories of ours without owner
// permissions are given them first.
Status RemoveTreeAt(int dir_fd, const char* name);

}  // namespace sandglass
