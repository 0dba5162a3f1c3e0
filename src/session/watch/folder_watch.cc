#include "session/watch/folder_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "undo/object.h"

namespace sandglass::session {
namespace {

constexpr uint32_t kNames = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
// What is opened for writing and not written to is no change, so IN_CLOSE_WRITE is not among them.
constexpr uint32_t kWatched =
    kNames | IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;
constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr size_t kFreshAtATime = 64;

struct KindRow {
  uint32_t bit;
  ExternalKind kind;
};
constexpr KindRow kKinds[] = {
    {IN_CREATE, ExternalKind::kCreated}, {IN_MOVED_TO, ExternalKind::kCreated},
    {IN_DELETE, ExternalKind::kRemoved}, {IN_MOVED_FROM, ExternalKind::kRemoved},
    {IN_MODIFY, ExternalKind::kContent}, {IN_ATTRIB, ExternalKind::kMetadata},
};

ExternalKinds KindsOf(uint32_t mask) {
  ExternalKinds kinds;
  for (const KindRow& row : kKinds) {
    if ((mask & row.bit) != 0) kinds.Add(row.kind);
  }
  return kinds;
}

undo::PathKind KindOf(bool is_folder) {
  return is_folder ? undo::PathKind::kDir : undo::PathKind::kFile;
}

bool IsFolder(int dir_fd, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  const auto stat = undo::LookAt(dir_fd, entry.d_name);
  return stat && stat->IsDirectory();
}

}  // namespace

Result<FolderWatch> FolderWatch::Open(int root_fd, const Exclusions& exclusions,
                                      PendingChanges& pending) {
  Fd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify && errno == EMFILE)
    return Error(Code::kLimit,
                 "too many programs of this user watch files: see "
                 "/proc/sys/fs/inotify/max_user_instances");
  if (!inotify) return Error::FromErrno(errno, "inotify_init");
  FolderWatch watch(root_fd, exclusions, pending, std::move(inotify));
  watch.root_ = watch.Watch({.parent = kNone, .name = "", .reason = Reason::kFirstWalk});
  if (watch.root_ == kNone)
    return Error(Code::kLimit,
                 "the folder cannot be watched: see "
                 "/proc/sys/fs/inotify/max_user_watches");
  return watch;
}

// --- Who is where.

std::optional<std::string> FolderWatch::PathOf(WatchId id) const {
  if (id == root_) return std::string();
  const auto folder = folders_.find(id);
  if (folder == folders_.end()) return std::nullopt;
  return PathOf(folder->second.parent, folder->second.name);
}

std::optional<std::string> FolderWatch::PathOf(WatchId parent, std::string_view name) const {
  if (parent == kNone) return std::string();
  auto path = PathOf(parent);
  if (path) *path = JoinPath(*path, name);
  return path;
}

bool FolderWatch::IsBelow(WatchId id, WatchId top) const {
  while (id != top) {
    const auto folder = folders_.find(id);
    if (folder == folders_.end()) return false;
    id = folder->second.parent;
  }
  return true;
}

// --- What is read.

Result<size_t> FolderWatch::ReadOnce(Bytes& buffer) {
  while (true) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got >= 0) return static_cast<size_t>(got);
    if (errno == EAGAIN) return size_t{0};
    if (errno != EINTR) return Error::FromErrno(errno, "read what changed");
  }
}

// New folders are looked into in between, so that the kernel's queue never waits for long.
Status FolderWatch::Drain() {
  Bytes buffer(kBufferBytes);
  while (true) {
    TRY_ASSIGN(const size_t got, ReadOnce(buffer));
    TRY_ASSIGN(const auto records, ParseInotify(ByteView(buffer).first(got)));
    for (const InotifyRecord& record : records) Handle(record);
    if (got == 0 && fresh_.empty()) break;
    for (size_t i = 0; i < kFreshAtATime && !fresh_.empty(); ++i) {
      const Task task = std::move(fresh_.back());
      fresh_.pop_back();
      Watch(task);
    }
  }
  FollowMoves();
  pending_->NoteDrained();
  return Ok();
}

FolderWatch::Walk FolderWatch::WalkOn(size_t folders) {
  for (; folders > 0 && !walk_.empty(); --folders) {
    const Task task = std::move(walk_.back());
    walk_.pop_back();
    Watch(task);
  }
  return walk_.empty() ? Walk::kDone : Walk::kGoesOn;
}

void FolderWatch::Handle(const InotifyRecord& record) {
  if ((record.mask & IN_Q_OVERFLOW) != 0) return StartOver();
  if ((record.mask & IN_IGNORED) != 0) {
    folders_.erase(record.watch);
    return;
  }
  if (!folders_.contains(record.watch)) return;
  if (record.name.empty()) return HandleOwn(record);
  HandleName(record);
}

// Of the folder itself; what others hear of it by its name, they tell. The root has no such others.
void FolderWatch::HandleOwn(const InotifyRecord& record) {
  const bool is_root = record.watch == root_;
  if ((record.mask & IN_MOVE_SELF) != 0 && !is_root) moved_.push_back(record.watch);
  if (!is_root) return;
  if ((record.mask & (IN_MOVE_SELF | IN_DELETE_SELF | IN_UNMOUNT)) != 0)
    pending_->LoseTrack();
  else
    Note("", record);
}

void FolderWatch::HandleName(const InotifyRecord& record) {
  auto path = PathOf(record.watch, record.name);
  const bool is_folder = (record.mask & IN_ISDIR) != 0;
  if (!path || exclusions_->Exclude(*path, KindOf(is_folder))) return;
  if (is_folder && (record.mask & (IN_CREATE | IN_MOVED_TO)) != 0)
    Watch({record.watch, std::string(record.name), Reason::kMade});
  Note(std::move(*path), record);
}

// A name that another one is renamed to may have been there before, which nobody tells. It is taken to be new: a rename and its way back,
// as of a step that is denied at once, is far more usual than a file that is replaced and removed in a moment.
void FolderWatch::Note(std::string path, const InotifyRecord& record) {
  const bool made = (record.mask & (IN_CREATE | IN_MOVED_TO)) != 0;
  pending_->Add(std::move(path),
                {.kinds = KindsOf(record.mask),
                 .first = made ? FirstHeard::kItWasMade : FirstHeard::kItWasThere});
}

// Also folders that are watched are listed again, for those in them that nobody heard of.
void FolderWatch::StartOver() {
  pending_->LoseTrack();
  fresh_.clear();
  walk_.clear();
  walk_.push_back({.parent = kNone, .name = "", .reason = Reason::kLostTrack});
}

// To another place in the project: that was noted when its new name was heard of, which may be later than it was heard that it moved,
// if it moved again. Or out of the project, with all below.
void FolderWatch::FollowMoves() {
  for (const WatchId moved : std::exchange(moved_, {})) {
    const auto path = PathOf(moved);
    if (!path) continue;
    const auto folder = OpenBeneath(root_fd_, *path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (!folder.ok() || AddWatch(*folder) != moved) Forget(moved);
  }
}

void FolderWatch::Forget(WatchId top) {
  std::vector<WatchId> gone;
  for (const auto& [id, folder] : folders_) {
    if (IsBelow(id, top)) gone.push_back(id);
  }
  for (const WatchId id : gone) {
    folders_.erase(id);
    ::inotify_rm_watch(inotify_.get(), id);
  }
}

// --- What is watched.

FolderWatch::WatchId FolderWatch::AddWatch(const Fd& folder) {
  const undo::ProcPath path(folder.get());
  const WatchId id = ::inotify_add_watch(inotify_.get(), path.c_str(), kWatched);
  if (id < 0 && (errno == ENOSPC || errno == ENOMEM)) coverage_ = Coverage::kPartial;
  return id < 0 ? kNone : id;
}

FolderWatch::WatchId FolderWatch::Watch(const Task& task) {
  const auto path = PathOf(task.parent, task.name);
  if (!path) return kNone;
  const auto folder = OpenBeneath(root_fd_, *path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder.ok()) return kNone;
  const WatchId id = AddWatch(*folder);
  if (id == kNone) {
    // Every other one would fail as well.
    if (coverage_ == Coverage::kPartial) walk_.clear();
    return kNone;
  }
  const bool known = !folders_.insert_or_assign(id, Folder{task.parent, task.name}).second;
  // It only has another name now: what is below it is watched already.
  if (known && task.reason == Reason::kMade) return id;
  ListInto(*folder, id, *path, task.reason);
  return id;
}

void FolderWatch::ListInto(const Fd& folder, WatchId id, const std::string& path, Reason reason) {
  const int fd = ::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(fd < 0 ? nullptr : ::fdopendir(fd), ::closedir);
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const bool is_folder = IsFolder(folder.get(), *entry);
    if (!is_folder && reason != Reason::kMade) continue;
    std::string below = JoinPath(path, name);
    if (exclusions_->Exclude(below, KindOf(is_folder))) continue;
    if (is_folder)
      (reason == Reason::kMade ? fresh_ : walk_).push_back({id, std::string(name), reason});
    if (reason == Reason::kMade)
      pending_->Add(std::move(below),
                    {.kinds = ExternalKind::kCreated, .first = FirstHeard::kItWasFound});
  }
}

}  // namespace sandglass::session
