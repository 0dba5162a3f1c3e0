#include "undo/journal_view.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/io.h"
#include "undo/place.h"

namespace sandglass::undo {
namespace {

// The length of an encoded CloseRecord: it has no variable parts.
size_t CloseFrameBytes() {
  ByteWriter out;
  CHECK(EncodeRecord(CloseRecord{}, out).ok());
  return FrameBytes(out.bytes().size());
}

}  // namespace

Result<JournalView> JournalView::Open(int dir_fd, const char* name) {
  TRY_ASSIGN(const Fd fd, OpenStoreFile(dir_fd, name, O_RDONLY));
  TRY_ASSIGN(const FileStat stat, StatFd(fd.get()));
  const auto size = static_cast<size_t>(stat.size);
  if (size < kJournalHeaderBytes)
    return Error(Code::kCorrupt, "journal is shorter than its header");
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (map == MAP_FAILED) return Error::FromErrno(errno, "map journal");
  auto view = Parse({static_cast<const uint8_t*>(map), size});
  if (!view.ok()) {
    ::munmap(map, size);
    return view;
  }
  view->map_ = map;
  view->map_bytes_ = size;
  return view;
}

Result<JournalView> JournalView::Read(int dir_fd, const char* name) {
  TRY_ASSIGN(const Fd fd, OpenStoreFile(dir_fd, name, O_RDONLY));
  TRY_ASSIGN(const FileStat stat, StatFd(fd.get()));
  Bytes copy(stat.size);
  TRY_ASSIGN(const size_t got, PReadFully(fd.get(), copy, 0));
  copy.resize(got);
  TRY_ASSIGN(JournalView view, Parse(copy));
  view.copy_ = std::move(copy);  // its bytes stay where they are
  return view;
}

Result<JournalView> JournalView::Parse(ByteView bytes) {
  JournalView view;
  view.bytes_ = bytes;
  TRY_ASSIGN(view.decoded_, DecodeJournalHeader(bytes));
  view.scan_ = ScanFrames(bytes);
  return view;
}

JournalView::JournalView(JournalView&& other) noexcept { *this = std::move(other); }
JournalView& JournalView::operator=(JournalView&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(copy_, other.copy_);
  std::swap(map_, other.map_);
  std::swap(map_bytes_, other.map_bytes_);
  std::swap(decoded_, other.decoded_);
  std::swap(scan_, other.scan_);
  return *this;
}
JournalView::~JournalView() {
  if (map_ != nullptr) ::munmap(map_, map_bytes_);
}

void JournalView::Unload() const {
  constexpr size_t kWorthIt = 8 << 20;
  if (map_ != nullptr && map_bytes_ > kWorthIt) ::madvise(map_, map_bytes_, MADV_DONTNEED);
}

Result<Record> JournalView::At(size_t index) const {
  CHECK(index < size());
  return DecodeScanned(bytes_, size_t{scan_.offsets[index]} * 8);
}

void JournalView::Shorten(size_t count) {
  scan_.offsets.resize(scan_.offsets.size() - std::min(count, scan_.offsets.size()));
}

uint8_t JournalView::TypeAt(size_t index) const {
  return bytes_[size_t{scan_.offsets[index]} * 8 + kFrameHeadBytes];
}

Result<CloseRecord> JournalView::Close() const {
  if (size() != 0) {
    auto last = At(size() - 1);
    if (last.ok()) {
      if (const auto* close = std::get_if<CloseRecord>(&*last)) return *close;
    }
  }
  return Error(Code::kCorrupt, "journal has no end");
}

bool IsDamage(const Error& error) {
  return error.code() == Code::kCorrupt || error.code() == Code::kVersion ||
         error.sys_errno() == ENOTDIR || error.sys_errno() == ELOOP;
}

Result<std::optional<JournalView>> FindJournal(int parent_fd, const char* folder) {
  using Found = std::optional<JournalView>;
  auto dir = OpenSubdir(parent_fd, folder);
  auto view =
      dir.ok() ? JournalView::Open(dir->get(), "journal") : Result<JournalView>(dir.error());
  if (view.ok()) return Found(std::move(*view));
  if (IsDamage(view.error()) || view.error().code() == Code::kNotFound) return Found();
  return view.error();
}

uint64_t EmptyJournalBytes() { return kJournalHeaderBytes + CloseFrameBytes(); }

Result<JournalSummary> ReadJournalSummary(int dir_fd, const char* name) {
  TRY_ASSIGN(const Fd fd, OpenStoreFile(dir_fd, name, O_RDONLY));
  std::array<uint8_t, kJournalHeaderBytes> page{};
  TRY_ASSIGN(size_t got, PReadFully(fd.get(), page, 0));
  TRY_ASSIGN(DecodedJournalHeader decoded, DecodeJournalHeader(ByteView(page).first(got)));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return Error::FromErrno(errno, "stat journal");
  Bytes tail(CloseFrameBytes());
  const auto tail_at = info.st_size - static_cast<off_t>(tail.size());
  if (tail_at < static_cast<off_t>(kJournalHeaderBytes))
    return Error(Code::kCorrupt, "journal has no end");
  TRY(PReadFully(fd.get(), tail, tail_at));
  TRY_ASSIGN(Record record, DecodeFrame(tail, 0));
  const auto* close = std::get_if<CloseRecord>(&record);
  if (close == nullptr) return Error(Code::kCorrupt, "journal has no end");
  return JournalSummary{std::move(decoded.header), *close, static_cast<uint64_t>(info.st_size)};
}

}  // namespace sandglass::undo
