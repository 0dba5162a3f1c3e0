// Single steps of mounting a world, where nothing needs a world.
#include "world/local/child/mounts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/mount.h>

#include <cerrno>

#include "base/fd.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::test {
namespace {

using world::IfRefused;
using world::MountEntry;

// A tool of the home may go between the look at it and this.
TEST(MountSteps, WhatVanishedFailsUnlessItMayBeLeftOut) {
  MountEntry needed{.from = "/no/such/folder", .target = "/mnt"};
  EXPECT_EQ(world::TakeHostTree(needed), ENOENT);
  MountEntry optional{.from = "/no/such/folder", .target = "/mnt", .if_refused = IfRefused::kSkip};
  EXPECT_EQ(world::TakeHostTree(optional), 0);
  world::NewRoot nowhere;
  EXPECT_EQ(world::MountBelow(nowhere, optional), 0);
}

TEST(MountSteps, ALinkIsNotFollowedToWhatIsTaken) {
  const TempWorkspace space;
  MustCall(::symlink("/usr", space.Path("link").c_str()), "symlink");
  MountEntry entry{.from = space.Path("link/bin"), .target = "/mnt"};
  EXPECT_EQ(world::TakeHostTree(entry), ELOOP);
}

// Where nothing could be mounted the host's folder stays, and Landlock must not take it for the world's own.
TEST(MountSteps, WhatIsLeftOutIsNoPlaceToWriteTo) {
  const TempWorkspace space;
  space.MakeDir("there");
  const Fd root(MustCall(::open(space.project().c_str(), O_PATH | O_CLOEXEC), "open"));
  world::NewRoot at{.root = root.get()};
  const int no_mount = MustCall(::open("/dev/null", O_RDONLY | O_CLOEXEC), "open");
  MountEntry entry{.kind = world::TreeKind::kStaged,
                   .from = "/usr",
                   .target = "/there",
                   .attributes = MOUNT_ATTR_NOSUID,
                   .if_refused = IfRefused::kSkip,
                   .tree = no_mount};
  EXPECT_EQ(world::MountBelow(at, entry), 0);
  EXPECT_NE(entry.attributes & MOUNT_ATTR_RDONLY, 0u);
}

}  // namespace
}  // namespace sandglass::test
