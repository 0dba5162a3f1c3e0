#include "session/watch/filesystem_watch.h"

#include <fcntl.h>
#include <sys/fanotify.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/beneath.h"
#include "base/rel_path.h"
#include "undo/object.h"

namespace sandglass::session {
namespace {

constexpr uint64_t kWatched =
    FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO | FAN_MODIFY | FAN_ATTRIB | FAN_ONDIR;
constexpr size_t kBufferBytes = size_t{64} << 10;

struct KindRow {
  uint64_t bit;
  ExternalKind kind;
};
constexpr KindRow kKinds[] = {
    {FAN_CREATE, ExternalKind::kCreated}, {FAN_MOVED_TO, ExternalKind::kCreated},
    {FAN_DELETE, ExternalKind::kRemoved}, {FAN_MOVED_FROM, ExternalKind::kRemoved},
    {FAN_MODIFY, ExternalKind::kContent}, {FAN_ATTRIB, ExternalKind::kMetadata},
};

// The kernel may have put several events of one name together, in whatever order: then nobody can tell which was first.
ChangeNote NoteOf(uint64_t mask) {
  ChangeNote note;
  for (const KindRow& row : kKinds) {
    if ((mask & row.bit) != 0) note.kinds.Add(row.kind);
  }
  if ((mask & (FAN_CREATE | FAN_MOVED_TO)) != 0 && (mask & (FAN_DELETE | FAN_MOVED_FROM)) == 0)
    note.first = FirstHeard::kItWasMade;
  return note;
}

Fd OpenHandle(int mount_fd, int type, ByteView bytes) {
  alignas(file_handle) std::array<std::byte, sizeof(file_handle) + MAX_HANDLE_SZ> room{};
  if (bytes.size() > MAX_HANDLE_SZ) return Fd();
  auto* handle = reinterpret_cast<file_handle*>(room.data());
  handle->handle_bytes = static_cast<unsigned>(bytes.size());
  handle->handle_type = type;
  std::memcpy(handle->f_handle, bytes.data(), bytes.size());
  return Fd(::open_by_handle_at(mount_fd, handle, O_PATH | O_CLOEXEC));
}

bool IsSameObject(const Fd& a, const Fd& b) {
  struct stat one{}, other{};
  return ::fstat(a.get(), &one) == 0 && ::fstat(b.get(), &other) == 0 &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace

Result<FilesystemWatch> FilesystemWatch::Open(int root_fd, std::string project,
                                              const Exclusions& exclusions,
                                              PendingChanges& pending) {
  Fd fanotify(::fanotify_init(
      FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_DIR_FID | FAN_REPORT_NAME,
      O_RDONLY | O_CLOEXEC));
  if (!fanotify) return Error::FromErrno(errno, "fanotify_init");
  const undo::ProcPath root(root_fd);
  if (::fanotify_mark(fanotify.get(), FAN_MARK_ADD | FAN_MARK_FILESYSTEM, kWatched, AT_FDCWD,
                      root.c_str()) != 0)
    return Error::FromErrno(errno, "fanotify_mark");
  return FilesystemWatch(root_fd, std::move(project), exclusions, pending, std::move(fanotify));
}

Status FilesystemWatch::Drain() {
  Bytes buffer(kBufferBytes);
  while (true) {
    const ssize_t got = ::read(fanotify_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN) return Error::FromErrno(errno, "read what changed");
    if (got <= 0) break;
    TRY_ASSIGN(const auto records, ParseFanotify(ByteView(buffer).first(static_cast<size_t>(got))));
    for (const FanotifyRecord& record : records) Handle(record);
  }
  pending_->NoteDrained();
  return Ok();
}

void FilesystemWatch::Handle(const FanotifyRecord& record) {
  if ((record.mask & FAN_Q_OVERFLOW) != 0) return pending_->LoseTrack();
  const auto folder = FolderOf(record);
  if (!folder) return;
  std::string path = record.name.empty() ? *folder : JoinPath(*folder, record.name);
  const auto kind = (record.mask & FAN_ONDIR) != 0 ? undo::PathKind::kDir : undo::PathKind::kFile;
  if (exclusions_->Exclude(path, kind)) return;
  pending_->Add(std::move(path), NoteOf(record.mask));
}

// A folder that is gone says nothing: that it went is told by the one above it.
std::optional<std::string> FilesystemWatch::FolderOf(const FanotifyRecord& record) const {
  if (record.handle.empty()) return std::nullopt;
  const Fd folder = OpenHandle(root_fd_, record.handle_type, record.handle);
  if (!folder) return std::nullopt;
  std::string path(PATH_MAX, '\0');
  const ssize_t got = ::readlink(undo::ProcPath(folder.get()).c_str(), path.data(), path.size());
  if (got <= 0) return std::nullopt;
  path.resize(static_cast<size_t>(got));
  const auto below = PathBelow(path, project_);
  if (!below || !IsNormalRelPath(*below)) return std::nullopt;
  // The kernel puts words behind the name of what was removed: only the folder that can be reached by it is meant.
  const auto reached = OpenDirBeneath(root_fd_, *below);
  if (!reached.ok() || !IsSameObject(*reached, folder)) return std::nullopt;
  return std::string(*below);
}

}  // namespace sandglass::session
