#include "world/local/child/mounts.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "base/fd.h"

namespace sandglass::world {
namespace {

constexpr unsigned kDetach = 2;  // MNT_DETACH; <sys/mount.h> does not go with <linux/mount.h>

int AsErrno(long result) { return result < 0 ? errno : 0; }

int OpenTree(int folder, const char* path) {
  return static_cast<int>(
      ::syscall(SYS_open_tree, folder, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
}

int SetAttributes(int mount, uint64_t attributes, unsigned flags) {
  mount_attr change{};
  change.attr_set = attributes;
  return AsErrno(
      ::syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH | flags, &change, sizeof(change)));
}

int Attach(int tree, int place) {
  return AsErrno(::syscall(SYS_move_mount, tree, "", place, "",
                           MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

struct Option {
  const char* name;   // null: none
  const char* value;  // null: it is a flag
};

int SetOption(int context, const Option& option) {
  const unsigned kind = option.value == nullptr ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING;
  return AsErrno(::syscall(SYS_fsconfig, context, kind, option.name, option.value, 0));
}

int NewFilesystem(const char* type, std::initializer_list<Option> options) {
  const Fd context(static_cast<int>(::syscall(SYS_fsopen, type, FSOPEN_CLOEXEC)));
  if (!context) return -1;
  for (const Option& option : options) {
    if (option.name != nullptr && SetOption(context.get(), option) != 0) return -1;
  }
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0)
    return -1;
  return static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0));
}

// A folder by its descriptor: in the options of overlayfs colons, commas and backslashes of a path would mean something.
struct FolderOption {
  explicit FolderOption(const char* path)
      : folder(::open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
    std::snprintf(value, sizeof(value), "/proc/self/fd/%d", folder.get());
  }
  Fd folder;
  char value[32];
};

int NewOverlay(const MountEntry& entry) {
  const FolderOption lower(entry.from.c_str());
  const FolderOption upper(entry.upper.c_str());
  const FolderOption work(entry.work.c_str());
  if (!lower.folder || !upper.folder || !work.folder) return -1;
  // Its marks are attributes that an ordinary user may write, which forbids some of its features: folders of the lower layer cannot
  // be renamed (EXDEV).
  return NewFilesystem("overlay",
                       {{"lowerdir", lower.value},
                        {"upperdir", upper.value},
                        {"workdir", work.value},
                        {"userxattr", nullptr},
                        {entry.syncing == Syncing::kNever ? "volatile" : nullptr, nullptr}});
}

int NewTmpfs(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof(text), "%o", mode);
  return NewFilesystem("tmpfs", {{"mode", text}});
}

int CopyOf(int mounted) {
  return static_cast<int>(
      ::syscall(SYS_open_tree, mounted, "",
                OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH));
}

int TreeOf(const MountEntry& entry, int place, int empty) {
  switch (entry.kind) {
    case TreeKind::kHost:
    case TreeKind::kStaged:
      return entry.tree;
    case TreeKind::kTmpfs:
      return NewTmpfs(entry.mode);
    case TreeKind::kProc:
      return NewFilesystem("proc", {});
    case TreeKind::kSysfs:
      return NewFilesystem("sysfs", {});
    case TreeKind::kDevpts:
      return NewFilesystem("devpts", {{"mode", "620"}, {"ptmxmode", "666"}});
    case TreeKind::kEmpty:
      return empty >= 0 ? CopyOf(empty) : NewTmpfs(entry.mode);
    case TreeKind::kItself:
      return CopyOf(place);
  }
  errno = EINVAL;
  return -1;
}

enum class PointKind : uint8_t { kFolder, kFile };

int MakePoint(int folder, const char* name, PointKind kind) {
  if (kind == PointKind::kFolder) return AsErrno(::mkdirat(folder, name, 0755));
  const Fd file(::openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  return file ? 0 : errno;
}

int OpenOne(int folder, const char* name) {
  return ::openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

// Follows no symlink: the world's own layer may hold any.
int OpenExisting(int root, const MountEntry& entry) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return static_cast<int>(
      ::syscall(SYS_openat2, root, entry.target.c_str() + 1, &how, sizeof(how)));
}

// The same by single names, of which those that are missing are made.
int MakeAndOpen(int root, const MountEntry& entry, PointKind kind) {
  char path[PATH_MAX];
  if (entry.target.size() >= sizeof(path)) return errno = ENAMETOOLONG, -1;
  std::memcpy(path, entry.target.c_str(), entry.target.size() + 1);
  Fd at(::openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  char* rest = nullptr;
  const char* name = ::strtok_r(path, "/", &rest);
  while (name != nullptr && at) {
    const char* following = ::strtok_r(nullptr, "/", &rest);
    Fd next(OpenOne(at.get(), name));
    if (!next && errno == ENOENT) {
      const PointKind made = following != nullptr ? PointKind::kFolder : kind;
      if (const int error = MakePoint(at.get(), name, made); error != 0) return errno = error, -1;
      next = Fd(OpenOne(at.get(), name));
    }
    if (!next) return -1;
    at = std::move(next);
    name = following;
  }
  return at.Release();
}

PointKind KindOf(const MountEntry& entry) {
  struct stat status{};
  const bool file =
      entry.tree >= 0 && ::fstat(entry.tree, &status) == 0 && !S_ISDIR(status.st_mode);
  return file ? PointKind::kFile : PointKind::kFolder;
}

int OpenPoint(int root, const MountEntry& entry) {
  const int found = OpenExisting(root, entry);
  if (found >= 0 || errno != ENOENT || entry.if_missing != IfMissing::kCreate) return found;
  return MakeAndOpen(root, entry, KindOf(entry));
}

int RefuseSymlink(int place) {
  struct stat status{};
  if (::fstat(place, &status) != 0) return errno;
  return S_ISLNK(status.st_mode) ? ELOOP : 0;
}

int MountAt(int place, NewRoot& at, MountEntry& entry) {
  Fd tree(TreeOf(entry, place, at.empty));
  entry.tree = -1;
  if (!tree) return errno;
  int error = SetAttributes(tree.get(), entry.attributes, AT_RECURSIVE);
  if (error == 0) error = Attach(tree.get(), place);
  // By its name it could not be found again once something is mounted on top.
  if (error == 0 && entry.seal) entry.tree = tree.Release();
  if (error == 0 && entry.kind == TreeKind::kEmpty && at.empty < 0) at.empty = tree.Release();
  return error;
}

// What is there already stays, and nobody may take it for a place to write to.
int LeaveOut(MountEntry& entry) {
  entry.attributes |= MOUNT_ATTR_RDONLY;
  return 0;
}

// By errno.
int Refused(MountEntry& entry) {
  return entry.if_refused == IfRefused::kSkip ? LeaveOut(entry) : errno;
}

// Was it to be taken from the host beforehand, and could not be?
bool IsMissing(const MountEntry& entry) {
  return (entry.kind == TreeKind::kHost || entry.kind == TreeKind::kStaged) && entry.tree < 0;
}

bool NothingThere(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

}  // namespace

int TakeHostTree(MountEntry& entry) {
  if (entry.kind != TreeKind::kHost) return 0;
  // What was judged, or nothing: a symlink may be there by now.
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const Fd place(
      static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, entry.from.c_str(), &how, sizeof(how))));
  entry.tree = place ? CopyOf(place.get()) : -1;
  return entry.tree < 0 ? Refused(entry) : 0;
}

int TakeStage(MountEntry& entry) {
  if (entry.kind != TreeKind::kStaged) return 0;
  entry.tree = NewOverlay(entry);
  return entry.tree < 0 ? Refused(entry) : 0;
}

int MountRoot() {
  Fd root(OpenTree(AT_FDCWD, "/"));
  if (!root) return -1;
  constexpr uint64_t kReadOnly = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  const Fd below(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  int error = SetAttributes(root.get(), kReadOnly, AT_RECURSIVE);
  if (error == 0) error = Attach(root.get(), below.get());
  if (error != 0) return errno = error, -1;
  return root.Release();
}

int MountBelow(NewRoot& at, MountEntry& entry) {
  if (IsMissing(entry)) return 0;  // left out already
  const Fd place(OpenPoint(at.root, entry));
  int error = place ? RefuseSymlink(place.get()) : errno;
  if (NothingThere(error) && entry.if_missing == IfMissing::kSkip) return LeaveOut(entry);
  if (error == 0) error = MountAt(place.get(), at, entry);
  if (error != 0 && entry.if_refused == IfRefused::kSkip) return LeaveOut(entry);
  return error;
}

int Seal(MountEntry& entry) {
  if (!entry.seal || entry.tree < 0) return 0;
  const Fd tree(std::exchange(entry.tree, -1));
  return SetAttributes(tree.get(), MOUNT_ATTR_RDONLY, 0);
}

int LinkDevices(int root) {
  constexpr struct {
    const char* name;
    const char* target;
  } kLinks[] = {
      {"dev/fd", "/proc/self/fd"},       {"dev/stdin", "/proc/self/fd/0"},
      {"dev/stdout", "/proc/self/fd/1"}, {"dev/stderr", "/proc/self/fd/2"},
      {"dev/ptmx", "pts/ptmx"},
  };
  for (const auto& link : kLinks) {
    if (::symlinkat(link.target, root, link.name) != 0) return errno;
  }
  return 0;
}

int EnterRoot(int root) {
  if (::fchdir(root) != 0) return errno;
  // Puts the old root on top of the new one, at the same place, from where it is taken away.
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return errno;
  if (::syscall(SYS_umount2, ".", kDetach) != 0) return errno;
  return AsErrno(::chdir("/"));
}

}  // namespace sandglass::world
