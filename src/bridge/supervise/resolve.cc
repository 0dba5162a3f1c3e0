#include "bridge/supervise/resolve.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>

#include "base/beneath.h"
#include "base/io.h"
#include "base/rel_path.h"

namespace sandglass::bridge {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel counts
constexpr int kRaces = 8;
constexpr size_t kMaxCachedDirs = 512;
constexpr uint64_t kProcRootInode = 1;

Error Failure(std::string_view what) { return Error::FromErrno(errno, what); }
Error Refused(int sys_errno, std::string_view what) { return Error::FromErrno(sys_errno, what); }

constexpr unsigned kIdentityMask = STATX_TYPE | STATX_MODE | STATX_INO | STATX_NLINK | STATX_MNT_ID;

Identity IdentityIn(const struct statx& st) {
  return Identity{makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino, st.stx_mnt_id,
                  st.stx_mode, st.stx_nlink};
}

Result<Identity> IdentityOf(int fd) {
  struct statx st;
  if (::statx(fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, kIdentityMask, &st) !=
      0)
    return Failure("statx");
  return IdentityIn(st);
}

Fd OpenAt2(int dir, const std::string& path, uint64_t flags, uint64_t resolve) {
  open_how how{.flags = flags | O_CLOEXEC, .mode = 0, .resolve = resolve};
  for (int attempt = 0; attempt < 64; ++attempt) {
    const long fd = ::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof(how));
    if (fd >= 0 || errno != EAGAIN) return Fd(static_cast<int>(fd));
  }
  return Fd();
}

struct SplitPath {
  std::string dir;
  std::string name;
  Location::Slash slash = Location::Slash::kNo;
};

SplitPath Split(std::string_view path) {
  SplitPath out;
  while (path.size() > 1 && path.back() == '/') {
    path.remove_suffix(1);
    out.slash = Location::Slash::kTrailing;
  }
  const size_t cut = path.rfind('/');
  if (path == "/") return {"/", ".", Location::Slash::kNo};
  if (cut == std::string_view::npos) {
    out.name = path;
  } else {
    out.dir = path.substr(0, cut + 1);
    out.name = path.substr(cut + 1);
  }
  return out;
}

std::string MagicPath(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

std::optional<std::string> ReadLinkAt(int dir, const char* path) {
  char buffer[PATH_MAX];
  const ssize_t size = ::readlinkat(dir, path, buffer, sizeof(buffer));
  if (size < 0) return std::nullopt;
  return std::string(buffer, static_cast<size_t>(size));
}

bool IsProc(int fd) {
  struct statfs st;
  return ::fstatfs(fd, &st) == 0 && st.f_type == PROC_SUPER_MAGIC;
}

// The name of `child` in `parent`, by looking at all of them.
Result<std::string> NameIn(int parent, const Identity& child) {
  const int raw = ::openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const dir = raw < 0 ? nullptr : ::fdopendir(raw);
  if (dir == nullptr) return Failure("read a folder on the way up");
  std::string name;
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_ino != child.inode) continue;
    const std::string_view found = entry->d_name;
    if (found != "." && found != "..") name = found;
  }
  ::closedir(dir);
  if (name.empty()) return Refused(ENOENT, "a folder on the way up has no name");
  return name;
}

}  // namespace

Result<std::string> PathOfFd(int fd) {
  if (auto path = ReadLinkAt(AT_FDCWD, MagicPath(fd).c_str())) return *path;
  if (errno != ENAMETOOLONG) return Failure("readlink");
  // Too long for the kernel to print: go up until it can.
  std::string below;
  Fd current;
  for (int at = fd;;) {
    TRY_ASSIGN(Identity here, IdentityOf(at));
    Fd parent(::openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!parent.valid()) return Failure("go up");
    TRY_ASSIGN(std::string name, NameIn(parent.get(), here));
    below = below.empty() ? name : name + "/" + below;
    if (auto path = ReadLinkAt(AT_FDCWD, MagicPath(parent.get()).c_str()))
      return *path == "/" ? *path + below : *path + "/" + below;
    if (errno != ENAMETOOLONG) return Failure("readlink");
    current = std::move(parent);
    at = current.get();
  }
}

Fd RootOf(pid_t pid) {
  return Fd(::open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

bool WorldView::IsOf(pid_t pid) const {
  const Fd root = RootOf(pid);
  if (!root.valid()) return false;
  const auto theirs = IdentityOf(root.get());
  const auto ours = IdentityOf(root_.get());
  return theirs.ok() && ours.ok() && theirs->mount == ours->mount && theirs->SameInode(*ours);
}

// Which mounts of the world show a project, or a part of one, wherever.
Result<std::shared_ptr<const WorldView>> WorldView::Of(
    pid_t pid, const std::vector<std::unique_ptr<Project>>& projects) {
  auto view = std::make_shared<WorldView>();
  view->root_ = RootOf(pid);
  if (!view->root_.valid()) return Failure("open the world's root");
  constexpr size_t kMaxMountInfo = 16u << 20;
  TRY_ASSIGN(std::string inner,
             ReadFileAt(AT_FDCWD, fmt::format("/proc/{}/mountinfo", pid).c_str(), kMaxMountInfo));
  TRY_ASSIGN(std::string outer, ReadFileAt(AT_FDCWD, "/proc/self/mountinfo", kMaxMountInfo));
  const std::vector<MountLine> ours = DecodeMountInfo(outer);
  for (const auto& project : projects) {
    TRY_ASSIGN(Identity root, IdentityOf(project->root.get()));
    const auto mount = std::find_if(ours.begin(), ours.end(),
                                    [&](const MountLine& line) { return line.id == root.mount; });
    if (mount == ours.end()) return Refused(ENOENT, "the project's mount is not in our namespace");
    const auto rest = PathBelow(project->path, mount->point);
    if (!rest) return Refused(EXDEV, "the project is not below its mount");
    const std::string in_fs =
        (mount->root == "/" ? "" : mount->root) + (rest->empty() ? "" : "/" + std::string(*rest));
    for (const MountLine& line : DecodeMountInfo(inner)) {
      if (line.device != mount->device) continue;
      if (const auto prefix = PathBelow(line.root, in_fs))
        view->mounts_[line.id] = {project.get(), std::string(*prefix), line.point};
    }
  }
  return std::shared_ptr<const WorldView>(std::move(view));
}

const WorldView::Mount* WorldView::Find(uint64_t mount_id) const {
  const auto found = mounts_.find(mount_id);
  return found == mounts_.end() ? nullptr : &found->second;
}

// Is the folder, one of /proc, of the process that calls?
bool IsOwnProcess(const Resolver::Caller& caller, const Dir& dir) {
  const Result<std::string> path = PathOfFd(dir.fd.get());
  return path.ok() && PathBelow(*path, fmt::format("/proc/{}", caller.status.inner_tgid));
}

bool Resolver::IsOurs(uint64_t mount) const {
  return std::any_of(projects_.begin(), projects_.end(),
                     [&](const auto& project) { return project->mount == mount; });
}

// On our own mount: what we handed out, or came upon ourselves. Beside the projects that mount shows the host's files, and all of
// them writable: no world has anything to change there. What was handed out comes there when undo keeps it in a store, and what
// we came upon when somebody moves a folder out of a project.
Result<Object> Resolver::IdentifyHere(Fd fd, const Identity& wanted) const {
  TRY_ASSIGN(const std::string path, PathOfFd(fd.get()));
  for (const auto& project : projects_) {
    const auto rel = project->mount == wanted.mount ? PathBelow(path, project->path) : std::nullopt;
    if (rel)
      return Object{project.get(), std::move(fd), wanted.links == 0 ? "" : std::string(*rel),
                    wanted.mode};
  }
  return Refused(EROFS, "the object is in no project any more");
}

Result<Object> Resolver::Identify(const Caller& caller, Fd fd) {
  for (int attempt = 0; attempt < kRaces; ++attempt) {
    TRY_ASSIGN(Identity wanted, IdentityOf(fd.get()));
    const WorldView::Mount* mount = caller.view.Find(wanted.mount);
    if (mount == nullptr && !IsOurs(wanted.mount))
      return Object{nullptr, std::move(fd), "", wanted.mode};
    if (mount == nullptr) return IdentifyHere(std::move(fd), wanted);
    if (wanted.links == 0) return Refused(EROFS, "an object without a name is out of reach");
    TRY_ASSIGN(std::string path, PathOfFd(fd.get()));
    const auto rel = PathBelow(path, mount->point);
    if (!rel) continue;
    const std::string in_project = JoinPath(mount->prefix, *rel);
    Result<Fd> here = OpenBeneath(mount->project->root.get(), in_project, O_PATH | O_NOFOLLOW);
    if (!here.ok() && here.error().sys_errno() == EMFILE) return here.error();
    if (!here.ok()) continue;
    TRY_ASSIGN(Identity found, IdentityOf(here->get()));
    if (found.SameInode(wanted))
      return Object{mount->project, std::move(*here), in_project, wanted.mode};
  }
  return Refused(EROFS, "the object is not where its descriptor says");
}

// A folder of a project that was looked up before and, if its path is needed, is still where it was; null: none such.
DirPtr Resolver::Remembered(const DirKey& key, Needed needed) {
  DirPtr known;
  {
    MutexLock lock(mutex_);
    const auto found = cache_.find(key);
    if (found == cache_.end()) return nullptr;
    known = found->second;
  }
  if (needed == Needed::kDescriptor) return known;
  // The descriptor pins the inode, but the folder may have moved.
  const auto path = own_fds_.PathOf(known->fd.get());
  const auto rel = path ? PathBelow(*path, known->project->path) : std::nullopt;
  return rel && *rel == known->path ? known : nullptr;
}

Result<DirPtr> Resolver::Classify(const Caller& caller, Fd fd) {
  TRY_ASSIGN(const Identity seen, IdentityOf(fd.get()));
  return Classify(caller, std::move(fd), seen, Needed::kPath);
}

Result<DirPtr> Resolver::Classify(const Caller& caller, Fd fd, const Identity& seen,
                                  Needed needed) {
  const bool visible = caller.view.Find(seen.mount) != nullptr;
  const DirKey key(seen.device, seen.inode);
  if (visible) {
    if (seen.links == 0) return Refused(ENOENT, "the folder was removed");
    if (DirPtr known = Remembered(key, needed)) return known;
  }
  TRY_ASSIGN(Object object, Identify(caller, std::move(fd)));
  auto dir = std::make_shared<const Dir>(
      Dir{object.project, std::move(object.fd), std::move(object.path)});
  if (visible && dir->project != nullptr) {
    MutexLock lock(mutex_);
    if (cache_.size() >= kMaxCachedDirs) cache_.clear();
    cache_[key] = dir;
  }
  return DirPtr(dir);
}

void Resolver::ForgetFolders() {
  MutexLock lock(mutex_);
  cache_.clear();
}

Result<DirPtr> Resolver::WorkingDir(const Caller& caller, Needed needed) {
  TRY_ASSIGN(const struct statx st, caller.task.StatWorkingDir(kIdentityMask));
  const Identity seen = IdentityIn(st);
  if (caller.view.Find(seen.mount) != nullptr && seen.links > 0) {
    if (DirPtr known = Remembered({seen.device, seen.inode}, needed)) return known;
  }
  TRY_ASSIGN(Fd cwd, caller.task.OpenWorkingDir());
  return Classify(caller, std::move(cwd));
}

Result<DirPtr> Resolver::StartDir(const Caller& caller, int dirfd, Needed needed) {
  if (dirfd == AT_FDCWD) return WorkingDir(caller, needed);
  TRY_ASSIGN(Fd copy, caller.task.CopyFd(dirfd));
  TRY_ASSIGN(const Identity identity, IdentityOf(copy.get()));
  if (!S_ISDIR(identity.mode)) return Refused(ENOTDIR, "dirfd");
  return Classify(caller, std::move(copy), identity, needed);
}

Result<DirPtr> Resolver::RootDir(const Caller& caller) const {
  TRY_ASSIGN(Fd root, caller.task.OpenRootDir());
  return DirPtr(std::make_shared<const Dir>(Dir{nullptr, std::move(root), ""}));
}

DirPtr Resolver::ProjectOf(const Caller& caller, std::string_view path,
                           std::string_view& rest) const {
  if (roots_differ_) return nullptr;
  for (const auto& project : projects_) {
    const auto rel = PathBelow(path, project->path);
    if (!rel || rel->empty()) continue;
    // Nothing else on this way says so. Of one that is gone not even the root can be opened.
    if (!caller.task.IsAlive()) return nullptr;
    rest = *rel;
    return std::make_shared<const Dir>(
        Dir{project.get(), Fd(::fcntl(project->root.get(), F_DUPFD_CLOEXEC, 0)), ""});
  }
  return nullptr;
}

Result<Location> Resolver::Locate(const Caller& caller, DirPtr start, std::string path,
                                  int& links) {
  if (path.empty()) return Refused(ENOENT, "empty path");
  if (path.front() == '/') {
    std::string_view rest;
    if (DirPtr root = ProjectOf(caller, path, rest)) {
      const std::string below(rest);
      return Locate(caller, std::move(root), below, links);
    }
    TRY_ASSIGN(start, RootDir(caller));
  }
  SplitPath split = Split(path);
  if (!split.dir.empty()) {
    TRY_ASSIGN(start, OpenDir(caller, start, split.dir, links));
  }
  return Location{std::move(start), std::move(split.name), split.slash};
}

// A folder that is not ours and cannot be reached. That we are short of descriptors says nothing about it.
Result<DirPtr> Nowhere(int failure) {
  if (failure == EMFILE) return Refused(failure, "open a folder");
  return DirPtr(std::make_shared<const Dir>(Dir{.failure = failure}));
}
DirPtr NoStart() { return std::make_shared<const Dir>(); }
Result<Object> Unreachable(int failure) {
  if (failure == EMFILE) return Refused(failure, "open");
  return Object{.failure = failure};
}

Result<DirPtr> Resolver::OpenDir(const Caller& caller, const DirPtr& start, const std::string& path,
                                 int& links) {
  const bool ours = start->project != nullptr;
  if (!ours && !start->fd.valid()) return start;
  const uint64_t resolve = RESOLVE_NO_MAGICLINKS |
                           (path.front() == '/' ? RESOLVE_IN_ROOT : RESOLVE_BENEATH) |
                           (ours ? RESOLVE_NO_XDEV : 0);
  Fd fd;
  {
    ActAs as(caller.status, ActAs::For::kLookup);
    // From the root of a project, a path without links says itself where it leads.
    const Result<std::string> plain = ours && start->path.empty()
                                          ? NormalizeRelPath(path)
                                          : Refused(EINVAL, "a path from elsewhere");
    if (plain.ok()) {
      fd = OpenAt2(start->fd.get(), path, O_PATH | O_DIRECTORY, resolve | RESOLVE_NO_SYMLINKS);
      if (fd.valid())
        return DirPtr(std::make_shared<const Dir>(Dir{start->project, std::move(fd), *plain}));
    }
    if (!plain.ok() || errno == ELOOP)
      fd = OpenAt2(start->fd.get(), path, O_PATH | O_DIRECTORY, resolve);
  }
  if (fd.valid()) {
    if (!ours) return Classify(caller, std::move(fd));
    TRY_ASSIGN(std::string now, PathOfFd(fd.get()));
    const auto rel = PathBelow(now, start->project->path);
    if (!rel) return Refused(ENOENT, "the folder left the project");
    return DirPtr(
        std::make_shared<const Dir>(Dir{start->project, std::move(fd), std::string(*rel)}));
  }
  // /proc/self means whoever asks, so for us there is none: walking knows better.
  const bool for_another = !ours && errno == ENOENT;
  if (errno == EXDEV || errno == ELOOP || for_another) {
    if (!ours) return WalkDir(caller, start, path, links);
    // Steps are judged one by one: the first must not start from where the folder was some time ago.
    TRY_ASSIGN(DirPtr now, Classify(caller, Fd(::fcntl(start->fd.get(), F_DUPFD_CLOEXEC, 0))));
    return WalkDir(caller, std::move(now), path, links);
  }
  if (ours) return Failure("open a folder");
  return Nowhere(errno);
}

// What is mounted on a folder of the project is none of it. On our side it is the host's, and writable; how the world has it, only
// its own view tells.
Fd OpenInView(const Resolver::Caller& caller, const Dir& dir, const std::string& name) {
  ActAs as(caller.status, ActAs::For::kLookup);
  return OpenAt2(caller.view.root(),
                 JoinPath(JoinPath(dir.project->path, dir.path), name == "." ? "" : name),
                 O_PATH | O_NOFOLLOW, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
}

Result<DirPtr> Resolver::Up(const Caller& caller, const DirPtr& dir) {
  if (dir->project != nullptr && dir->path.empty()) {
    // Out of the project: its parent in the task's view.
    TRY_ASSIGN(DirPtr root, RootDir(caller));
    Fd parent =
        OpenAt2(root->fd.get(), dir->project->path + "/..", O_PATH | O_DIRECTORY, RESOLVE_IN_ROOT);
    if (!parent.valid()) return Nowhere(errno);
    return Classify(caller, std::move(parent));
  }
  TRY_ASSIGN(DirPtr root, RootDir(caller));
  TRY_ASSIGN(Identity top, IdentityOf(root->fd.get()));
  TRY_ASSIGN(Identity here, IdentityOf(dir->fd.get()));
  if (top.SameInode(here) && top.mount == here.mount) return dir;
  Fd parent(::openat(dir->fd.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid()) return Failure("go up");
  return Classify(caller, std::move(parent));
}

// The text to follow. On /proc some links have none that helps: those lead to an object directly (EREMOTE).
Result<std::string> Resolver::LinkTarget(const Caller& caller, const Dir& dir,
                                         const std::string& name, const Fd& link) const {
  if (dir.project == nullptr && IsProc(dir.fd.get())) {
    TRY_ASSIGN(Identity parent, IdentityOf(dir.fd.get()));
    if (parent.inode != kProcRootInode) return Refused(EREMOTE, "magic link");
    // They mean whoever asks, and we are not in that pid namespace.
    if (name == "self") return fmt::format("{}", caller.status.inner_tgid);
    if (name == "thread-self")
      return fmt::format("{}/task/{}", caller.status.inner_tgid, caller.status.inner_tid);
  }
  if (auto target = ReadLinkAt(link.get(), "")) return *target;
  return Failure("readlink");
}

Result<DirPtr> Resolver::WalkDir(const Caller& caller, DirPtr dir, std::string path, int& links) {
  while (!path.empty()) {
    if (path.front() == '/') {
      if (dir->project != nullptr || !dir->fd.valid()) {
        TRY_ASSIGN(dir, RootDir(caller));
      }
      path.erase(0, std::min(path.find_first_not_of('/'), path.size()));
      continue;
    }
    const size_t end = std::min(path.find('/'), path.size());
    const std::string name = path.substr(0, end);
    path.erase(0, std::min(path.find_first_not_of('/', end), path.size()));
    if (name == ".") continue;
    if (name == "..") {
      TRY_ASSIGN(dir, Up(caller, dir));
      if (dir->project == nullptr && !dir->fd.valid()) return dir;
      continue;
    }
    Fd next;
    {
      ActAs as(caller.status, ActAs::For::kLookup);
      next = Fd(::openat(dir->fd.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    }
    if (!next.valid())
      return dir->project != nullptr ? Result<DirPtr>(Failure("walk")) : Nowhere(errno);
    TRY_ASSIGN(Identity identity, IdentityOf(next.get()));
    if (dir->project != nullptr && identity.mount != dir->project->mount) {
      next = OpenInView(caller, *dir, name);
      if (!next.valid()) return Nowhere(errno);
      TRY_ASSIGN(identity, IdentityOf(next.get()));
    }
    if (S_ISLNK(identity.mode)) {
      if (++links > kMaxLinks) return Refused(ELOOP, "walk");
      Result<std::string> target = LinkTarget(caller, *dir, name, next);
      if (target.ok()) {
        // An absolute one starts at the task's root, wherever we are.
        if (target->starts_with('/')) {
          TRY_ASSIGN(dir, RootDir(caller));
        }
        path = path.empty() ? *target : *target + "/" + path;
        continue;
      }
      if (target.error().sys_errno() != EREMOTE) return target.error();
      next = Fd(::openat(dir->fd.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (!next.valid()) return Nowhere(errno);
    } else if (!S_ISDIR(identity.mode)) {
      return dir->project != nullptr ? Result<DirPtr>(Refused(ENOTDIR, "walk")) : Nowhere(ENOTDIR);
    }
    TRY_ASSIGN(dir, Classify(caller, std::move(next)));
  }
  return dir;
}

Result<Location> Resolver::FindName(const Caller& caller, int dirfd, std::string_view path,
                                    LastDir* last) {
  SplitPath split = Split(path);
  if (last != nullptr && last->dir != nullptr && last->dirfd == dirfd &&
      last->prefix == split.dir && !path.empty())
    return Location{last->dir, std::move(split.name), split.slash};
  DirPtr start = NoStart();
  if (!path.starts_with('/') && !path.empty()) {
    // What lies further down is asked for its own path.
    const Needed needed = split.dir.empty() ? Needed::kPath : Needed::kDescriptor;
    TRY_ASSIGN(start, StartDir(caller, dirfd, needed));
  }
  int links = 0;
  TRY_ASSIGN(Location at, Locate(caller, std::move(start), std::string(path), links));
  if (last != nullptr) *last = {dirfd, std::move(split.dir), at.dir};
  return at;
}

Result<Object> Resolver::FindObject(const Caller& caller, int dirfd, std::string_view path,
                                    Follow follow, Location* missing, LastDir* last) {
  TRY_ASSIGN(Location at, FindName(caller, dirfd, path, last));
  int links = 0;
  while (true) {
    if (!at.ours() && !at.dir->fd.valid()) return Unreachable(at.dir->failure);
    if (at.name == "..") {
      TRY_ASSIGN(at.dir, Up(caller, at.dir));
      at.name = ".";
      continue;
    }
    Fd fd;
    {
      ActAs as(caller.status, ActAs::For::kLookup);
      fd = Fd(::openat(at.dir->fd.get(), at.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    }
    if (!fd.valid()) {
      const int failure = errno;
      if (missing != nullptr && failure == ENOENT) {
        *missing = std::move(at);
        return Object{};
      }
      if (!at.ours()) return Unreachable(failure);
      return Refused(failure, "open");
    }
    TRY_ASSIGN(Identity identity, IdentityOf(fd.get()));
    const bool wants_target = follow == Follow::kYes || at.slash == Location::Slash::kTrailing;
    if (S_ISLNK(identity.mode) && wants_target) {
      if (++links > kMaxLinks) return Refused(ELOOP, "follow");
      Result<std::string> target = LinkTarget(caller, *at.dir, at.name, fd);
      if (!target.ok() && target.error().sys_errno() == EREMOTE) {
        Fd behind(::openat(at.dir->fd.get(), at.name.c_str(), O_PATH | O_CLOEXEC));
        if (!behind.valid()) return Unreachable(errno);
        Result<Object> object = Identify(caller, std::move(behind));
        // The kernel lets nobody reach what a process holds whom it may not trace; we may trace all of them.
        const bool in_project = object.ok() && object->project != nullptr;
        if (!in_project && !IsOwnProcess(caller, *at.dir)) return Unreachable(EACCES);
        return object;
      }
      TRY(target);
      const Location::Slash slash = at.slash;
      TRY_ASSIGN(at, Locate(caller, at.dir, *target, links));
      if (slash == Location::Slash::kTrailing) at.slash = slash;
      continue;
    }
    if (!at.ours()) return Identify(caller, std::move(fd));
    if (identity.mount != at.dir->project->mount) {
      Fd inside = OpenInView(caller, *at.dir, at.name);
      if (!inside.valid()) return Unreachable(errno);
      return Identify(caller, std::move(inside));
    }
    if (at.slash == Location::Slash::kTrailing && !S_ISDIR(identity.mode))
      return Refused(ENOTDIR, "open");
    std::string where = at.name == "." ? at.dir->path : JoinPath(at.dir->path, at.name);
    return Object{at.dir->project, std::move(fd), std::move(where),
                  static_cast<mode_t>(identity.mode)};
  }
}

Result<Object> Resolver::FindFd(const Caller& caller, int fd) {
  TRY_ASSIGN(Fd copy, caller.task.CopyFd(fd));
  const int opened = ::fcntl(copy.get(), F_GETFL);
  if (opened < 0) return Failure("descriptor");
  TRY_ASSIGN(const Identity seen, IdentityOf(copy.get()));
  // What we handed out, and whoever has it may write to it wherever it is by now. Who has to know its path asks for it.
  const bool writes = (opened & O_ACCMODE) != O_RDONLY;
  const bool visible = caller.view.Find(seen.mount) != nullptr;
  if (const Project* const owner = writes && !visible ? OwnerOf(seen) : nullptr)
    return Object{.project = owner, .fd = std::move(copy), .mode = seen.mode, .opened = opened};
  TRY_ASSIGN(Object object, Identify(caller, std::move(copy)));
  object.opened = opened;
  return object;
}

// Of a descriptor that allows writing. Null: it is of another mount, or of one with several projects and nobody knows of it.
const Project* Resolver::OwnerOf(const Identity& seen) const {
  const auto is_there = [&](const auto& project) { return project->mount == seen.mount; };
  switch (std::count_if(projects_.begin(), projects_.end(), is_there)) {
    case 0:
      return nullptr;
    case 1:
      return std::find_if(projects_.begin(), projects_.end(), is_there)->get();
    default:
      return writers_.ProjectOf(seen.device, seen.inode);
  }
}

}  // namespace sandglass::bridge
