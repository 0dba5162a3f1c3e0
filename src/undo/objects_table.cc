#include "undo/objects_table.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/io.h"
#include "undo/place.h"

namespace sandglass::undo {
namespace {

constexpr const char* kFileName = "objects";
constexpr uint64_t kBloatedBytes = 16 << 20;
// Far more than any history leads to; what lies behind it is damage.
constexpr uint64_t kMaxTableBytes = 1 << 30;
constexpr size_t kPieceBytes = 1 << 20;
static_assert(kPieceBytes % kObjectEntryBytes == 0 && kMaxTableBytes % kPieceBytes == 0);

}  // namespace

Status ObjectsTable::Load(int store_fd, FileSync sync) {
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
  ObjectsContent content;
  // No larger than what there is, and one entry for the end: clearing a megabyte takes longer than reading a usual table. Whole
  // entries, because the owner of the store may add to it meanwhile.
  const size_t entries = static_cast<size_t>(info.st_size) / kObjectEntryBytes + 1;
  Bytes piece(std::min(kPieceBytes, entries * kObjectEntryBytes));
  uint64_t at = 0;
  for (size_t got = piece.size(); got == piece.size() && at < kMaxTableBytes; at += got) {
    TRY_ASSIGN(got, PReadFully(file, piece, static_cast<off_t>(at)));
    AddObjects(ByteView(piece).first(got), content);
  }
  if (at < static_cast<uint64_t>(info.st_size)) ++content.damaged;
  MutexLock lock(mutex_);
  content_ = std::move(content);
  file_bytes_ = at / kObjectEntryBytes * kObjectEntryBytes;
  return Ok();
}

bool ObjectsTable::damaged() const {
  MutexLock lock(mutex_);
  return content_.damaged > 0;
}

ObjectId ObjectsTable::Current(ObjectId recorded) const {
#ifdef SANDGLASS_MUTANT_skip_remap
  return recorded;
#endif
  MutexLock lock(mutex_);
  // A cycle cannot arise (identities are never reused), but a damaged file must not hang us.
  for (size_t hops = 0; hops <= content_.successors.size(); ++hops) {
    auto next = content_.successors.find(recorded);
    if (next == content_.successors.end()) break;
    recorded = next->second;
  }
  return recorded;
}

std::optional<Signature> ObjectsTable::Find(ObjectId current) const {
  MutexLock lock(mutex_);
  auto found = content_.signatures.find(current);
  if (found == content_.signatures.end()) return std::nullopt;
  return found->second;
}

std::optional<uint64_t> ObjectsTable::FindAttributes(ObjectId current) const {
  MutexLock lock(mutex_);
  auto found = content_.attributes.find(current);
  if (found == content_.attributes.end()) return std::nullopt;
  return found->second;
}

void ObjectsTable::MarkAdopted(uint64_t step_uid) {
  MutexLock lock(mutex_);
  content_.adopted.insert(step_uid);
  EncodeAdopted(step_uid, pending_);
}

bool ObjectsTable::IsAdopted(uint64_t step_uid) const {
  MutexLock lock(mutex_);
  return content_.adopted.contains(step_uid);
}

void ObjectsTable::Put(ObjectId current, const Signature& signature) {
  MutexLock lock(mutex_);
  content_.signatures[current] = signature;
  EncodeSignature(current, signature, pending_);
}

void ObjectsTable::PutAttributes(ObjectId current, std::optional<uint64_t> hash) {
  MutexLock lock(mutex_);
  if (hash)
    content_.attributes[current] = *hash;
  else if (content_.attributes.erase(current) == 0)
    return;  // nor was it before
  EncodeAttributes(current, hash.value_or(0), pending_);
}

void ObjectsTable::Succeed(ObjectId recorded, ObjectId successor) {
  if (recorded == successor) return;
  MutexLock lock(mutex_);
  content_.successors[recorded] = successor;
  EncodeSuccessor(recorded, successor, pending_);
}

Status ObjectsTable::Flush() {
  MutexLock lock(mutex_);
  return AppendLocked();
}

// What Compact() left in the file's place.
Status ObjectsTable::OpenLocked() {
  TRY_ASSIGN(Fd file, OpenStoreFile(store_.get(), kFileName, O_RDWR));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return Error::FromErrno(errno, "stat object table");
  file_bytes_ = static_cast<uint64_t>(info.st_size) / kObjectEntryBytes * kObjectEntryBytes;
  file_ = std::move(file);
  return Ok();
}

Status ObjectsTable::AppendLocked() {
  if (pending_.empty()) return Ok();
  if (!file_.valid()) TRY(OpenLocked());
  TRY(PWriteFully(file_.get(), AsBytes(pending_), static_cast<off_t>(file_bytes_)));
  if (sync_ == FileSync::kPower && ::fdatasync(file_.get()) != 0)
    return Error::FromErrno(errno, "sync object table");
  file_bytes_ += pending_.size();
  pending_.clear();
  return Ok();
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
      auto next = content_.successors.find(id);
      if (next == content_.successors.end()) break;
      id = next->second;
    }
  }
  std::erase_if(content_.signatures,
                [&](const auto& entry) { return !reachable.contains(entry.first); });
  std::erase_if(content_.attributes,
                [&](const auto& entry) { return !reachable.contains(entry.first); });
  std::erase_if(content_.successors,
                [&](const auto& entry) { return !reachable.contains(entry.first); });
  std::erase_if(content_.adopted, [&](uint64_t uid) { return !steps.contains(uid); });
  const std::string content = EncodeObjects(content_);
  // Also on error this may be a file without a name by now, and what is put into that is lost: the next write opens what is there then.
  file_.Reset();
  TRY(ReplaceFileAt(store_.get(), kFileName, content, sync_));
  file_bytes_ = compacted_bytes_ = content.size();
  content_.damaged = 0;
  pending_.clear();
  return Ok();
}

}  // namespace sandglass::undo
