// Writing a file of a project as a whole, through the interceptor, so that undo takes it back like what a command did.
//
// The content goes to a new file beside the old one, which gets the old one's owner, mode, xattrs and flags and then takes its name
// by rename: whoever reads sees the old file or the new one, never a part, and the old one is kept for undo without a copy. A file
// that has other names is written in place instead, because a rename would part them; that is not atomic. Nothing is ever written
// through a symbolic link. What is new belongs to whom its folder belongs to, as far as we may give it away.
//
// Whoever calls has a step open, or the change is an ambient one. Free function; any thread; blocks on disk and on safeguards.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "session/files/opening.h"
#include "undo/interceptor.h"

namespace sandglass::session::files {

enum class Parents : uint8_t { kMustExist, kMade };
enum class IfThere : uint8_t { kReplaced, kRefused };
enum class WriteDurability : uint8_t { kProcess, kPower };

struct WriteRequest {
  std::string_view path;
  std::string_view content;
  mode_t mode = 0644;  // of a file that is new
  Parents parents = Parents::kMustExist;
  IfThere if_there = IfThere::kReplaced;
  WriteDurability durability = WriteDurability::kProcess;
  // As it was when it was read; of another version nothing is replaced.
  std::optional<FileVersion> expected = {};
};

enum class WriteKind : uint8_t { kCreated, kReplaced, kRewritten };  // the last one: in place
struct WrittenFile {
  WriteKind kind = WriteKind::kCreated;
  FileVersion version;
};

// kConflict: it is not the expected version. kExists: it is there and should not be. kInvalid: the root, a folder, a symbolic link or
// a special file has the name. kNotFound: no parent. Others as the interceptor and the kernel say. After an error the file is as it
// was, unless it was being written in place; the step then has what it needs to take that back.
Result<WrittenFile> WriteWholeFile(int root_fd, undo::Interceptor& interceptor,
                                   const WriteRequest& request);

}  // namespace sandglass::session::files
