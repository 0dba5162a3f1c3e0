#include "undo/journal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/io.h"
#include "undo/journal_view.h"
#include "undo/place.h"

namespace sandglass::undo {
namespace {

constexpr size_t kFirstCapacity = 64 << 10;
constexpr size_t kMaxGrowth = 4 << 20;

}  // namespace

Result<std::unique_ptr<JournalWriter>> JournalWriter::Create(int dir_fd, const char* name,
                                                             const JournalHeader& header) {
  std::unique_ptr<JournalWriter> journal(new JournalWriter);
  TRY_ASSIGN(journal->fd_, OpenStoreFile(dir_fd, name, O_RDWR | O_CREAT | O_EXCL));
  MutexLock lock(journal->mutex_);
  TRY(journal->Reserve(kFirstCapacity));
  journal->used_ = kJournalHeaderBytes;
  EncodeJournalHeader(header, {journal->map_, kJournalHeaderBytes});
  return journal;
}

JournalWriter::~JournalWriter() {
  MutexLock lock(mutex_);
  if (map_ != nullptr) ::munmap(map_, capacity_);
}

Status JournalWriter::Reserve(size_t bytes) {
  if (bytes <= capacity_) return Ok();
  UnloadLocked();
  size_t next = capacity_ == 0 ? kFirstCapacity : capacity_ + std::min(capacity_, kMaxGrowth);
  next = std::max(next, (bytes + kFirstCapacity - 1) / kFirstCapacity * kFirstCapacity);
  if (int err = ::posix_fallocate(fd_.get(), static_cast<off_t>(capacity_),
                                  static_cast<off_t>(next - capacity_))) {
    return Error::FromErrno(err, "extend journal");
  }
  void* map = capacity_ == 0
                  ? ::mmap(nullptr, next, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0)
                  : ::mremap(map_, capacity_, next, MREMAP_MAYMOVE);
  if (map == MAP_FAILED) return Error::FromErrno(errno, "map journal");
  map_ = static_cast<uint8_t*>(map);
  capacity_ = next;
  return Ok();
}

Status JournalWriter::Append(const Record& record) {
  MutexLock lock(mutex_);
  if (map_ == nullptr) return Error(Code::kIo, "the journal is finished");
  scratch_.Clear();
  TRY(EncodeRecord(record, scratch_));
#ifdef SANDGLASS_MUTANT_journal_after_operation
  // A broken build for the crash harness: intents reach the journal only together with their outcome.
  if (std::holds_alternative<CreateRecord>(record) ||
      std::holds_alternative<RemoveRecord>(record) ||
      std::holds_alternative<RenameRecord>(record)) {
    late_.push_back(scratch_.bytes());
    return Ok();
  }
  for (Bytes& late : std::exchange(late_, {})) TRY(AppendPayload(late));
#endif
  return AppendPayload(scratch_.bytes());
}

Status JournalWriter::AppendPayload(const Bytes& payload) {
  const size_t frame = FrameBytes(payload.size());
  TRY(Reserve(used_ + frame + kFrameHeadBytes));  // and a zero length behind it
  uint8_t* at = map_ + used_;
  const uint32_t checksum = FrameChecksum(payload);
  std::memcpy(at + kFrameHeadBytes, payload.data(), payload.size());
  std::memcpy(at + sizeof(uint32_t), &checksum, sizeof(checksum));
  std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(at))
      .store(static_cast<uint32_t>(payload.size()), std::memory_order_release);
  used_ += frame;
  return Ok();
}

void JournalWriter::Beat(int64_t now_ns) {
  MutexLock lock(mutex_);
  if (map_ == nullptr || now_ns <= latest_beat_ns_) return;
  // Not compared with the header: that starts with opened_ns, which is of another clock where one was injected.
  latest_beat_ns_ = now_ns;
  std::memcpy(map_ + offsetof(RawJournalHeader, heartbeat_ns), &now_ns, sizeof(now_ns));
}

void JournalWriter::Unload() {
  MutexLock lock(mutex_);
  UnloadLocked();
}

void JournalWriter::UnloadLocked() {
  // Of a shared mapping of a file this drops page table entries and not a byte.
  if (map_ != nullptr) ::madvise(map_, capacity_, MADV_DONTNEED);
}

Status JournalWriter::Finish() {
  MutexLock lock(mutex_);
  // First the cut: if it fails, the journal is still open and can be finished later.
  if (::ftruncate(fd_.get(), static_cast<off_t>(used_)) != 0)
    return Error::FromErrno(errno, "finish journal");
  if (map_ != nullptr) ::munmap(map_, capacity_);
  map_ = nullptr;
  capacity_ = 0;
  return Ok();
}

Status JournalWriter::Sync() {
  MutexLock lock(mutex_);
  if (map_ != nullptr && ::msync(map_, used_, MS_SYNC) != 0)
    return Error::FromErrno(errno, "sync journal");
  if (::fdatasync(fd_.get()) != 0) return Error::FromErrno(errno, "sync journal");
  return Ok();
}

Status AppendToFinishedJournal(int dir_fd, const char* name, std::span<const Record> records) {
  TRY_ASSIGN(JournalView view, JournalView::Open(dir_fd, name));
  TRY_ASSIGN(const Bytes frames, EncodeFrames(records));
  TRY_ASSIGN(const Fd fd, OpenStoreFile(dir_fd, name, O_RDWR));
  TRY(PWriteFully(fd.get(), frames, static_cast<off_t>(view.end())));
  if (::ftruncate(fd.get(), static_cast<off_t>(view.end() + frames.size())) != 0) {
    return Error::FromErrno(errno, "finish journal");
  }
  return Ok();
}

Result<CursorFile> CursorFile::Open(int dir_fd, const char* name) {
  TRY_ASSIGN(const Fd fd, OpenStoreFile(dir_fd, name, O_RDWR));
  CursorFile cursor;
  cursor.map_ =
      ::mmap(nullptr, kJournalHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (cursor.map_ == MAP_FAILED) {
    cursor.map_ = nullptr;
    return Error::FromErrno(errno, "map journal");
  }
  return cursor;
}
CursorFile::CursorFile(CursorFile&& other) noexcept : map_(std::exchange(other.map_, nullptr)) {}
CursorFile::~CursorFile() {
  if (map_ != nullptr) ::munmap(map_, kJournalHeaderBytes);
}
uint64_t CursorFile::Get() const { return static_cast<const RawJournalHeader*>(map_)->cursor; }
void CursorFile::Set(uint64_t undone) { static_cast<RawJournalHeader*>(map_)->cursor = undone; }
void CursorFile::Beat(int64_t now_ns) {
  int64_t& latest = static_cast<RawJournalHeader*>(map_)->heartbeat_ns;
  latest = std::max(latest, now_ns);
}

}  // namespace sandglass::undo
