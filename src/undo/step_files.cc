#include "undo/step_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/hash.h"
#include "base/io.h"
#include "undo/journal_view.h"
#include "undo/pack.h"
#include "undo/place.h"

namespace sandglass::undo {
namespace {

constexpr size_t kBlock = 64 << 10;
constexpr uint32_t kAnchorsPerFolder = 32;
constexpr const char* kKeptDamaged = "its kept bytes fail their checksum";

// The next data at or after `at`; `size` when only a hole is left, `at` where the file system cannot tell.
uint64_t NextData(int fd, uint64_t at, uint64_t size) {
  const off_t data = ::lseek(fd, static_cast<off_t>(at), SEEK_DATA);
  if (data >= 0) return std::min(static_cast<uint64_t>(data), size);
  return errno == ENXIO ? size : at;
}

// Calls `each(offset, bytes)` for every aligned block of [0, size) that is not all zeros. What comes out depends on the bytes alone and
// not on where the file system put its holes, so a copy has the checksum of its original.
template <class Each>
Status ForEachBlock(int fd, uint64_t size, Each each) {
  Bytes buffer(kBlock);
  for (uint64_t at = 0; at < size; at += kBlock) {
    at = NextData(fd, at, size) / kBlock * kBlock;
    const size_t want = std::min<uint64_t>(kBlock, size - at);
    TRY_ASSIGN(size_t got, PReadFully(fd, std::span(buffer).first(want), static_cast<off_t>(at)));
    if (got == 0) return Ok();  // the file became shorter: its owner is told by the size
    ByteView bytes = ByteView(buffer).first(got);
    if (AllZero(bytes)) continue;
    TRY(each(at, bytes));
  }
  return Ok();
}

// Anchors are reached through the folder that they are in, which therefore must not lead out of the store.
Status CheckAnchorFolders(int anchors) {
  TRY_ASSIGN(const auto folders, ListNames(anchors));
  for (const std::string& folder : folders) {
    const auto stat = LookAt(anchors, folder.c_str());
    if (stat && !stat->IsDirectory())
      return Error(Code::kCorrupt, "a folder of anchors has been replaced by something else");
  }
  return Ok();
}

std::string AnchorFolder(uint32_t number) { return std::to_string(number); }

// Hashes blocks together with their offsets.
class DataChecksum {
 public:
  void Add(uint64_t offset, ByteView bytes) {
    hasher_.Update({reinterpret_cast<const uint8_t*>(&offset), sizeof(offset)});
    hasher_.Update(bytes);
  }
  // 0 stands for "none" in records.
  uint64_t Digest(uint64_t size) {
    hasher_.Update({reinterpret_cast<const uint8_t*>(&size), sizeof(size)});
    const uint64_t digest = hasher_.Digest();
    return digest == 0 ? 1 : digest;
  }

 private:
  Hasher64 hasher_;
};

}  // namespace

BlobName::BlobName(BlobId blob) { std::snprintf(text_, sizeof(text_), "%u", blob.value); }

AnchorName::AnchorName(AnchorId anchor) {
  std::snprintf(text_, sizeof(text_), "%u/%u", anchor.value / kAnchorsPerFolder, anchor.value);
}

StepFiles::StepFiles(Fd dir, Access access) : dir_(std::move(dir)), access_(access) {}
StepFiles::~StepFiles() = default;

Result<Fd> StepFiles::OpenFolder(const char* name) const {
  return access_ == Access::kMake ? OpenOrMakeDir(dir_.get(), name) : OpenSubdir(dir_.get(), name);
}

Result<int> StepFiles::Anchors() {
  MutexLock lock(mutex_);
  return AnchorsLocked();
}

Result<int> StepFiles::AnchorsLocked() {
  if (!anchors_.valid()) {
    TRY_ASSIGN(Fd anchors, OpenFolder("anchors"));
    TRY(CheckAnchorFolders(anchors.get()));
    anchors_ = std::move(anchors);
    names_synced_ = false;
  }
  return anchors_.get();
}

Result<AnchorId> StepFiles::NewAnchor() {
  MutexLock lock(mutex_);
  TRY_ASSIGN(int anchors, AnchorsLocked());
  if (next_anchor_ % kAnchorsPerFolder == 0) {
    const std::string folder = AnchorFolder(next_anchor_ / kAnchorsPerFolder);
    if (::mkdirat(anchors, folder.c_str(), 0700) != 0 && errno != EEXIST)
      return Error::FromErrno(errno, "create a folder of anchors");
  }
  return AnchorId{next_anchor_++};
}

void StepFiles::NoteAnchored(AnchorId anchor) {
  MutexLock lock(mutex_);
  unsynced_.insert(anchor.value / kAnchorsPerFolder);
}

Result<int> StepFiles::Blobs() {
  MutexLock lock(mutex_);
  if (!blobs_.valid()) {
    TRY_ASSIGN(blobs_, OpenFolder("blobs"));
    names_synced_ = false;
  }
  return blobs_.get();
}

Result<Fd> StepFiles::OpenBlob(BlobId blob) {
  TRY_ASSIGN(const int blobs, Blobs());
  return OpenStoreFile(blobs, BlobName(blob).c_str(), O_RDONLY);
}

Result<int> StepFiles::Pack() {
  if (!pack_.valid()) {
    TRY_ASSIGN(pack_, OpenStoreFile(dir_.get(), "pack", O_RDWR | O_CREAT));
    names_synced_ = false;
  }
  return pack_.get();
}

Result<uint64_t> StepFiles::AppendToPack(ByteView bytes) {
  int fd = -1;
  {
    MutexLock lock(mutex_);
    TRY_ASSIGN(fd, Pack());
  }
  const uint64_t at = pack_end_.fetch_add(bytes.size());
  TRY(PWriteFully(fd, bytes, static_cast<off_t>(at)));
  return at;
}

Result<Bytes> StepFiles::ReadPack(uint64_t offset, uint64_t length) {
  MutexLock lock(mutex_);
  if (compressed_ == nullptr && !pack_.valid()) TRY(OpenPackForReading());
  if (compressed_ != nullptr) return compressed_->Read(offset, length);
  struct stat info{};
  if (::fstat(pack_.get(), &info) != 0) return Error::FromErrno(errno, "stat pack");
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  if (offset > size || length > size - offset)
    return Error(Code::kCorrupt, "pack is shorter than its journal says");
  Bytes bytes(length);
  TRY(PReadFully(pack_.get(), bytes, static_cast<off_t>(offset)));
  return bytes;
}

Result<Bytes> StepFiles::ReadKept(const ContentRecord& record) {
  TRY_ASSIGN(Bytes bytes, ReadPack(record.where, record.length));
  if (HashBytes64(bytes) != record.checksum) return Error(Code::kCorrupt, kKeptDamaged);
  return bytes;
}

// A clone has no checksum: of it only the size can tell.
Result<Fd> StepFiles::OpenKept(const ContentRecord& record) {
  auto blob = OpenBlob({static_cast<uint32_t>(record.where)});
  if (!blob.ok() && !IsDamage(blob.error()) && blob.error().code() != Code::kNotFound)
    return blob.error();
  if (!blob.ok()) return Error(Code::kCorrupt, kKeptMissing);
  TRY_ASSIGN(const FileStat stat, StatFd(blob->get()));
  if (stat.size != record.file_size)
    return Error(Code::kCorrupt, "what was kept of it has another size");
  if (record.checksum == 0) return blob;
  TRY_ASSIGN(const uint64_t checksum, ChecksumFile(blob->get(), record.file_size));
  if (checksum != record.checksum) return Error(Code::kCorrupt, kKeptDamaged);
  return blob;
}

// The housekeeper may be exchanging one form for the other at this very moment, so a miss is looked at twice.
Status StepFiles::OpenPackForReading() {
  for (int look = 0; look < 2; ++look) {
    auto file = OpenStoreFile(dir_.get(), "packz", O_RDONLY);
    auto reader = file.ok() ? PackReader::Open(std::move(*file)) : Result<PackReader>(file.error());
    if (reader.ok()) {
      compressed_ = std::make_unique<PackReader>(std::move(*reader));
      return Ok();
    }
    auto raw = OpenStoreFile(dir_.get(), "pack", O_RDONLY);
    if (raw.ok()) {
      pack_ = std::move(*raw);
      return Ok();
    }
    if (reader.error().code() != Code::kNotFound) return reader.error();
  }
  return Error(Code::kCorrupt, "the pack is missing");
}

Status StepFiles::Sync() {
  MutexLock lock(mutex_);
  if (!names_synced_ && ::fsync(dir_.get()) != 0) return Error::FromErrno(errno, "sync a step");
  names_synced_ = true;
  if (pack_.valid() && ::fdatasync(pack_.get()) != 0) return Error::FromErrno(errno, "sync pack");
  if (blobs_.valid() && ::fsync(blobs_.get()) != 0) return Error::FromErrno(errno, "sync blobs");
  return SyncAnchors();
}

// By what was noted and not by number: between taking a slot and using it a thread may be passed by any number of others.
Status StepFiles::SyncAnchors() {
  if (!anchors_.valid()) return Ok();
  if (::fsync(anchors_.get()) != 0) return Error::FromErrno(errno, "sync anchors");
  while (!unsynced_.empty()) {
    TRY_ASSIGN(const Fd folder,
               OpenSubdir(anchors_.get(), AnchorFolder(*unsynced_.begin()).c_str()));
    if (::fsync(folder.get()) != 0) return Error::FromErrno(errno, "sync anchors");
    unsynced_.erase(unsynced_.begin());
  }
  return Ok();
}

void ForEachAnchor(int step_dir, const std::function<void(int, const char*)>& each) {
  auto anchors = OpenSubdir(step_dir, "anchors");
  if (!anchors.ok()) return;
  for (const std::string& folder : ListNamesIfReadable(anchors->get())) {
    auto fd = OpenSubdir(anchors->get(), folder.c_str());
    if (!fd.ok()) continue;
    for (const std::string& name : ListNamesIfReadable(fd->get())) each(fd->get(), name.c_str());
  }
}

Status WriteOverZeros(int fd, uint64_t offset, ByteView bytes) {
  constexpr size_t kHoleBytes = 4096;
  for (size_t at = 0; at < bytes.size(); at += kHoleBytes) {
    const ByteView block = bytes.subspan(at, std::min(kHoleBytes, bytes.size() - at));
    if (!AllZero(block)) TRY(PWriteFully(fd, block, static_cast<off_t>(offset + at)));
  }
  return Ok();
}

Result<SparseCopy> CopySparse(int from, int to, uint64_t size) {
  DataChecksum checksum;
  uint64_t written = 0;
  TRY(ForEachBlock(from, size, [&](uint64_t at, ByteView bytes) -> Status {
    checksum.Add(at, bytes);
    written += bytes.size();
    return PWriteFully(to, bytes, static_cast<off_t>(at));
  }));
  if (::ftruncate(to, static_cast<off_t>(size)) != 0)
    return Error::FromErrno(errno, "set size of a copy");
  return SparseCopy{checksum.Digest(size), written};
}

Result<uint64_t> ChecksumFile(int fd, uint64_t size) {
  DataChecksum checksum;
  TRY(ForEachBlock(fd, size, [&](uint64_t at, ByteView bytes) -> Status {
    checksum.Add(at, bytes);
    return Ok();
  }));
  return checksum.Digest(size);
}

Result<bool> SameBytes(int a, int b, uint64_t size) {
  Bytes left(kBlock), right(kBlock);
  for (uint64_t at = 0; at < size; at += kBlock) {
    // Where both have a hole there is nothing to compare.
    at = std::min(NextData(a, at, size), NextData(b, at, size)) / kBlock * kBlock;
    const size_t want = std::min<uint64_t>(kBlock, size - at);
    TRY_ASSIGN(size_t got_a, PReadFully(a, std::span(left).first(want), static_cast<off_t>(at)));
    TRY_ASSIGN(size_t got_b, PReadFully(b, std::span(right).first(want), static_cast<off_t>(at)));
    if (got_a != got_b || std::memcmp(left.data(), right.data(), got_a) != 0) return false;
  }
  // Behind the end of a file that became shorter there is no data either.
  TRY_ASSIGN(const FileStat stat_a, StatFd(a));
  TRY_ASSIGN(const FileStat stat_b, StatFd(b));
  return std::min(stat_a.size, size) == std::min(stat_b.size, size);
}

namespace {

// What the renames in the folder did survives a power cut before the raw pack, which it makes superfluous, is gone.
Status DropRawPack(int step_dir, FileSync sync) {
  if (sync == FileSync::kPower && ::fsync(step_dir) != 0)
    return Error::FromErrno(errno, "sync the folder of a compressed pack");
  ::unlinkat(step_dir, "pack", 0);
  return Ok();
}

// Does the compressed pack hold all of the raw one? One that is shorter was itself cut off; otherwise, where they differ, the raw one is
// believed: it is the older one and the more likely to have reached the disk. kCorrupt: the compressed one cannot be read.
Result<bool> HoldsAllOf(PackReader& packz, int raw) {
  TRY_ASSIGN(const FileStat stat, StatFd(raw));
  if (stat.size > packz.raw_bytes()) return false;
  for (uint64_t at = 0; at < packz.raw_bytes(); at += kPackChunkBytes) {
    const uint64_t want = std::min<uint64_t>(kPackChunkBytes, packz.raw_bytes() - at);
    TRY_ASSIGN(const Bytes held, packz.Read(at, want));
    Bytes bytes(want);
    TRY_ASSIGN(const size_t got, PReadFully(raw, bytes, static_cast<off_t>(at)));
    if (std::memcmp(held.data(), bytes.data(), got) != 0) return false;
  }
  return true;
}

// Is `packz` of use beside the raw pack? An error: nobody can tell now.
Result<bool> IsUsable(const Fd& packz, int raw) {
  Fd own(::fcntl(packz.get(), F_DUPFD_CLOEXEC, 0));
  if (!own.valid()) return Error::FromErrno(errno, "duplicate a descriptor");
  auto reader = PackReader::Open(std::move(own));
  auto usable = reader.ok() ? HoldsAllOf(*reader, raw) : Result<bool>(reader.error());
  if (!usable.ok() && usable.error().code() == Code::kCorrupt) return false;
  return usable;
}

}  // namespace

Status CompressPack(int step_dir, FileSync sync) {
  const auto raw = OpenStoreFile(step_dir, "pack", O_RDONLY);
  if (!raw.ok()) return raw.error().code() == Code::kNotFound ? Ok() : Status(raw.error());
  struct stat info{};
  if (::fstat(raw->get(), &info) != 0) return Error::FromErrno(errno, "stat pack");
  TRY_ASSIGN(const Fd out, OpenStoreFile(step_dir, "packz.tmp", O_RDWR | O_CREAT | O_TRUNC));
  Status written = WriteCompressedPack(raw->get(), static_cast<uint64_t>(info.st_size), out.get());
  if (written.ok() && sync == FileSync::kPower && ::fdatasync(out.get()) != 0)
    written = Error::FromErrno(errno, "sync compressed pack");
  if (written.ok() && ::renameat(step_dir, "packz.tmp", step_dir, "packz") != 0) {
    written = Error::FromErrno(errno, "rename compressed pack");
  }
  if (!written.ok()) {
    ::unlinkat(step_dir, "packz.tmp", 0);
    return written;
  }
  return DropRawPack(step_dir, sync);
}

Status TidyPack(int step_dir, FileSync sync) {
  ::unlinkat(step_dir, "packz.tmp", 0);
  const auto packz = OpenStoreFile(step_dir, "packz", O_RDONLY);
  const auto raw = OpenStoreFile(step_dir, "pack", O_RDONLY);
  if (!packz.ok() || !raw.ok()) return Ok();  // one form, or damage that whoever reads it finds
  TRY_ASSIGN(const bool usable, IsUsable(*packz, raw->get()));
  if (!usable) {
    ::unlinkat(step_dir, "packz", 0);
    return Ok();
  }
  // Whoever wrote it may not have got as far, or not have been asked to.
  if (sync == FileSync::kPower && ::fdatasync(packz->get()) != 0)
    return Error::FromErrno(errno, "sync compressed pack");
  return DropRawPack(step_dir, sync);
}

}  // namespace sandglass::undo
