#include "tests/support/tree_builder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "tests/support/inode_flags.h"
#include "tests/support/must.h"
#include "tests/support/tree_walk.h"

namespace sandglass::test {
namespace {

// A path as the system calls want it: "" stands for the directory itself.
std::string Name(std::string_view path) { return path.empty() ? "." : std::string(path); }

std::string About(std::string_view call, std::string_view path) {
  return fmt::format("{} {}", call, Printable(path));
}

void WriteAt(int fd, std::string_view content, uint64_t offset, std::string_view path) {
  while (!content.empty()) {
    const ssize_t written =
        MustCall(::pwrite(fd, content.data(), content.size(), static_cast<off_t>(offset)),
                 About("write", path));
    content.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
}

int ErrnoOf(int result) { return result == 0 ? 0 : errno; }

std::string TextOf(const ByteWriter& writer) { return std::string(AsText(writer.bytes())); }

}  // namespace

std::string AclXattr(const std::vector<AclEntry>& entries) {
  ByteWriter writer;
  writer.Put(uint32_t{2});  // POSIX_ACL_XATTR_VERSION
  for (const AclEntry& entry : entries) {
    writer.Put(entry.tag);
    writer.Put(entry.permissions);
    writer.Put(entry.id);
  }
  return TextOf(writer);
}

std::string SampleAcl() {
  return AclXattr({{0x01, 6}, {0x02, 6, 4242}, {0x04, 4}, {0x10, 6}, {0x20, 0}});
}

std::string SampleCapability() {
  ByteWriter writer;
  writer.Put(uint32_t{0x02000001});  // VFS_CAP_REVISION_2 with the effective bit
  writer.Put(uint32_t{1U << 10});    // permitted: CAP_NET_BIND_SERVICE
  for (int i = 0; i < 3; ++i) writer.Put(uint32_t{0});
  return TextOf(writer);
}

TreeBuilder::TreeBuilder(const std::string& root) : root_(Must(OpenDirectory(root))) {}

TreeBuilder TreeBuilder::Below(std::string_view path) const {
  Fd dir = OpenForReading(fd(), Name(path).c_str(), O_DIRECTORY);
  MustCall(dir.get(), About("open", path));
  return TreeBuilder(std::move(dir));
}

void TreeBuilder::Dir(std::string_view path, mode_t mode) const {
  MustCall(::mkdirat(fd(), Name(path).c_str(), 0700), About("mkdir", path));
  Mode(path, mode);  // mkdir would apply the umask and drop the setuid and setgid bits
}

void TreeBuilder::File(std::string_view path, std::string_view content, mode_t mode) const {
  const Fd file(
      MustCall(::openat(fd(), Name(path).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600),
               About("create", path)));
  WriteAt(file.get(), content, 0, path);
  MustCall(::fchmod(file.get(), mode), About("chmod", path));
}

void TreeBuilder::SparseFile(std::string_view path, uint64_t size, uint64_t offset,
                             std::string_view content) const {
  File(path, "");
  const Fd file(
      MustCall(::openat(fd(), Name(path).c_str(), O_WRONLY | O_CLOEXEC), About("open", path)));
  MustCall(::ftruncate(file.get(), static_cast<off_t>(size)), About("truncate", path));
  WriteAt(file.get(), content, offset, path);
}

void TreeBuilder::Symlink(std::string_view path, std::string_view target) const {
  MustCall(::symlinkat(std::string(target).c_str(), fd(), Name(path).c_str()),
           About("symlink", path));
}

void TreeBuilder::Link(std::string_view existing, std::string_view path) const {
  MustCall(::linkat(fd(), Name(existing).c_str(), fd(), Name(path).c_str(), 0),
           About("link", path));
}

void TreeBuilder::Fifo(std::string_view path) const {
  MustCall(::mkfifoat(fd(), Name(path).c_str(), 0640), About("mkfifo", path));
}

void TreeBuilder::Socket(std::string_view path) const {
  MustCall(::mknodat(fd(), Name(path).c_str(), S_IFSOCK | 0600, 0), About("mknod", path));
}

void TreeBuilder::Mode(std::string_view path, mode_t mode) const {
  MustCall(::fchmodat(fd(), Name(path).c_str(), mode, 0), About("chmod", path));
}

void TreeBuilder::Mtime(std::string_view path, FileTime time) const {
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                             {.tv_sec = time.sec, .tv_nsec = time.nsec}};
  MustCall(::utimensat(fd(), Name(path).c_str(), times, AT_SYMLINK_NOFOLLOW),
           About("utimens", path));
}

void TreeBuilder::Remove(std::string_view path) const {
  int result = ::unlinkat(fd(), Name(path).c_str(), 0);
  if (result != 0 && errno == EISDIR) result = ::unlinkat(fd(), Name(path).c_str(), AT_REMOVEDIR);
  MustCall(result, About("remove", path));
}

void TreeBuilder::Rename(std::string_view from, std::string_view to) const {
  MustCall(::renameat(fd(), Name(from).c_str(), fd(), Name(to).c_str()), About("rename", from));
}

int TreeBuilder::Device(std::string_view path, mode_t type, unsigned major, unsigned minor) const {
  return ErrnoOf(::mknodat(fd(), Name(path).c_str(), type | 0600, makedev(major, minor)));
}

int TreeBuilder::Owner(std::string_view path, uid_t uid, gid_t gid) const {
  return ErrnoOf(::fchownat(fd(), Name(path).c_str(), uid, gid, AT_SYMLINK_NOFOLLOW));
}

int TreeBuilder::Xattr(std::string_view path, const char* name, std::string_view value) const {
  return ErrnoOf(::lsetxattr(ProcPath(path).c_str(), name, value.data(), value.size(), 0));
}

int TreeBuilder::RemoveXattr(std::string_view path, const char* name) const {
  return ErrnoOf(::lremovexattr(ProcPath(path).c_str(), name));
}

int TreeBuilder::AddFlags(std::string_view path, uint32_t flags) const {
  return SetFlags(path, flags, 0);
}
int TreeBuilder::ClearFlags(std::string_view path, uint32_t flags) const {
  return SetFlags(path, 0, flags);
}

int TreeBuilder::SetFlags(std::string_view path, uint32_t add, uint32_t remove) const {
  const Fd file = OpenForReading(fd(), Name(path).c_str(), O_NONBLOCK);
  return file.valid() ? ChangeFlags(file.get(), add, remove) : errno;
}

// The xattr calls take no directory descriptor.
std::string TreeBuilder::ProcPath(std::string_view path) const {
  return fmt::format("/proc/self/fd/{}/{}", fd(), Name(path));
}

}  // namespace sandglass::test
