// Inode flags (chattr) as far as a user can set them; what the kernel keeps for itself (extents,
// inline data, index) is masked out. Any thread.
#pragma once

#include <linux/fs.h>

#include <cstdint>
#include <string>

namespace sandglass::test {

struct InodeFlag {
  uint32_t bit;
  const char* name;
};

inline constexpr InodeFlag kSettableFlags[] = {
    {FS_SECRM_FL, "secure_delete"},
    {FS_UNRM_FL, "undelete"},
    {FS_COMPR_FL, "compress"},
    {FS_SYNC_FL, "sync"},
    {FS_IMMUTABLE_FL, "immutable"},
    {FS_APPEND_FL, "append"},
    {FS_NODUMP_FL, "nodump"},
    {FS_NOATIME_FL, "noatime"},
    {FS_NOCOMP_FL, "nocompress"},
    {FS_JOURNAL_DATA_FL, "journal"},
    {FS_NOTAIL_FL, "notail"},
    {FS_DIRSYNC_FL, "dirsync"},
    {FS_TOPDIR_FL, "topdir"},
    {FS_NOCOW_FL, "nocow"},
    {FS_DAX_FL, "dax"},
    {FS_PROJINHERIT_FL, "projinherit"},
    {FS_CASEFOLD_FL, "casefold"},
};

// The settable flags of an open file or directory; none where the file system has no flags.
uint32_t ReadFlags(int fd);

// 0, or the errno with which the file system refused.
int ChangeFlags(int fd, uint32_t add, uint32_t remove);

// "append,nodump"; "none" for 0.
std::string FlagNames(uint32_t flags);

}  // namespace sandglass::test
