#include "world/local/child/write_places.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace sandglass::world {
namespace {

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

// Versions of the interface. Moving between folders: whoever uses Landlock at all loses it unless it is given.
constexpr long kKnowsRefer = 2;
constexpr long kKnowsTruncate = 3;

uint64_t Writing(long version) {
  constexpr uint64_t kOpening = LANDLOCK_ACCESS_FS_WRITE_FILE;
  return version >= kKnowsTruncate ? kOpening | LANDLOCK_ACCESS_FS_TRUNCATE : kOpening;
}

// Devices are written to through a mount that is read-only.
bool IsOwnPlace(const MountEntry& entry) {
  const bool read_only = (entry.attributes & MOUNT_ATTR_RDONLY) != 0 || entry.seal;
  const bool device = entry.target.starts_with("/dev/");
  return device || !read_only;
}

int Allow(int ruleset, const MountEntry& entry, uint64_t writing) {
  const Fd place(::open(entry.target.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!place) return errno == ENOENT ? 0 : errno;
  struct stat status{};
  if (::fstat(place.get(), &status) != 0) return errno;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = S_ISDIR(status.st_mode) ? writing | LANDLOCK_ACCESS_FS_REFER : writing;
  rule.parent_fd = place.get();
  const long added =
      ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  return added == 0 ? 0 : errno;
}

long LandlockVersion() {
  return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

}  // namespace

bool CanLockAllWriting() { return LandlockVersion() >= kKnowsTruncate; }

int AllowWritingOnlyInOwnPlaces(const ChildPlan& plan) {
  const long version = LandlockVersion();
  if (version < kKnowsRefer) return 0;
  const uint64_t writing = Writing(version);
  landlock_ruleset_attr handled{};
  handled.handled_access_fs = writing | LANDLOCK_ACCESS_FS_REFER;
  const Fd ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0)));
  if (!ruleset) return errno;
  for (const MountEntry& entry : plan.mounts) {
    if (!IsOwnPlace(entry)) continue;
    if (const int error = Allow(ruleset.get(), entry, writing); error != 0) return error;
  }
  return ::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0 ? 0 : errno;
}

}  // namespace sandglass::world
