#include "undo/shadows.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unordered_set>

#include "base/beneath.h"
#include "base/io.h"
#include "undo/journal_format.h"
#include "undo/link_index.h"
#include "undo/step_files.h"

namespace sandglass::undo {
namespace {

constexpr uint64_t kMaxShadowBytes = 256 << 20;
constexpr const char* kFolder = "shadows";
constexpr std::string_view kNoteSuffix = ".note";
constexpr size_t kMaxNoteBytes = 1 << 20;

Error TooLarge() {
  return Error(Code::kLimit, "too large to keep a copy for a process that has it open");
}

std::string NoteName(BlobId slot) { return BlobName(slot).c_str() + std::string(kNoteSuffix); }

// What a note says: whose copy it is, and what that looked like. Views point into `bytes`.
struct Note {
  MetaRecord meta;
  ContentRecord content;
};

Result<Note> DecodeNote(ByteView bytes) {
  TRY_ASSIGN(std::vector<Record> records, DecodeFrames(bytes));
  if (records.size() == 2) {
    auto* meta = std::get_if<MetaRecord>(&records[0]);
    const auto* content = std::get_if<ContentRecord>(&records[1]);
    if (meta != nullptr && content != nullptr && meta->object == content->object)
      return Note{std::move(*meta), *content};
  }
  return Error(Code::kCorrupt, "a shadow's note makes no sense");
}

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

std::optional<CopyResult> TryClone(const Place& place, int from, int to) {
  if (!place.abilities.reflinks || ::ioctl(to, FICLONE, from) != 0) return std::nullopt;
  struct stat cloned{};
  if (::fstat(to, &cloned) != 0) return std::nullopt;
  ++place.stats.reflink;
  return CopyResult{Keeping::kClone, 0, 0, static_cast<uint64_t>(cloned.st_size)};
}

Result<CopyResult> CopyInFull(const Place& place, int from, int to, uint64_t size) {
  TRY_ASSIGN(const SparseCopy copy, CopySparse(from, to, size));
  ++place.stats.blob_copy;
  return CopyResult{Keeping::kBlob, copy.checksum, copy.written, size};
}

Result<CopyResult> CloneOrCopy(const Place& place, int from, int to, uint64_t size) {
  if (const auto clone = TryClone(place, from, to)) return *clone;
  return CopyInFull(place, from, to, size);
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
  auto shadow = Make(object);
  if (!shadow.ok()) return GiveUp(object, shadow.error());
  Drop(object.id);
  MutexLock lock(mutex_);
  unwatched_.erase(object.id);
  shadows_[object.id] = std::move(*shadow);
  ++place_.stats.shadow;
  return Ok();
}

Result<Shadow> Shadows::Make(const OpenObject& object) {
  if (object.stat.size > kMaxShadowBytes && !place_.abilities.reflinks) return TooLarge();
  if (!object.readable) return Error(Code::kDenied, "cannot be read");
  TRY_ASSIGN(int folder, Folder());
  Shadow shadow;
  TRY_ASSIGN(shadow.meta, CaptureMetadata(object));
  {
    MutexLock lock(mutex_);
    shadow.slot = {next_++};
  }
  if (Status filled = Fill(object, folder, shadow); !filled.ok()) {
    Remove(shadow);
    return filled.error();
  }
  return shadow;
}

Status Shadows::Fill(const OpenObject& object, int folder, Shadow& shadow) {
  const BlobName name(shadow.slot);
  TRY_ASSIGN(const Fd copy, OpenStoreFile(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL));
  auto copied = TryClone(place_, object.fd.get(), copy.get());
  if (!copied) {
    if (object.stat.size > kMaxShadowBytes) return TooLarge();
    TRY_ASSIGN(copied, CopyInFull(place_, object.fd.get(), copy.get(), object.stat.size));
  }
  shadow.keeping = copied->keeping;
  shadow.checksum = copied->checksum;
  shadow.meta.size = copied->size;
  shadow.live = Fd(::fcntl(object.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!shadow.live.valid()) return Error::FromErrno(errno, "duplicate a descriptor");
  return WriteNote(object, shadow);
}

Status Shadows::WriteNote(const OpenObject& object, const Shadow& shadow) {
  TRY_ASSIGN(const auto path, AnyPathOf(place_, object));
  if (!path) return Ok();  // nobody will see it again once its writer is gone
  const Record records[] = {
      MetaRecord{
          .object = object.id, .reason = TouchReason::kDirect, .path = *path, .meta = shadow.meta},
      shadow.AsContent(object.id, *path, shadow.slot)};
  TRY_ASSIGN(const Bytes frames, EncodeFrames(records));
  TRY_ASSIGN(int folder, Folder());
  return ReplaceFileAt(folder, NoteName(shadow.slot).c_str(), AsText(frames));
}

Status Shadows::Load() {
  if (!NameExists(place_.store.get(), kFolder)) return Ok();
  TRY_ASSIGN(int folder, Folder());
  TRY_ASSIGN(std::vector<std::string> names, ListNames(folder));
  // Of two shadows of an object the newer one counts, and its number is the higher one.
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::strtoul(a.c_str(), nullptr, 10) < std::strtoul(b.c_str(), nullptr, 10);
  });
  for (const std::string& name : names) {
    if (name.ends_with(kNoteSuffix)) TRY(LoadNote(name));
  }
  std::unordered_set<std::string> wanted;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, shadow] : shadows_) {
      wanted.insert(BlobName(shadow.slot).c_str());
      wanted.insert(NoteName(shadow.slot));
    }
  }
  for (const std::string& name : names) {
    if (!wanted.contains(name)) TRY(RemoveTreeAt(folder, name.c_str()));
  }
  return Ok();
}

// What cannot be read, or is about something that is gone, is passed over: Load() removes it.
Status Shadows::LoadNote(const std::string& name) {
  TRY_ASSIGN(int folder, Folder());
  const auto bytes = ReadFileAt(folder, name.c_str(), kMaxNoteBytes);
  if (!bytes.ok()) return Ok();
  auto note = DecodeNote(AsBytes(*bytes));
  if (!note.ok()) return Ok();
  const auto at = [&](std::string_view path) -> std::optional<OpenObject> {
    auto fd = OpenBeneath(place_.root.get(), path, O_PATH | O_NOFOLLOW);
    if (!fd.ok()) return std::nullopt;
    auto object = OpenObjectFd(place_.identifier, fd->get());
    if (!object.ok() || object->id != note->meta.object || !object->readable) return std::nullopt;
    return std::move(*object);
  };
  auto object = at(note->meta.path);
  if (!object) {
    if (const auto path = LinkIndex(place_).Find(note->meta.object)) object = at(*path);
  }
  if (!object) return Ok();
  Shadow shadow{.live = std::move(object->fd),
                .meta = std::move(note->meta.meta),
                .slot = {static_cast<uint32_t>(note->content.where)},
                .keeping = note->content.keeping,
                .checksum = note->content.checksum};
  MutexLock lock(mutex_);
  if (NoteName(shadow.slot) != name || !NameExists(folder, BlobName(shadow.slot).c_str()))
    return Ok();
  next_ = std::max(next_, shadow.slot.value + 1);
  shadows_[object->id] = std::move(shadow);
  return Ok();
}

ContentRecord Shadow::AsContent(ObjectId object, std::string_view path, BlobId blob) const {
  return {.object = object,
          .path = path,
          .keeping = keeping,
          .whole = true,
          .sparse = meta.blocks * 512 < meta.size,
          .file_size = meta.size,
          .offset = 0,
          .length = meta.size,
          .where = blob.value,
          .checksum = checksum};
}

Status Shadows::LinkCopy(const Shadow& shadow, int blobs, BlobId blob) {
  TRY_ASSIGN(int folder, Folder());
  const BlobName copy(shadow.slot), name(blob);
  if (::linkat(folder, copy.c_str(), blobs, name.c_str(), 0) == 0) return Ok();
  if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK)
    return Error::FromErrno(errno, "adopt a shadow");
  // A file system without hard links.
  if (::renameat(folder, copy.c_str(), blobs, name.c_str()) == 0) return Ok();
  return Error::FromErrno(errno, "adopt a shadow");
}

void Shadows::Remove(const Shadow& shadow) {
  MutexLock lock(mutex_);
  ::unlinkat(folder_.get(), NoteName(shadow.slot).c_str(), 0);
  ::unlinkat(folder_.get(), BlobName(shadow.slot).c_str(), 0);
}

void Shadows::PutBack(ObjectId object, Shadow shadow) {
  MutexLock lock(mutex_);
  shadows_.try_emplace(object, std::move(shadow));
}

void Shadows::Disown() {
  MutexLock lock(mutex_);
  for (const auto& [id, shadow] : shadows_)
    ::unlinkat(folder_.get(), NoteName(shadow.slot).c_str(), 0);
}

Status Shadows::GiveUp(const OpenObject& object, const Error& why) {
  if (why.code() == Code::kLimit) Drop(object.id);
  Fd live(::fcntl(object.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!live.valid()) return Error::FromErrno(errno, "duplicate a descriptor");
  MutexLock lock(mutex_);
  std::erase_if(unwatched_, [this](const auto& entry) { return !IsWritten(entry.second); });
  if (!shadows_.contains(object.id)) unwatched_[object.id] = std::move(live);
  return why;
}

bool Shadows::IsWritten(const Fd& fd) const {
  const auto object = OpenObjectFd(place_.identifier, fd.get());
  return !object.ok() || MayHaveWriter(*object);
}

bool Shadows::Has(ObjectId object) const {
  MutexLock lock(mutex_);
  if (shadows_.contains(object)) return true;
  const auto found = unwatched_.find(object);
  return found != unwatched_.end() && IsWritten(found->second);
}

std::optional<Shadow> Shadows::Claim(ObjectId object) {
  MutexLock lock(mutex_);
  auto node = shadows_.extract(object);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

void Shadows::Drop(ObjectId object) {
  if (auto shadow = Claim(object)) Remove(*shadow);
}

bool Shadows::IsCurrent(const OpenObject& object) const {
  MutexLock lock(mutex_);
  const auto found = shadows_.find(object.id);
  return found != shadows_.end() && found->second.meta.size == object.stat.size &&
         found->second.meta.ctime_ns == object.stat.ctime_ns;
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
    TRY_ASSIGN(const FileStat now, StatFd(shadow.live.get()));
    // Also who writes the same bytes again has changed the time; who writes through a mapping may not have, yet.
    bool same = now.size == shadow.meta.size && now.mtime_ns == shadow.meta.mtime_ns;
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
