// Metadata of an object: everything about it but its content and names. Captured in full on first touch and put back exactly.
//
// Value type and free functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "undo/object.h"

namespace sandglass::undo {

using Xattrs = std::vector<std::pair<std::string, std::string>>;  // sorted by name

// The most that a record can hold of them, to its writer and to its reader.
inline constexpr size_t kMaxXattrs = 4096;
inline constexpr size_t kMaxXattrName = 256;
inline constexpr size_t kMaxXattrValue = 1 << 20;

struct Metadata {
  uint32_t mode = 0;
  uint32_t uid = 0, gid = 0;
  uint64_t size = 0;
  uint64_t blocks = 0;
  uint64_t rdev = 0;
  int64_t mtime_ns = 0;
  // Never restored; tells whether someone changed the object since the step before.
  int64_t ctime_ns = 0;
  // Instead of it, when the object is on record already and the step itself has moved it since.
  static constexpr int64_t kSeenBefore = INT64_MIN;
  uint32_t flags =
      0;  // FS_IOC_GETFLAGS, only the bits that can be set; 0 where the file system has none
  Xattrs xattrs;
  std::string symlink_target;
};

// What a stat tells: no xattrs, flags or link target.
Metadata MetadataOf(const FileStat& stat);

// The bits of its owner that an object lacks keep an ordinary user's own xattrs (user.*) from being read, although chmod and unlink are
// allowed. kYes: they are given for a moment; the mode should be on record before, for a crash in between.
enum class Lifting : uint8_t { kNo, kYes };

// kNoSpace etc. never; kIo and kDenied when something about the object cannot be read, so that undo would not be exact.
Result<Metadata> CaptureMetadata(const OpenObject& object, Lifting lifting = Lifting::kYes);
// Names only, with empty values: for whoever asks what there is.
Result<Xattrs> ListXattrs(const OpenObject& object);
// kNotRestorable: with one attribute more, the object could not be recorded, so that what made it so could not be taken back.
Status CheckRoomForXattr(const OpenObject& object, size_t max_bytes);

// What a stat does not tell, in one number that is never 0: two folders with the same number have the same xattrs and flags.
uint64_t HashAttributes(const Xattrs& xattrs, uint32_t flags);
// Errors: not all of it can be read as it is.
Result<uint64_t> HashAttributes(const OpenObject& folder);

// The flags that a caller may set and that stop changes: they are cleared before a restore and set again last.
inline constexpr uint32_t kBlockingFlags = 0x10 /*FS_IMMUTABLE_FL*/ | 0x20 /*FS_APPEND_FL*/;

Result<uint32_t> ReadFlags(int fd);
Status WriteFlags(int fd, uint32_t flags);
// Takes immutable and append-only off so that a restore can go on, and returns what it took. What could not be cleared shows later.
uint32_t ClearBlockingFlags(const OpenObject& object);
void SetFlags(const OpenObject& object, uint32_t more);

// New objects inherit flags from their folder, and to a symlink or a special file nobody can give them later, nor take them: so the
// folder has theirs for that moment.
class FlagsOfFolder {
 public:
  FlagsOfFolder(int dir_fd, uint32_t meanwhile);
  ~FlagsOfFolder();
  FlagsOfFolder(const FlagsOfFolder&) = delete;
  FlagsOfFolder& operator=(const FlagsOfFolder&) = delete;

 private:
  Fd fd_;
  std::optional<uint32_t> flags_;  // to be put back
};

// What is needed to make an object of any type but for its content.
struct NodeSpec {
  uint32_t mode;  // the type counts
  uint64_t rdev = 0;
  std::string symlink_target;
  uint32_t flags = 0;  // for a symlink or a special file
};
// Makes it, for its owner only until it gets its metadata. Like a system call: -1 with errno.
int MakeNode(int dir_fd, const std::string& name, const NodeSpec& node);

// What was taken off an object so that it could be worked on.
struct Lifted {
  std::optional<uint32_t> mode;
  uint32_t flags = 0;
};
// Gives the owner those of `bits` that are missing; `lifted` has the mode from before the first time. False: nothing was done, because none
// is missing, or the object is not ours, or its mode could not be put back.
bool LiftMode(const OpenObject& object, uint32_t bits, Lifted& lifted);
// The same, and blocking flags off.
bool Lift(const OpenObject& object, uint32_t bits, Lifted& lifted);
void Lower(const OpenObject& object, const Lifted& lifted);

// Makes `object` look as `want` says: owner, xattrs (extras removed), mode, flags, times. Does only what differs, so that an object
// that is right already costs one stat and one listxattr. Goes on past what fails, and the error tells of all of it.
Status ApplyMetadata(const OpenObject& object, const Metadata& want);

Status ApplyMtime(const OpenObject& object, int64_t mtime_ns);

// Could this process put such metadata back on an inode that lost it? `why` names what it could not.
bool CanRestore(const Metadata& meta, std::string* why);

// Only capabilities are dropped by the kernel when a file's content changes and need a privilege to put back.
bool LosesCapabilities(const Xattrs& xattrs);

}  // namespace sandglass::undo
