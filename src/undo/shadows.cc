#include "undo/shadows.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/io.h"
#include "undo/link_index.h"
#include "undo/step_files.h"

namespace sandglass::undo {
namespace {

constexpr uint64_t kMaxShadowBytes = 256 << 20;
constexpr const char* kFolder = "shadows";

}  // namespace

bool TakeLease(const OpenObject& object, LeaseKind kind) {
  if (!object.readable) return false;
  // Whoever breaks a lease makes the kernel signal its holder; SIGIO, the default, would end the process.
  ::fcntl(object.fd.get(), F_SETSIG, SIGURG);
  return ::fcntl(object.fd.get(), F_SETLEASE, kind == LeaseKind::kAlone ? F_WRLCK : F_RDLCK) == 0;
}

bool MayHaveWriter(const OpenObject& object) {
  if (!TakeLease(object, LeaseKind::kReaders)) return true;
  ::fcntl(object.fd.get(), F_SETLEASE, F_UNLCK);
  return false;
}

std::optional<std::string> ProjectPathOf(const Place& place, int fd) {
  const auto read_link = [](int of) -> std::string {
    std::string text(PATH_MAX, '\0');
    const ssize_t n = ::readlink(ProcPath(of).c_str(), text.data(), text.size());
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return text;
  };
  const std::string root = read_link(place.root.get()), path = read_link(fd);
  if (path == root) return "";
  if (root.empty() || path.size() <= root.size() + 1 || !path.starts_with(root) ||
      path[root.size()] != '/') {
    return std::nullopt;
  }
  std::string relative = path.substr(root.size() + 1);
  // The kernel appends " (deleted)", which is also a legal end of a name: the disk decides.
  struct stat by_fd{}, by_path{};
  if (::fstat(fd, &by_fd) != 0 ||
      ::fstatat(place.root.get(), relative.c_str(), &by_path, AT_SYMLINK_NOFOLLOW) != 0 ||
      by_fd.st_ino != by_path.st_ino || by_fd.st_dev != by_path.st_dev) {
    return std::nullopt;
  }
  return relative;
}

Result<CopyResult> CloneOrCopy(const Place& place, int from, int to, uint64_t size) {
  if (place.abilities.reflinks && ::ioctl(to, FICLONE, from) == 0) {
    ++place.stats.reflink;
    return CopyResult{Keeping::kClone, 0};
  }
  TRY_ASSIGN(uint64_t checksum, CopySparse(from, to, size));
  ++place.stats.blob_copy;
  return CopyResult{Keeping::kBlob, checksum};
}

Shadows::Shadows(const Place& place) : place_(place) {}
Shadows::~Shadows() = default;

Result<int> Shadows::Folder() {
  MutexLock lock(mutex_);
  if (!folder_.valid()) {
    TRY_ASSIGN(folder_, OpenOrMakeDir(place_.store.get(), kFolder));
  }
  return folder_.get();
}

Status Shadows::Take(const OpenObject& object) {
  if (object.stat.size > kMaxShadowBytes && !place_.abilities.reflinks) return GiveUp(object);
  if (!object.readable) return Error(Code::kDenied, "cannot be read");
  TRY_ASSIGN(int folder, Folder());
  Shadow shadow;
  TRY_ASSIGN(shadow.meta, CaptureMetadata(object));
  {
    MutexLock lock(mutex_);
    shadow.slot = {next_++};
  }
  BlobName name(shadow.slot);
  TRY_ASSIGN(const Fd copy, OpenStoreFile(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL));
  TRY_ASSIGN(CopyResult copied, CloneOrCopy(place_, object.fd.get(), copy.get(), object.stat.size));
  shadow.keeping = copied.keeping;
  shadow.checksum = copied.checksum;
  shadow.live = Fd(::fcntl(object.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!shadow.live.valid()) return Error::FromErrno(errno, "duplicate a descriptor");
  Drop(object.id);
  MutexLock lock(mutex_);
  too_large_.erase(object.id);
  shadows_[object.id] = std::move(shadow);
  ++place_.stats.shadow;
  return Ok();
}

Status Shadows::GiveUp(const OpenObject& object) {
  Fd live(::fcntl(object.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!live.valid()) return Error::FromErrno(errno, "duplicate a descriptor");
  Drop(object.id);
  MutexLock lock(mutex_);
  std::erase_if(too_large_, [this](const auto& entry) { return !IsWritten(entry.second); });
  too_large_[object.id] = std::move(live);
  return Error(Code::kLimit, "too large to keep a copy for a process that has it open");
}

bool Shadows::IsWritten(const Fd& fd) const {
  const auto object = OpenObjectFd(place_.identifier, fd.get());
  return !object.ok() || MayHaveWriter(*object);
}

bool Shadows::Has(ObjectId object) const {
  MutexLock lock(mutex_);
  if (shadows_.contains(object)) return true;
  const auto found = too_large_.find(object);
  return found != too_large_.end() && IsWritten(found->second);
}

std::optional<Shadow> Shadows::Claim(ObjectId object) {
  MutexLock lock(mutex_);
  auto node = shadows_.extract(object);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

void Shadows::Drop(ObjectId object) {
  auto shadow = Claim(object);
  if (!shadow) return;
  MutexLock lock(mutex_);
  ::unlinkat(folder_.get(), BlobName(shadow->slot).c_str(), 0);
}

std::vector<ObjectId> Shadows::All() const {
  MutexLock lock(mutex_);
  std::vector<ObjectId> ids;
  for (const auto& [id, shadow] : shadows_) ids.push_back(id);
  return ids;
}

Result<std::vector<ObjectId>> Shadows::Changed() const {
  MutexLock lock(mutex_);
  std::vector<ObjectId> changed;
  for (const auto& [id, shadow] : shadows_) {
    struct stat info{};
    if (::fstat(shadow.live.get(), &info) != 0)
      return Error::FromErrno(errno, "stat a file with a live writer");
    bool same = static_cast<uint64_t>(info.st_size) == shadow.meta.size;
    if (same) {
      TRY_ASSIGN(const Fd copy,
                 OpenStoreFile(folder_.get(), BlobName(shadow.slot).c_str(), O_RDONLY));
      TRY_ASSIGN(same, SameBytes(copy.get(), shadow.live.get(), shadow.meta.size));
    }
    if (!same) changed.push_back(id);
  }
  return changed;
}

Result<std::string> Shadows::PathOf(ObjectId object) const {
  MutexLock lock(mutex_);
  auto found = shadows_.find(object);
  if (found == shadows_.end()) return Error(Code::kNotFound, "no shadow of that object");
  TRY_ASSIGN(OpenObject live, OpenObjectFd(place_.identifier, found->second.live.get()));
  TRY_ASSIGN(auto path, AnyPathOf(place_, live));
  return path.value_or("");
}

Result<OpenObject> Shadows::Reopen(ObjectId object) const {
  MutexLock lock(mutex_);
  auto found = shadows_.find(object);
  if (found == shadows_.end()) return Error(Code::kNotFound, "no shadow of that object");
  return OpenObjectFd(place_.identifier, found->second.live.get());
}

}  // namespace sandglass::undo
