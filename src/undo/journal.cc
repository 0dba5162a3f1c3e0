#include "undo/journal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/hash.h"
#include "base/io.h"

namespace sandglass::undo {
namespace {

constexpr char kMagic[8] = {'S', 'G', 'U', 'N', 'D', 'O', 'J', '\n'};
constexpr size_t kFirstCapacity = 64 << 10;
constexpr size_t kMaxGrowth = 4 << 20;
constexpr size_t kFrameBytes = 8;  // u32 length, u32 checksum
constexpr size_t kMaxRecordBytes = 16 << 20;

// The fixed part of the header page. `checksum` covers everything before it and the label; what follows it changes while the
// step is open and proves nothing by itself.
struct RawHeader {
  char magic[8];
  uint32_t format;
  uint8_t kind;
  uint8_t reserved[3];
  int64_t id;
  uint64_t order;
  uint64_t uid;
  uint64_t reverses_uid;
  int64_t opened_ns;
  uint8_t boot_id[16];
  uint32_t label_bytes;
  uint32_t reserved2;
  uint64_t checksum;
  int64_t heartbeat_ns;
  uint64_t cursor;
};
constexpr size_t kLabelOffset = 512;
static_assert(sizeof(RawHeader) <= kLabelOffset && kLabelOffset + kMaxLabelBytes <= kJournalHeaderBytes);

size_t Aligned(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

uint64_t HeaderChecksum(ByteView page, size_t label_bytes) {
  return HashBytes64(page.first(offsetof(RawHeader, checksum)), HashBytes64(page.subspan(kLabelOffset, label_bytes)));
}

void EncodeHeader(const JournalHeader& header, std::span<uint8_t> page) {
  RawHeader raw{};
  std::memcpy(raw.magic, kMagic, sizeof(kMagic));
  raw.format = kFormatVersion;
  raw.kind = static_cast<uint8_t>(header.kind);
  raw.id = header.id.value;
  raw.order = header.order;
  raw.uid = header.uid;
  raw.reverses_uid = header.reverses_uid;
  raw.opened_ns = header.opened_ns;
  raw.heartbeat_ns = header.opened_ns;
  std::memcpy(raw.boot_id, header.boot_id.data(), sizeof(raw.boot_id));
  raw.label_bytes = static_cast<uint32_t>(std::min(header.label.size(), kMaxLabelBytes));
  std::memcpy(page.data(), &raw, sizeof(raw));
  std::memcpy(page.data() + kLabelOffset, header.label.data(), raw.label_bytes);
  raw.checksum = HeaderChecksum(page, raw.label_bytes);
  std::memcpy(page.data() + offsetof(RawHeader, checksum), &raw.checksum, sizeof(raw.checksum));
}

struct DecodedHeader {
  JournalHeader header;
  int64_t heartbeat_ns;
};

Result<DecodedHeader> DecodeHeader(ByteView page) {
  if (page.size() < kJournalHeaderBytes) return Error(Code::kCorrupt, "journal is shorter than its header");
  TRY_ASSIGN(RawHeader raw, ByteCursor(page).Take<RawHeader>());
  if (std::memcmp(raw.magic, kMagic, sizeof(kMagic)) != 0) return Error(Code::kCorrupt, "not a journal");
  if (raw.format != kFormatVersion) return Error(Code::kVersion, "journal of another format version");
  if (raw.label_bytes > kMaxLabelBytes || raw.kind > static_cast<uint8_t>(StepKind::kAmbient) ||
      raw.checksum != HeaderChecksum(page, raw.label_bytes)) {
    return Error(Code::kCorrupt, "journal header fails its checksum");
  }
  DecodedHeader out{.header = {.id = {raw.id},
                               .kind = static_cast<StepKind>(raw.kind),
                               .order = raw.order,
                               .uid = raw.uid,
                               .reverses_uid = raw.reverses_uid,
                               .opened_ns = raw.opened_ns},
                    .heartbeat_ns = raw.heartbeat_ns};
  std::memcpy(out.header.boot_id.data(), raw.boot_id, sizeof(raw.boot_id));
  out.header.label.assign(AsText(page.subspan(kLabelOffset, raw.label_bytes)));
  return out;
}

uint32_t FrameChecksum(ByteView payload) { return static_cast<uint32_t>(HashBytes64(payload)); }

Result<Record> DecodeFrame(ByteView bytes, size_t at) {
  ByteCursor in(bytes.subspan(at));
  TRY_ASSIGN(uint32_t length, in.Take<uint32_t>());
  TRY_ASSIGN(uint32_t checksum, in.Take<uint32_t>());
  TRY_ASSIGN(ByteView payload, in.TakeBytes(length));
  if (FrameChecksum(payload) != checksum) return Error(Code::kCorrupt, "record fails its checksum");
  return DecodeRecord(payload);
}

// The length of an encoded CloseRecord: it has no variable parts.
size_t CloseFrameBytes() {
  ByteWriter out;
  EncodeRecord(CloseRecord{}, out);
  return Aligned(kFrameBytes + out.bytes().size());
}

}  // namespace

Result<std::unique_ptr<JournalWriter>> JournalWriter::Create(int dir_fd, const char* name, const JournalHeader& header) {
  std::unique_ptr<JournalWriter> journal(new JournalWriter);
  journal->fd_ = Fd(::openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!journal->fd_.valid()) return Error::FromErrno(errno, "create journal");
  MutexLock lock(journal->mutex_);
  TRY(journal->Reserve(kFirstCapacity));
  journal->used_ = kJournalHeaderBytes;
  EncodeHeader(header, {journal->map_, kJournalHeaderBytes});
  return journal;
}

JournalWriter::~JournalWriter() {
  MutexLock lock(mutex_);
  if (map_ != nullptr) ::munmap(map_, capacity_);
}

Status JournalWriter::Reserve(size_t bytes) {
  if (bytes <= capacity_) return Ok();
  size_t next = capacity_ == 0 ? kFirstCapacity : capacity_ + std::min(capacity_, kMaxGrowth);
  next = std::max(next, (bytes + kFirstCapacity - 1) / kFirstCapacity * kFirstCapacity);
  if (int err = ::posix_fallocate(fd_.get(), static_cast<off_t>(capacity_), static_cast<off_t>(next - capacity_))) {
    return Error::FromErrno(err, "extend journal");
  }
  void* map = capacity_ == 0 ? ::mmap(nullptr, next, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0)
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
  EncodeRecord(record, scratch_);
#ifdef SANDGLASS_MUTANT_journal_after_operation
  // A broken build for the crash harness: intents reach the journal only together with their outcome.
  if (std::holds_alternative<CreateRecord>(record) || std::holds_alternative<RemoveRecord>(record) ||
      std::holds_alternative<RenameRecord>(record)) {
    late_.push_back(scratch_.bytes());
    return Ok();
  }
  for (Bytes& late : std::exchange(late_, {})) TRY(AppendPayload(late));
#endif
  return AppendPayload(scratch_.bytes());
}

Status JournalWriter::AppendPayload(const Bytes& payload) {
  const size_t frame = Aligned(kFrameBytes + payload.size());
  TRY(Reserve(used_ + frame + kFrameBytes));  // and a zero length behind it
  uint8_t* at = map_ + used_;
  const uint32_t checksum = FrameChecksum(payload);
  std::memcpy(at + kFrameBytes, payload.data(), payload.size());
  std::memcpy(at + sizeof(uint32_t), &checksum, sizeof(checksum));
  std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(at))
      .store(static_cast<uint32_t>(payload.size()), std::memory_order_release);
  used_ += frame;
  return Ok();
}

void JournalWriter::Beat(int64_t now_ns) {
  MutexLock lock(mutex_);
  if (map_ == nullptr) return;
  std::memcpy(map_ + offsetof(RawHeader, heartbeat_ns), &now_ns, sizeof(now_ns));
}

Status JournalWriter::Finish() {
  MutexLock lock(mutex_);
  if (map_ != nullptr) ::munmap(map_, capacity_);
  map_ = nullptr;
  capacity_ = 0;
  if (::ftruncate(fd_.get(), static_cast<off_t>(used_)) != 0) return Error::FromErrno(errno, "finish journal");
  return Ok();
}

Status JournalWriter::Sync() {
  MutexLock lock(mutex_);
  if (map_ != nullptr && ::msync(map_, used_, MS_SYNC) != 0) return Error::FromErrno(errno, "sync journal");
  if (::fdatasync(fd_.get()) != 0) return Error::FromErrno(errno, "sync journal");
  return Ok();
}

uint64_t JournalWriter::size() const {
  MutexLock lock(mutex_);
  return used_;
}

Result<JournalView> JournalView::Open(int dir_fd, const char* name) {
  Fd fd(::openat(dir_fd, name, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Error::FromErrno(errno, "open journal");
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return Error::FromErrno(errno, "stat journal");
  if (info.st_size < static_cast<off_t>(kJournalHeaderBytes)) {
    return Error(Code::kCorrupt, "journal is shorter than its header");
  }
  JournalView view;
  view.map_bytes_ = static_cast<size_t>(info.st_size);
  void* map = ::mmap(nullptr, view.map_bytes_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (map == MAP_FAILED) return Error::FromErrno(errno, "map journal");
  view.map_ = map;
  view.bytes_ = {static_cast<const uint8_t*>(map), view.map_bytes_};
  TRY(view.Scan());
  return view;
}

Result<JournalView> JournalView::Parse(ByteView bytes) {
  JournalView view;
  view.bytes_ = bytes;
  TRY(view.Scan());
  return view;
}

JournalView::JournalView(JournalView&& other) noexcept { *this = std::move(other); }
JournalView& JournalView::operator=(JournalView&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(map_, other.map_);
  std::swap(map_bytes_, other.map_bytes_);
  std::swap(header_, other.header_);
  std::swap(heartbeat_ns_, other.heartbeat_ns_);
  std::swap(offsets_, other.offsets_);
  std::swap(damaged_, other.damaged_);
  std::swap(end_, other.end_);
  return *this;
}
JournalView::~JournalView() {
  if (map_ != nullptr) ::munmap(map_, map_bytes_);
}

// Finds where records start. A damaged record is counted and passed over by its length, as long as that leads to another one:
// what stands behind it can still be taken back.
Status JournalView::Scan() {
  TRY_ASSIGN(DecodedHeader decoded, DecodeHeader(bytes_));
  header_ = std::move(decoded.header);
  heartbeat_ns_ = decoded.heartbeat_ns;
  size_t at = kJournalHeaderBytes;
  while (at + kFrameBytes <= bytes_.size()) {
    uint32_t length = 0;
    std::memcpy(&length, bytes_.data() + at, sizeof(length));
    if (length == 0) break;
    if (length > kMaxRecordBytes || at + kFrameBytes + length > bytes_.size()) {
      ++damaged_;
      break;
    }
    if (DecodeFrame(bytes_, at).ok()) {
      offsets_.push_back(static_cast<uint32_t>(at / 8));
    } else {
      ++damaged_;
    }
    at += Aligned(kFrameBytes + length);
  }
  end_ = at;
  return Ok();
}

Result<Record> JournalView::At(size_t index) const {
  CHECK(index < offsets_.size());
  return DecodeFrame(bytes_, size_t{offsets_[index]} * 8);
}

Result<CloseRecord> JournalView::Close() const {
  if (!offsets_.empty()) {
    auto last = At(offsets_.size() - 1);
    if (last.ok()) {
      if (const auto* close = std::get_if<CloseRecord>(&*last)) return *close;
    }
  }
  return Error(Code::kCorrupt, "journal has no end");
}

Status AppendToFinishedJournal(int dir_fd, const char* name, const Record& record) {
  TRY_ASSIGN(JournalView view, JournalView::Open(dir_fd, name));
  ByteWriter payload, frame;
  EncodeRecord(record, payload);
  frame.Put(static_cast<uint32_t>(payload.bytes().size()));
  frame.Put(FrameChecksum(payload.bytes()));
  frame.PutBytes(payload.bytes());
  frame.PutBytes(Bytes(Aligned(frame.bytes().size()) - frame.bytes().size()));
  Fd fd(::openat(dir_fd, name, O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return Error::FromErrno(errno, "open journal");
  TRY(PWriteFully(fd.get(), frame.bytes(), static_cast<off_t>(view.end())));
  if (::ftruncate(fd.get(), static_cast<off_t>(view.end() + frame.bytes().size())) != 0) {
    return Error::FromErrno(errno, "finish journal");
  }
  return Ok();
}

Result<JournalSummary> ReadJournalSummary(int dir_fd, const char* name) {
  Fd fd(::openat(dir_fd, name, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Error::FromErrno(errno, "open journal");
  std::array<uint8_t, kJournalHeaderBytes> page{};
  TRY_ASSIGN(size_t got, PReadFully(fd.get(), page, 0));
  TRY_ASSIGN(DecodedHeader decoded, DecodeHeader(ByteView(page).first(got)));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return Error::FromErrno(errno, "stat journal");
  Bytes tail(CloseFrameBytes());
  const auto tail_at = info.st_size - static_cast<off_t>(tail.size());
  if (tail_at < static_cast<off_t>(kJournalHeaderBytes)) return Error(Code::kCorrupt, "journal has no end");
  TRY(PReadFully(fd.get(), tail, tail_at));
  TRY_ASSIGN(Record record, DecodeFrame(tail, 0));
  const auto* close = std::get_if<CloseRecord>(&record);
  if (close == nullptr) return Error(Code::kCorrupt, "journal has no end");
  return JournalSummary{std::move(decoded.header), *close};
}

Result<CursorFile> CursorFile::Open(int dir_fd, const char* name) {
  Fd fd(::openat(dir_fd, name, O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return Error::FromErrno(errno, "open journal");
  CursorFile cursor;
  cursor.map_ = ::mmap(nullptr, kJournalHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
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
uint64_t CursorFile::Get() const { return static_cast<const RawHeader*>(map_)->cursor; }
void CursorFile::Set(uint64_t undone) { static_cast<RawHeader*>(map_)->cursor = undone; }

}  // namespace sandglass::undo
