#include "undo/objects_table.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/io.h"
#include "undo/place.h"

namespace sandglass::undo {
namespace {

constexpr const char* kFileName = "objects";
constexpr uint64_t kBloatedBytes = 16 << 20;

}  // namespace

// On disk; 64 bytes, so a torn append never shifts what follows it.
struct ObjectsTable::Entry {
  enum Kind : uint32_t { kSignature = 1, kSuccessor = 2, kAdopted = 3 };
  uint32_t checksum;
  uint32_t kind;
  ObjectId object;
  uint64_t words[3];  // size, mtime, ctime; of a successor: its two halves
  uint32_t mode, uid, gid, unused;

  uint32_t ComputeChecksum() const {
    const auto* bytes = reinterpret_cast<const uint8_t*>(this);
    return static_cast<uint32_t>(
        HashBytes64({bytes + sizeof(checksum), sizeof(Entry) - sizeof(checksum)}));
  }
  std::string_view Seal() {
    checksum = ComputeChecksum();
    return {reinterpret_cast<const char*>(this), sizeof(Entry)};
  }
  static Entry Blank(Kind kind, ObjectId object) {
    Entry entry{};
    entry.kind = kind;
    entry.object = object;
    return entry;
  }
  static Entry OfSignature(ObjectId object, const Signature& s) {
    Entry entry = Blank(kSignature, object);
    entry.words[0] = s.size;
    entry.words[1] = static_cast<uint64_t>(s.mtime_ns);
    entry.words[2] = static_cast<uint64_t>(s.ctime_ns);
    entry.mode = s.mode;
    entry.uid = s.uid;
    entry.gid = s.gid;
    return entry;
  }
  Signature ToSignature() const {
    return {words[0], static_cast<int64_t>(words[1]), static_cast<int64_t>(words[2]), mode, uid,
            gid};
  }
  static Entry OfAdopted(uint64_t step_uid) {
    Entry entry = Blank(kAdopted, kNoObject);
    entry.words[0] = step_uid;
    return entry;
  }
  static Entry OfSuccessor(ObjectId object, ObjectId successor) {
    Entry entry = Blank(kSuccessor, object);
    entry.words[0] = successor.lo;
    entry.words[1] = successor.hi;
    return entry;
  }
};

bool Signature::Matches(const FileStat& stat) const {
  if (mode != stat.mode || uid != stat.uid || gid != stat.gid) return false;
  if (stat.IsDirectory()) return true;
  return size == stat.size && mtime_ns == stat.mtime_ns && ctime_ns == stat.ctime_ns;
}

Status ObjectsTable::Load(int store_fd, FileSync sync) {
  static_assert(sizeof(Entry) == 64);
  sync_ = sync;
  store_ = Fd(::fcntl(store_fd, F_DUPFD_CLOEXEC, 0));
  TRY_ASSIGN(file_, OpenStoreFile(store_fd, kFileName, O_RDWR | O_CREAT));
  return ReadEntries(file_.get());
}

Status ObjectsTable::LoadToRead(int store_fd) {
  const auto file = OpenStoreFile(store_fd, kFileName, O_RDONLY);
  if (!file.ok()) return file.error().code() == Code::kNotFound ? Ok() : Status(file.error());
  return ReadEntries(file->get());
}

Status ObjectsTable::ReadEntries(int file) {
  struct stat info{};
  if (::fstat(file, &info) != 0) return Error::FromErrno(errno, "stat object table");
  Bytes bytes(static_cast<size_t>(info.st_size));
  TRY_ASSIGN(size_t got, PReadFully(file, bytes, 0));
  MutexLock lock(mutex_);
  const size_t count = got / sizeof(Entry);
  signatures_.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    Entry entry{};
    std::memcpy(&entry, bytes.data() + i * sizeof(Entry), sizeof(Entry));
    if (entry.checksum != entry.ComputeChecksum()) continue;
    if (entry.kind == Entry::kSignature) {
      signatures_[entry.object] = entry.ToSignature();
    } else if (entry.kind == Entry::kSuccessor) {
      successors_[entry.object] = {entry.words[0], entry.words[1]};
    } else if (entry.kind == Entry::kAdopted) {
      adopted_.insert(entry.words[0]);
    }
  }
  file_bytes_ = count * sizeof(Entry);
  return Ok();
}

ObjectId ObjectsTable::Current(ObjectId recorded) const {
#ifdef SANDGLASS_MUTANT_skip_remap
  return recorded;
#endif
  MutexLock lock(mutex_);
  // A cycle cannot arise (identities are never reused), but a damaged file must not hang us.
  for (size_t hops = 0; hops <= successors_.size(); ++hops) {
    auto next = successors_.find(recorded);
    if (next == successors_.end()) break;
    recorded = next->second;
  }
  return recorded;
}

std::optional<Signature> ObjectsTable::Find(ObjectId current) const {
  MutexLock lock(mutex_);
  auto found = signatures_.find(current);
  if (found == signatures_.end()) return std::nullopt;
  return found->second;
}

void ObjectsTable::MarkAdopted(uint64_t step_uid) {
  MutexLock lock(mutex_);
  adopted_.insert(step_uid);
  pending_ += Entry::OfAdopted(step_uid).Seal();
}

bool ObjectsTable::IsAdopted(uint64_t step_uid) const {
  MutexLock lock(mutex_);
  return adopted_.contains(step_uid);
}

void ObjectsTable::Put(ObjectId current, const Signature& signature) {
  MutexLock lock(mutex_);
  signatures_[current] = signature;
  pending_ += Entry::OfSignature(current, signature).Seal();
}

void ObjectsTable::Succeed(ObjectId recorded, ObjectId successor) {
  if (recorded == successor) return;
  MutexLock lock(mutex_);
  successors_[recorded] = successor;
  pending_ += Entry::OfSuccessor(recorded, successor).Seal();
}

Status ObjectsTable::Flush() {
  MutexLock lock(mutex_);
  return AppendLocked();
}

Status ObjectsTable::AppendLocked() {
  if (pending_.empty()) return Ok();
  TRY(PWriteFully(file_.get(), AsBytes(pending_), static_cast<off_t>(file_bytes_)));
  if (sync_ == FileSync::kPower && ::fdatasync(file_.get()) != 0)
    return Error::FromErrno(errno, "sync object table");
  file_bytes_ += pending_.size();
  pending_.clear();
  return Ok();
}

size_t ObjectsTable::size() const {
  MutexLock lock(mutex_);
  return signatures_.size();
}

bool ObjectsTable::Bloated() const {
  MutexLock lock(mutex_);
  return file_bytes_ > kBloatedBytes && file_bytes_ > 4 * compacted_bytes_;
}

Status ObjectsTable::Compact(const std::unordered_set<ObjectId>& live,
                             const std::unordered_set<uint64_t>& steps) {
  MutexLock lock(mutex_);
  std::unordered_set<ObjectId> reachable;
  for (ObjectId id : live) {
    while (reachable.insert(id).second) {
      auto next = successors_.find(id);
      if (next == successors_.end()) break;
      id = next->second;
    }
  }
  std::erase_if(signatures_, [&](const auto& entry) { return !reachable.contains(entry.first); });
  std::erase_if(successors_, [&](const auto& entry) { return !reachable.contains(entry.first); });
  std::erase_if(adopted_, [&](uint64_t uid) { return !steps.contains(uid); });
  std::string content;
  for (const auto& [id, signature] : signatures_)
    content += Entry::OfSignature(id, signature).Seal();
  for (const auto& [id, successor] : successors_)
    content += Entry::OfSuccessor(id, successor).Seal();
  for (uint64_t uid : adopted_) content += Entry::OfAdopted(uid).Seal();
  TRY(ReplaceFileAt(store_.get(), kFileName, content, sync_));
  TRY_ASSIGN(file_, OpenStoreFile(store_.get(), kFileName, O_RDWR));
  file_bytes_ = compacted_bytes_ = content.size();
  pending_.clear();
  return Ok();
}

}  // namespace sandglass::undo
