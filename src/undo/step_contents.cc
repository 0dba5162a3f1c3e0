// StepWriter's contents: what is about to change is kept in the pack, as a blob or block by block.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/beneath.h"
#include "base/hash.h"
#include "base/io.h"
#include "undo/step_writer.h"

namespace sandglass::undo {
namespace {

constexpr uint64_t kBlockBytes = 64 << 10;
constexpr uint64_t kMaxExtentBytes = 1 << 20;

// Where the block ends that `at` is the end of, or in.
uint64_t AllOfBlock(uint64_t at) { return (at + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

// How much of a file has to be copied, before anybody has looked for its holes.
uint64_t LikelyData(uint64_t size, uint64_t blocks) { return std::min(size, blocks * 512); }

}  // namespace

Status StepWriter::TouchContent(const OpenObject& object, std::string_view path,
                                ContentChange change, WriteVisibility visibility) {
  if (!object.stat.IsRegular() || IsWhole(object.id)) return Ok();
  // The content record itself says that the object changes; without one, this does.
  TRY(TouchMeta(object, path, unprotected_ ? TouchReason::kDirect : TouchReason::kContent));
  if (unprotected_ || IsWhole(object.id)) return Ok();  // TouchMeta may have adopted a shadow
  TRY(CheckRestorable(object, path));
  bool has_ranges = false;
  {
    MutexLock lock(mutex_);
    has_ranges = touched_[object.id].ranges != nullptr;
  }
  const uint64_t size = object.stat.size;
  if (!has_ranges && size <= kSmallFileBytes) return CaptureWhole(object, path, false);
  using Kind = ContentChange::Kind;
  if (change.kind == Kind::kRange && visibility == WriteVisibility::kAnnounced) {
    // A world may announce any length, and a sum that wrapped would keep nothing.
    const uint64_t length = std::min(change.length, UINT64_MAX - change.offset);
    return CaptureRange(object, path, change.offset, change.offset + length);
  }
  if (has_ranges)
    return CaptureRange(object, path, change.kind == Kind::kTruncate ? change.offset : 0, size);
  if (change.kind == Kind::kTruncate && change.offset > 0 && !place_.abilities.reflinks) {
    return CaptureRange(object, path, change.offset, size);
  }
  const bool may_stay_unchanged = change.kind != Kind::kTruncate;
  return CaptureWhole(object, path, may_stay_unchanged);
}

Status StepWriter::LinkShadow(const Shadow& shadow, BlobId blob) {
  TRY_ASSIGN(int blobs, files_.Blobs());
  TRY(options_.shadows->LinkCopy(shadow, blobs, blob));
  if (options_.durability == Durability::kProcess) return Ok();
  // Nobody needed its bytes on disk before: a shadow need not survive a power cut, but a preimage has to.
  TRY_ASSIGN(const Fd copy, files_.OpenBlob(blob));
  if (::fdatasync(copy.get()) != 0) return Error::FromErrno(errno, "sync an adopted shadow");
  return Ok();
}

Status StepWriter::AdoptShadow(ObjectId object, std::string_view path, Shadow shadow) {
  const BlobId blob = files_.NextBlob();
  // First a record, as everywhere: a step without any has nothing in its folder that recovery would have to think of.
  Status adopted = Append(MetaRecord{
      .object = object, .reason = TouchReason::kDirect, .path = path, .meta = shadow.meta});
  if (adopted.ok()) adopted = LinkShadow(shadow, blob);
  if (adopted.ok()) adopted = Append(shadow.AsContent(object, path, blob));
  if (!adopted.ok()) {
    options_.shadows->PutBack(object, std::move(shadow));
    return adopted;
  }
  copied_ +=
      shadow.keeping == Keeping::kBlob ? LikelyData(shadow.meta.size, shadow.meta.blocks) : 0;
  MarkWhole(object);
  options_.shadows->Remove(shadow);
  return Ok();
}

Status StepWriter::CountCopy(uint64_t bytes) {
  if (copied_ + bytes > options_.max_copied_bytes) {
    return Error(
        Code::kLimit,
        fmt::format("keeping {} more bytes would exceed what one step may copy for undo ({} bytes)",
                    bytes, options_.max_copied_bytes));
  }
  copied_ += bytes;
  return Ok();
}

Result<uint64_t> StepWriter::CopyToPack(ByteView bytes) {
  TRY(CountCopy(bytes.size()));
  auto where = files_.AppendToPack(bytes);
  if (!where.ok()) copied_ -= bytes.size();
  return where;
}

// A file that its owner may not read (mode 0200) still has a content to keep. Its metadata is on record, so that a crash in between
// costs nothing.
Result<OpenObject> StepWriter::Readable(const OpenObject& object) const {
  OpenObject readable{.fd = Fd(), .id = object.id, .stat = object.stat, .readable = true};
  ProcPath path(object.fd.get());
  readable.fd = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (readable.fd.valid()) return readable;
  const int first_errno = errno;
  if (first_errno == EACCES && ::chmod(path.c_str(), (object.stat.mode & 07777) | S_IRUSR) == 0) {
    readable.fd = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ::chmod(path.c_str(), object.stat.mode & 07777);
  }
  if (!readable.fd.valid()) return Error::FromErrno(first_errno, "read what is about to change");
  return readable;
}

// An ordinary user can put back neither the times of somebody else's file nor file capabilities, which the kernel drops when content
// changes.
Status StepWriter::CheckRestorable(const OpenObject& object, std::string_view path) const {
  if (::geteuid() == 0) return Ok();
  if (object.stat.uid != ::geteuid()) {
    return Error(Code::kNotRestorable,
                 fmt::format("{} belongs to user {}, so undo could not restore its times", path,
                             object.stat.uid));
  }
  TRY_ASSIGN(const Xattrs xattrs, ListXattrs(object));
  if (!LosesCapabilities(xattrs)) return Ok();
  return Error(Code::kNotRestorable,
               fmt::format("{} has file capabilities, which undo could not restore", path));
}

Status StepWriter::CaptureWhole(const OpenObject& object, std::string_view path, bool provisional) {
  Result<OpenObject> reopened =
      object.readable ? Result<OpenObject>(Error(Code::kInvalid, "")) : Readable(object);
  if (!object.readable && !reopened.ok()) return reopened.error();
  const OpenObject& source = object.readable ? object : *reopened;
  return source.stat.size <= kSmallFileBytes ? CapturePack(source, path)
                                             : CaptureBlob(source, path, provisional);
}

Status StepWriter::CapturePack(const OpenObject& object, std::string_view path) {
  Bytes bytes(object.stat.size);
  TRY_ASSIGN(size_t got, PReadFully(object.fd.get(), bytes, 0));
  bytes.resize(got);
  TRY_ASSIGN(uint64_t where, CopyToPack(bytes));
  TRY(Append(ContentRecord{.object = object.id,
                           .path = path,
                           .keeping = Keeping::kPack,
                           .whole = true,
                           .sparse = object.stat.LooksSparse(),
                           .file_size = got,
                           .offset = 0,
                           .length = got,
                           .where = where,
                           .checksum = HashBytes64(bytes)}));
  MarkWhole(object.id);
  ++place_.stats.pack;
  return Ok();
}

Status StepWriter::CaptureBlob(const OpenObject& object, std::string_view path, bool provisional) {
  const BlobId slot = files_.NextBlob();
  TRY_ASSIGN(const CopyResult copied, CopyToBlob(object, slot));
  const uint64_t size = copied.size;
  TRY(Append(ContentRecord{.object = object.id,
                           .path = path,
                           .keeping = copied.keeping,
                           .whole = true,
                           .sparse = object.stat.LooksSparse(),
                           .file_size = size,
                           .offset = 0,
                           .length = size,
                           .where = slot.value,
                           .checksum = copied.checksum}));
  MarkWhole(object.id);
  if (!provisional) return Ok();
  MutexLock lock(mutex_);
  provisional_.push_back(
      {object.id, slot, copied.copied, size, object.stat.mtime_ns, std::string(path)});
  return Ok();
}

Result<CopyResult> StepWriter::CopyToBlob(const OpenObject& object, BlobId slot) {
  TRY_ASSIGN(int blobs, files_.Blobs());
  const BlobName name(slot);
  TRY_ASSIGN(const Fd blob, OpenStoreFile(blobs, name.c_str(), O_RDWR | O_CREAT | O_EXCL));
  auto copied = FillBlob(object, blob.get());
  if (copied.ok() && options_.durability == Durability::kPower && ::fdatasync(blob.get()) != 0) {
    const int err = errno;
    copied_ -= copied->copied;
    copied = Error::FromErrno(err, "sync a copy");
  }
  if (!copied.ok()) ::unlinkat(blobs, name.c_str(), 0);
  return copied;
}

Result<CopyResult> StepWriter::FillBlob(const OpenObject& object, int blob) {
  if (const auto clone = TryClone(place_, object.fd.get(), blob)) return *clone;
  // Refused before the work, if it would be too much; a compressed file turns out to be larger than its blocks.
  const uint64_t likely = LikelyData(object.stat.size, object.stat.blocks);
  TRY(CountCopy(likely));
  auto copied = CopyInFull(place_, object.fd.get(), blob, object.stat.size);
  copied_ -= likely;
  if (copied.ok()) TRY(CountCopy(copied->copied));
  return copied;
}

// Keeps the blocks of [begin, end) that were not kept yet and that existed before the step. A record without bytes still says what
// the size was.
Status StepWriter::CaptureRange(const OpenObject& object, std::string_view path, uint64_t begin,
                                uint64_t end) {
  TRY_ASSIGN(OpenObject source, Readable(object));
  TRY_ASSIGN(Ranges * ranges, RangesOf(object, path));
  end = std::min(end, ranges->old_size);
  for (uint64_t at = begin / kBlockBytes * kBlockBytes; at < end;) {
    const auto next = ranges->Next(at);
    const bool has_next = next != ranges->kept.end();
    if (has_next && next->first <= at) {
      at = next->second;
      continue;
    }
    uint64_t stop = std::min(at + kMaxExtentBytes, AllOfBlock(end));
    if (has_next) stop = std::min(stop, next->first);
    TRY(CaptureExtent(source, path, ranges->old_size, at, std::min(stop, ranges->old_size)));
    ranges->Add(at, stop);
    at = stop;
  }
  // Nothing is left that another writer could take: what it does from here on need not be kept, also where the file loses a name.
  if (ranges->AllKept()) MarkWhole(object.id);
  ++place_.stats.range;
  return Ok();
}

// The pointer stays good: the object's key lock is the caller's, and map nodes do not move.
Result<StepWriter::Ranges*> StepWriter::RangesOf(const OpenObject& object, std::string_view path) {
  {
    MutexLock lock(mutex_);
    if (Ranges* known = touched_[object.id].ranges.get()) return known;
  }
  const uint64_t size = object.stat.size;
  TRY(Append(ContentRecord{.object = object.id,
                           .path = path,
                           .keeping = Keeping::kPack,
                           .whole = false,
                           .sparse = false,
                           .file_size = size,
                           .offset = 0,
                           .length = 0,
                           .where = 0,
                           .checksum = 0}));
  MutexLock lock(mutex_);
  Touch& touch = touched_[object.id];
  touch.ranges = std::make_unique<Ranges>(Ranges{.old_size = size});
  return touch.ranges.get();
}

std::map<uint64_t, uint64_t>::const_iterator StepWriter::Ranges::Next(uint64_t at) const {
  const auto after = kept.upper_bound(at);
  if (after == kept.begin()) return after;
  const auto before = std::prev(after);
  return before->second > at ? before : after;
}

// Neighbours are joined, so all of it is one extent.
bool StepWriter::Ranges::AllKept() const {
  if (old_size == 0) return true;
  return !kept.empty() && kept.begin()->first == 0 && kept.begin()->second >= old_size;
}

// Of what is not kept yet.
void StepWriter::Ranges::Add(uint64_t begin, uint64_t end) {
  auto after = kept.lower_bound(begin);
  if (after != kept.end() && after->first == end) {
    end = after->second;
    after = kept.erase(after);
  }
  if (after != kept.begin() && std::prev(after)->second == begin)
    std::prev(after)->second = end;
  else
    kept.emplace(begin, end);
}

Status StepWriter::CaptureExtent(const OpenObject& source, std::string_view path, uint64_t old_size,
                                 uint64_t begin, uint64_t end) {
  Bytes bytes(end - begin);
  TRY_ASSIGN(size_t got, PReadFully(source.fd.get(), bytes, static_cast<off_t>(begin)));
  bytes.resize(got);
  TRY_ASSIGN(uint64_t where, CopyToPack(bytes));
#ifdef SANDGLASS_MUTANT_wrong_range_offset
  begin += 1;
#endif
  return Append(ContentRecord{.object = source.id,
                              .path = path,
                              .keeping = Keeping::kPack,
                              .whole = false,
                              .sparse = false,
                              .file_size = old_size,
                              .offset = begin,
                              .length = got,
                              .where = where,
                              .checksum = HashBytes64(bytes)});
}

Status StepWriter::DropUnchanged() {
  std::vector<Provisional> provisional;
  {
    MutexLock lock(mutex_);
    provisional.swap(provisional_);
  }
  Status status;
  for (const Provisional& copy : provisional) {
    if (status.ok()) status = DropIfUnchanged(copy);
    if (status.ok()) continue;
    MutexLock lock(mutex_);
    provisional_.push_back(copy);  // for the next attempt to close
  }
  return status;
}

Status StepWriter::DropIfUnchanged(const Provisional& copy) {
  auto now =
      OpenBeneath(place_.root.get(), copy.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME);
  if (!now.ok()) return Ok();  // renamed or removed: the copy stays
  auto id = place_.identifier.OfFd(now->get());
  auto stat = StatFd(now->get());
  if (!id.ok() || !stat.ok() || *id != copy.object || stat->size != copy.size) return Ok();
  TRY_ASSIGN(int blobs, files_.Blobs());
  BlobName name(copy.blob);
  const auto blob = OpenStoreFile(blobs, name.c_str(), O_RDONLY);
  if (!blob.ok()) return Ok();  // whoever takes the step back finds the damage
  TRY_ASSIGN(bool same, SameBytes(now->get(), blob->get(), copy.size));
  if (!same) return Ok();
  // The same bytes were written again, perhaps: that moved its time, and so the step did change it.
  if (stat->mtime_ns != copy.mtime_ns)
    TRY(Append(MarkRecord{.object = copy.object, .path = copy.path}));
  TRY(Append(DropRecord{.object = copy.object, .blob = copy.blob}));
  {
    // Should the step not close after all, the next write has to be kept again.
    MutexLock lock(mutex_);
    touched_[copy.object].whole = false;
  }
  ::unlinkat(blobs, name.c_str(), 0);
  copied_ -= copy.copied;
  ++place_.stats.provisional_dropped;
  return Ok();
}

}  // namespace sandglass::undo
