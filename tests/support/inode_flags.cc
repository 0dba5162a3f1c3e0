#include "tests/support/inode_flags.h"

#include <sys/ioctl.h>

#include <cerrno>

namespace sandglass::test {
namespace {

constexpr uint32_t SettableMask() {
  uint32_t mask = 0;
  for (const InodeFlag& flag : kSettableFlags) mask |= flag.bit;
  return mask;
}

}  // namespace

uint32_t ReadFlags(int fd) {
  // The request is declared with long, but every kernel reads and writes an int.
  int flags = 0;
  if (::ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) return 0;
  return static_cast<uint32_t>(flags) & SettableMask();
}

int ChangeFlags(int fd, uint32_t add, uint32_t remove) {
  int flags = 0;
  if (::ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) return errno;
  const auto changed = static_cast<int>((static_cast<uint32_t>(flags) | add) & ~remove);
  if (changed == flags) return 0;
  return ::ioctl(fd, FS_IOC_SETFLAGS, &changed) == 0 ? 0 : errno;
}

std::string FlagNames(uint32_t flags) {
  std::string names;
  for (const InodeFlag& flag : kSettableFlags) {
    if ((flags & flag.bit) == 0) continue;
    if (!names.empty()) names += ',';
    names += flag.name;
  }
  return names.empty() ? "none" : names;
}

}  // namespace sandglass::test
