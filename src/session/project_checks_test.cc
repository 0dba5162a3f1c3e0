#include "session/project_checks.h"

#include <gtest/gtest.h>

namespace sandglass::session {
namespace {

constexpr uint64_t kExt4 = 0xef53, kTmpfs = 0x01021994, kFuse = 0x65735546;

TEST(ProjectChecks, FileSystemsOfOtherMachinesAreKnown) {
  EXPECT_EQ(NetworkFileSystem(0x6969, ""), "nfs");
  EXPECT_EQ(NetworkFileSystem(0xff534d42, ""), "cifs");
  EXPECT_EQ(NetworkFileSystem(0xfe534d42, ""), "smb3");
  EXPECT_EQ(NetworkFileSystem(0x01021997, ""), "9p");
  EXPECT_EQ(NetworkFileSystem(0x00c36400, ""), "ceph");
  EXPECT_EQ(NetworkFileSystem(kFuse, "fuse.sshfs"), "sshfs");
  EXPECT_EQ(NetworkFileSystem(kFuse, "fuse.rclone"), "rclone");
}

TEST(ProjectChecks, FileSystemsOfThisMachineAreNot) {
  EXPECT_EQ(NetworkFileSystem(kExt4, "ext4"), "");
  EXPECT_EQ(NetworkFileSystem(kTmpfs, "tmpfs"), "");
  EXPECT_EQ(NetworkFileSystem(kFuse, "fuse.bindfs"), "");
  EXPECT_EQ(NetworkFileSystem(kFuse, "fuse"), "");
  EXPECT_EQ(NetworkFileSystem(kFuse, "fuseblk"), "");
  EXPECT_EQ(NetworkFileSystem(kExt4, "fuse.sshfs"), "") << "the name alone says nothing";
}

}  // namespace
}  // namespace sandglass::session
