// What the world's first process does before it becomes the shim, as data: made by the host, carried out by steps.cc between clone and
// exec, where nothing may be allocated, locked or logged.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "world/local/limits.h"

namespace sandglass::world {

enum class TreeKind : uint8_t {
  kHost,    // what the host has at `from`, with everything mounted below
  kStaged,  // the same without what is mounted below, under an overlay that takes all changes
  kTmpfs,   // fresh and empty
  kEmpty,  // a folder that stays empty: one for all places, because a file system of its own takes longer to make than all else
  kProc,   // fresh
  kSysfs,  // fresh
  kDevpts,  // fresh
  kItself,  // what the world has at `target`, once more on top
};

enum class IfMissing : uint8_t {
  kCreate,  // make the mount point; only where the world has something of its own
  kSkip,    // there is nothing to cover
};

enum class IfRefused : uint8_t {
  kFail,
  kSkip,  // what is there already stays
};

// Whether an overlay waits for the disk: when it is unmounted, and when a program asks for that.
enum class Syncing : uint8_t { kAsUsual, kNever };

// One thing to be mounted in the world. They are mounted in order, later ones on top.
struct MountEntry {
  TreeKind kind = TreeKind::kHost;
  std::string from;         // absolute; one of kHost without symlinks
  std::string upper, work;  // of kStaged
  Syncing syncing = Syncing::kAsUsual;
  std::string target;       // absolute, without symlinks
  uint64_t attributes = 0;  // MOUNT_ATTR_*, for all mounts of the tree
  mode_t mode = 0755;       // of a tmpfs
  IfMissing if_missing = IfMissing::kSkip;
  IfRefused if_refused = IfRefused::kFail;
  bool seal = false;  // read-only once all mount points in it are made
  int tree =
      -1;  // the child's: a tree of the host or a stage, taken before anything covers it; then what is to be sealed
};

// Descriptors for the child, all above the numbers that they are moved to.
struct ChildDescriptors {
  int control = -1;
  int listener_socket = -1;
  int filter = -1;
  int shim = -1;  // O_PATH
  int status =
      -1;  // SOCK_SEQPACKET to the host: one byte comes when ids are mapped; a ChildFailure goes
};
inline constexpr int kFirstChildDescriptor = 16;

enum class Identity : uint8_t { kOrdinary, kRoot };

struct ChildPlan {
  std::vector<MountEntry> mounts;
  ChildDescriptors fds;
  Identity identity = Identity::kOrdinary;
  std::vector<ProcessLimit> limits;
  std::string folder;                    // where the shim starts
  std::vector<std::string> environment;  // NAME=value
  std::vector<char*> environment_pointers;
};

inline constexpr size_t kMaxFailureDetail = 512;

// Sent instead of becoming the shim.
struct ChildFailure {
  uint32_t step = 0;  // an index of ChildStepNames
  int32_t error = 0;
  char detail[kMaxFailureDetail] = {};
};

#ifdef SANDGLASS_WEAKENED_WORLD
// Steps that are left out, so that a test can show what each is for. In a library of the tests only: no program that is shipped
// is compiled with it.
inline std::vector<const char*> steps_left_out;
#endif

// Carries out the plan and becomes the shim.
[[noreturn]] void RunChild(ChildPlan& plan);
// "mount"; "" if there is no such step.
const char* ChildStepName(uint32_t step);

}  // namespace sandglass::world
