// The files of one step besides its journal: the pack (small contents and blocks, back to back), blobs/ (large contents, one file
// each) and anchors/ (inodes of the project kept alive by a name). Made when first needed: most steps need few of them.
//
// A pack exists raw (`pack`) or, once a closed step was compressed, in frames (`packz`); offsets always count raw bytes. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/result.h"
#include "base/thread_annotations.h"
#include "undo/object.h"
#include "undo/record.h"

namespace sandglass::undo {

inline constexpr uint64_t kSmallFileBytes = 256 << 10;
// A file in a step's folder: it holds something that could not be put back, and goes to damaged/ instead of trash/.
inline constexpr const char* kUnreturned = "unreturned";

inline constexpr const char* kKeptMissing = "what was kept of it is missing from the store";

class PackReader;

// A blob's file name in blobs/.
class BlobName {
 public:
  explicit BlobName(BlobId blob);
  const char* c_str() const { return text_; }

 private:
  char text_[16];
};

// Where an anchor is below anchors/: folders of a few names each, because adding to and searching a larger one is slow.
class AnchorName {
 public:
  explicit AnchorName(AnchorId anchor);
  const char* c_str() const { return text_; }

 private:
  char text_[24];
};

class StepFiles {
 public:
  enum class Access : uint8_t { kMake, kOpenOnly };
  // `dir` is the step's own folder, owned from here on. Whoever does not own the store makes nothing in it.
  explicit StepFiles(Fd dir, Access access = Access::kMake);
  ~StepFiles();

  int dir() const { return dir_.get(); }
  // The folder, made if missing and we may. Anchors(): kCorrupt if it leads out of the store. kNotFound.
  Result<int> Anchors();
  Result<int> Blobs();
  // A free one whose folder exists.
  Result<AnchorId> NewAnchor();
  // The slot has its name now, which the next Sync makes durable.
  void NoteAnchored(AnchorId anchor);
  BlobId NextBlob() { return {next_blob_++}; }
  // To read. kCorrupt: what is there is no blob of ours.
  Result<Fd> OpenBlob(BlobId blob);

  // Appends and says where. kNoSpace: the pack is as before.
  Result<uint64_t> AppendToPack(ByteView bytes);
  Result<Bytes> ReadPack(uint64_t offset, uint64_t length);
  // What a record says was kept, checked. kCorrupt: it is gone or damaged; any other error may be better the next time.
  Result<Bytes> ReadKept(const ContentRecord& record);
  Result<Fd> OpenKept(const ContentRecord& record);
  Status Sync();

 private:
  Result<Fd> OpenFolder(const char* name) const;
  Result<int> AnchorsLocked() REQUIRES(mutex_);
  Result<int> Pack() REQUIRES(mutex_);
  Status SyncAnchors() REQUIRES(mutex_);
  Status OpenPackForReading() REQUIRES(mutex_);

  Fd dir_;
  const Access access_;
  Mutex mutex_;
  Fd anchors_ GUARDED_BY(mutex_);
  Fd blobs_ GUARDED_BY(mutex_);
  Fd pack_ GUARDED_BY(mutex_);
  std::unique_ptr<PackReader> compressed_ GUARDED_BY(mutex_);
  std::atomic<uint64_t> pack_end_{0};
  bool names_synced_ GUARDED_BY(mutex_) = false;  // those of journal, pack, blobs and anchors
  uint32_t next_anchor_ GUARDED_BY(mutex_) = 0;
  std::set<uint32_t> unsynced_ GUARDED_BY(mutex_);  // folders of anchors with new names
  std::atomic<uint32_t> next_blob_{0};
};

// Calls `each(folder_fd, name)` for every anchor of a step.
void ForEachAnchor(int step_dir, const std::function<void(int, const char*)>& each);

// Copies bytes [0, size) of `from` into the empty file `to`, holes as holes, and returns the XXH3-64 of the bytes as read.
struct SparseCopy {
  uint64_t checksum;
  uint64_t written;  // bytes: not the holes
};
Result<SparseCopy> CopySparse(int from, int to, uint64_t size);
// The same checksum without copying.
Result<uint64_t> ChecksumFile(int fd, uint64_t size);
// Do both files hold the same `size` bytes?
Result<bool> SameBytes(int a, int b, uint64_t size);

// Writes where `fd` has zeros: blocks of zeros stay as they are, holes perhaps.
Status WriteOverZeros(int fd, uint64_t offset, ByteView bytes);

// Compresses the pack of a closed step: writes `packz`, then removes `pack`. Killed in between, either one is whole;
// with FileSync::kPower also after a power cut. Nothing to do is success.
Status CompressPack(int step_dir, FileSync sync);
// After a crash: both forms may exist. The raw one goes if the compressed one holds the same, which a power cut may have prevented
// where nothing was synced, and the compressed one if it does not.
Status TidyPack(int step_dir, FileSync sync);

}  // namespace sandglass::undo
