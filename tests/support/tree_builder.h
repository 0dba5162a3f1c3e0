// TreeBuilder: makes the entries of a test tree below one directory, all through its descriptor, so
// that names may hold any bytes and the directory may lie deeper than PATH_MAX. What every file
// system can do ends the test program on failure (see must.h); what only some can do answers an
// errno. Existing parents are required. One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {

// One line of a POSIX ACL as the kernel stores it; `tag` is ACL_USER_OBJ (0x01), ACL_USER (0x02),
// ACL_GROUP_OBJ (0x04), ACL_GROUP (0x08), ACL_MASK (0x10) or ACL_OTHER (0x20), and entries are
// sorted by tag.
struct AclEntry {
  uint16_t tag;
  uint16_t permissions;
  uint32_t id = 0xffffffff;
};

// The value of system.posix_acl_access and system.posix_acl_default.
std::string AclXattr(const std::vector<AclEntry>& entries);
// The usual one: owner rw, user 4242 rw, group r, mask rw, others nothing.
std::string SampleAcl();
// The value of security.capability that lets a program bind low ports.
std::string SampleCapability();

class TreeBuilder {
 public:
  explicit TreeBuilder(const std::string& root);
  explicit TreeBuilder(Fd root) : root_(std::move(root)) {}

  int fd() const { return root_.get(); }
  // A builder for the directory `path` below this one; it need not end before this one does.
  TreeBuilder Below(std::string_view path) const;

  void Dir(std::string_view path, mode_t mode = 0755) const;
  void File(std::string_view path, std::string_view content, mode_t mode = 0644) const;
  // A file that is all hole but for `content` at `offset`.
  void SparseFile(std::string_view path, uint64_t size, uint64_t offset,
                  std::string_view content) const;
  void Symlink(std::string_view path, std::string_view target) const;
  void Link(std::string_view existing, std::string_view path) const;
  void Fifo(std::string_view path) const;
  void Socket(std::string_view path) const;
  void Mode(std::string_view path, mode_t mode) const;
  void Mtime(std::string_view path, FileTime time) const;  // of a symlink itself
  void Remove(std::string_view path) const;                // a file or an empty directory
  void Rename(std::string_view from, std::string_view to) const;

  // 0, or the errno with which it was refused.
  int Device(std::string_view path, mode_t type, unsigned major, unsigned minor) const;
  int Owner(std::string_view path, uid_t uid, gid_t gid) const;  // of a symlink itself
  int Xattr(std::string_view path, const char* name, std::string_view value) const;
  int RemoveXattr(std::string_view path, const char* name) const;
  int AddFlags(std::string_view path, uint32_t flags) const;
  int ClearFlags(std::string_view path, uint32_t flags) const;

 private:
  std::string ProcPath(std::string_view path) const;
  int SetFlags(std::string_view path, uint32_t add, uint32_t remove) const;

  Fd root_;
};

}  // namespace sandglass::test
