// What supervised calls keep in the caller's memory, decoded from bytes that were read from there. Pure functions of foreign
// bytes, fuzzed by fuzz/supervise_decode_fuzz.cc. Errors carry the errno that the kernel would give.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "bridge/supervise/syscall_table.h"

namespace sandglass::bridge {

struct OpenHow {
  uint64_t flags = 0;
  uint64_t mode = 0;
  uint64_t resolve = 0;
};
// struct open_how of any size: what is missing is zero, what is newer than we know must be zero (E2BIG).
Result<OpenHow> DecodeOpenHow(ByteView bytes);
// What openat2() refuses and openat() ignores (EINVAL).
Status CheckOpenHow(const OpenHow& how);
inline constexpr size_t kMaxOpenHow = 4096;

size_t TimesSize(TimeLayout layout);
using Times = std::array<timespec, 2>;
Result<Times> DecodeTimes(ByteView bytes, TimeLayout layout);

// The path of an AF_UNIX address; nullopt: another family, an abstract or an unnamed one.
std::optional<std::string> DecodeUnixPath(ByteView address);

inline constexpr size_t kMaxXattrValue = 65536;
// Is it an access list (the value of system.posix_acl_access) that says no more than the mode of a file could? The kernel then sets the
// mode, and keeps no attribute.
bool IsModeAsAcl(ByteView value);

// What /proc/TID/status says. Unreadable lines leave defaults.
struct TaskStatus {
  pid_t tgid = 0;
  pid_t inner_tgid = 0;  // as the innermost pid namespace counts
  pid_t inner_tid = 0;
  uint32_t threads = 1;
  mode_t umask = 022;
  uid_t real_uid = 0, fs_uid = 0;
  gid_t real_gid = 0, fs_gid = 0;
  std::vector<gid_t> groups;
  uint64_t effective = 0;  // capabilities
  uint64_t permitted = 0;
};
TaskStatus DecodeStatus(std::string_view text);

// The soft limit of /proc/TID/limits; nullopt: none.
std::optional<uint64_t> DecodeFileSizeLimit(std::string_view text);

struct MountLine {
  uint64_t id = 0;
  std::string device;  // major:minor
  std::string root;    // within the file system
  std::string point;   // where it is mounted
};
// /proc/PID/mountinfo; lines that make no sense are left out.
std::vector<MountLine> DecodeMountInfo(std::string_view text);

}  // namespace sandglass::bridge
