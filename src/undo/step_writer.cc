#include "undo/step_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/beneath.h"
#include "base/io.h"
#include "base/rel_path.h"

namespace sandglass::undo {
namespace {

constexpr uint64_t kBlockBytes = 64 << 10;
constexpr uint64_t kMaxExtentBytes = 1 << 20;

}  // namespace

Result<std::unique_ptr<StepWriter>> StepWriter::Create(const Place& place, int parent_fd,
                                                       const char* name,
                                                       const JournalHeader& header,
                                                       const StepWriterOptions& options) {
  if (::mkdirat(parent_fd, name, 0700) != 0)
    return Error::FromErrno(errno, fmt::format("create step folder {}", name));
  auto writer = Start(place, parent_fd, name, header, options);
  if (!writer.ok()) (void)RemoveTreeAt(parent_fd, name);  // made a moment ago: nothing is in it
  return writer;
}

Result<std::unique_ptr<StepWriter>> StepWriter::Start(const Place& place, int parent_fd,
                                                      const char* name, const JournalHeader& header,
                                                      const StepWriterOptions& options) {
  TRY_ASSIGN(Fd dir, OpenSubdir(parent_fd, name));
  TRY_ASSIGN(auto journal, JournalWriter::Create(dir.get(), "journal", header));
  std::unique_ptr<StepWriter> writer(new StepWriter(place, std::move(dir), header, options));
  writer->journal_ = std::move(journal);
  if (options.durability == Durability::kPower) {
    TRY(writer->MakeDurable());
    if (::fsync(parent_fd) != 0) return Error::FromErrno(errno, "sync the folder of a step");
  }
  return writer;
}

StepWriter::StepWriter(const Place& place, Fd dir, const JournalHeader& header,
                       const StepWriterOptions& options)
    : place_(place), header_(header), options_(options), files_(std::move(dir)) {}

Status StepWriter::Append(const Record& record) {
  TRY(journal_->Append(record));
  journal_->Beat(StampingNow());
  ++records_;
  return Ok();
}

Status StepWriter::MakeDurable() {
  if (options_.durability == Durability::kProcess) return Ok();
  TRY(files_.Sync());
  return journal_->Sync();
}

bool StepWriter::IsBorn(ObjectId object) const {
  MutexLock lock(mutex_);
  auto found = touched_.find(object);
  return found != touched_.end() && found->second.born;
}

bool StepWriter::HasTouched(ObjectId object) const {
  MutexLock lock(mutex_);
  auto found = touched_.find(object);
  return found != touched_.end() && (found->second.born || found->second.meta);
}

uint32_t StepWriter::AnchorCount(ObjectId object) const {
  MutexLock lock(mutex_);
  auto found = touched_.find(object);
  return found == touched_.end() ? 0 : found->second.anchors;
}

bool StepWriter::IsWhole(ObjectId object) const {
  MutexLock lock(mutex_);
  auto found = touched_.find(object);
#ifdef SANDGLASS_MUTANT_skip_first_touch_check
  return found != touched_.end() && found->second.born;
#endif
  return found != touched_.end() && (found->second.born || found->second.whole);
}

void StepWriter::MarkWhole(ObjectId object) {
  MutexLock lock(mutex_);
  touched_[object].whole = true;
}

void StepWriter::MarkBorn(ObjectId object) {
  MutexLock lock(mutex_);
  touched_[object].born = true;
}

Status StepWriter::TouchMeta(const OpenObject& object, std::string_view path, TouchReason reason) {
  const bool names_only =
      reason == TouchReason::kNames && !object.stat.IsDirectory() && !object.stat.locked;
  bool known = false, mark = false, named = false;
  {
    MutexLock lock(mutex_);
    Touch& touch = touched_[object.id];
    named = touch.named;
    known = touch.born || touch.meta || (named && names_only);
    mark = touch.meta && !touch.direct && reason == TouchReason::kDirect;
    if (mark) touch.direct = true;
  }
  if (mark) return Append(MarkRecord{.object = object.id, .path = path});
  if (known) return Ok();
#ifdef SANDGLASS_MUTANT_skip_parent_times
  if (reason == TouchReason::kNames) return Ok();
#endif
  if (options_.shadows != nullptr) {
    // Unseen writes may have moved size and time since the step began: the shadow knows what they were.
    if (auto shadow = options_.shadows->Claim(object.id)) {
      TRY(Append(MetaRecord{.object = object.id,
                            .reason = TouchReason::kDirect,
                            .path = path,
                            .meta = shadow->meta}));
      NoteMeta(object.id, TouchReason::kDirect, false);
      return AdoptShadow(object.id, path, std::move(*shadow));
    }
  }
  Metadata meta = MetadataOf(object.stat);
  if (!names_only) {
    TRY_ASSIGN(meta, CaptureMetadata(object));
  }
  if (named) meta.ctime_ns = Metadata::kSeenBefore;
  TRY(Append(
      MetaRecord{.object = object.id, .reason = reason, .path = path, .meta = std::move(meta)}));
  NoteMeta(object.id, reason, names_only);
  return Ok();
}

void StepWriter::NoteMeta(ObjectId object, TouchReason reason, bool names_only) {
  MutexLock lock(mutex_);
  Touch& touch = touched_[object];
  touch.named = true;
  touch.meta = !names_only;
  touch.direct = reason == TouchReason::kDirect;
}

Status StepWriter::AdoptShadow(ObjectId object, std::string_view path, Shadow shadow) {
  TRY_ASSIGN(int from, options_.shadows->Folder());
  TRY_ASSIGN(int blobs, files_.Blobs());
  const BlobId blob = files_.NextBlob();
  if (::renameat(from, BlobName(shadow.slot).c_str(), blobs, BlobName(blob).c_str()) != 0) {
    return Error::FromErrno(errno, "adopt shadow");
  }
  copied_ += shadow.keeping == Keeping::kBlob ? shadow.meta.size : 0;
  TRY(Append(ContentRecord{.object = object,
                           .path = path,
                           .keeping = shadow.keeping,
                           .whole = true,
                           .sparse = shadow.meta.blocks * 512 < shadow.meta.size,
                           .file_size = shadow.meta.size,
                           .offset = 0,
                           .length = shadow.meta.size,
                           .where = blob.value,
                           .checksum = shadow.checksum}));
  MarkWhole(object);
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
    return CaptureRange(object, path, change.offset, change.offset + change.length);
  }
  if (has_ranges)
    return CaptureRange(object, path, change.kind == Kind::kTruncate ? change.offset : 0, size);
  if (change.kind == Kind::kTruncate && change.offset > 0 && !place_.abilities.reflinks) {
    return CaptureRange(object, path, change.offset, size);
  }
  const bool may_stay_unchanged = change.kind != Kind::kTruncate;
  return CaptureWhole(object, path, may_stay_unchanged);
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
  TRY_ASSIGN(Metadata meta, CaptureMetadata(object));
  if (!LosesCapabilities(meta)) return Ok();
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
  const uint64_t size = object.stat.size;
  const uint64_t cost = place_.abilities.reflinks ? 0 : size;
  TRY(CountCopy(cost));
  TRY_ASSIGN(int blobs, files_.Blobs());
  const BlobId slot = files_.NextBlob();
  BlobName name(slot);
  TRY_ASSIGN(const Fd blob, OpenStoreFile(blobs, name.c_str(), O_RDWR | O_CREAT | O_EXCL));
  auto copied = CloneOrCopy(place_, object.fd.get(), blob.get(), size);
  if (copied.ok() && options_.durability == Durability::kPower && ::fdatasync(blob.get()) != 0) {
    copied = Error::FromErrno(errno, "sync a copy");
  }
  if (!copied.ok()) {
    ::unlinkat(blobs, name.c_str(), 0);
    copied_ -= cost;
    return copied.error();
  }
  TRY(Append(ContentRecord{.object = object.id,
                           .path = path,
                           .keeping = copied->keeping,
                           .whole = true,
                           .sparse = object.stat.LooksSparse(),
                           .file_size = size,
                           .offset = 0,
                           .length = size,
                           .where = slot.value,
                           .checksum = copied->checksum}));
  MarkWhole(object.id);
  if (!provisional) return Ok();
  MutexLock lock(mutex_);
  provisional_.push_back({object.id, slot, size, std::string(path)});
  return Ok();
}

// Keeps the blocks of [begin, end) that were not kept yet and that existed before the step. A record without bytes still says what
// the size was.
Status StepWriter::CaptureRange(const OpenObject& object, std::string_view path, uint64_t begin,
                                uint64_t end) {
  TRY_ASSIGN(OpenObject source, Readable(object));
  TRY_ASSIGN(Ranges * ranges, RangesOf(object, path));
  std::vector<bool>& kept = ranges->kept;
  end = std::min(end, ranges->old_size);
  for (uint64_t at = begin / kBlockBytes * kBlockBytes; at < end;) {
    uint64_t stop = at;
    while (stop < end && stop - at < kMaxExtentBytes && !kept[stop / kBlockBytes])
      stop += kBlockBytes;
    if (stop == at) {
      at += kBlockBytes;
      continue;
    }
    TRY(CaptureExtent(source, path, ranges->old_size, at, std::min(stop, ranges->old_size)));
    for (uint64_t block = at; block < stop; block += kBlockBytes) kept[block / kBlockBytes] = true;
    at = stop;
  }
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
  touch.ranges = std::make_unique<Ranges>(
      Ranges{size, std::vector<bool>((size + kBlockBytes - 1) / kBlockBytes)});
  return touch.ranges.get();
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

Result<OpSeq> StepWriter::IntendCreate(const NameAt& at, Birth birth, uint32_t mode,
                                       ObjectId object, AnchorId origin) {
  const OpSeq seq = NextSeq();
  TRY(Append(CreateRecord{.seq = seq,
                          .at = at,
                          .birth = birth,
                          .mode = mode & S_IFMT,
                          .object = object,
                          .origin = origin}));
  TRY(MakeDurable());
  return seq;
}

Result<Keep> StepWriter::KeepObject(const OpenObject& object, int dir_fd, const char* name,
                                    std::string_view path, KeepBy by) {
  if (IsBorn(object.id)) return Keep{};
  if (object.stat.IsDirectory()) {
    TRY(TouchMeta(object, path, TouchReason::kNames));
    std::string why;
    if (!CanRestore(Metadata{.uid = object.stat.uid, .gid = object.stat.gid}, &why)) {
      return Error(Code::kNotRestorable,
                   fmt::format("{} could not be made anew as it was: {}", path, why));
    }
    return Keep{.kept = Kept::kDirectory};
  }
  return KeepNonDirectory(object, dir_fd, name, path, by);
}

Result<Keep> StepWriter::KeepNonDirectory(const OpenObject& object, int dir_fd, const char* name,
                                          std::string_view path, KeepBy by) {
  TRY(TouchMeta(object, path, TouchReason::kNames));
#ifdef SANDGLASS_MUTANT_ignore_second_link
  if (object.stat.nlink > 1) return Keep{};
#endif
  if (!place_.abilities.links) {
    TRY(KeepAsContent(object, path));
    return Keep{.kept = Kept::kContent};
  }
  // The anchor keeps the inode, not what is in it: someone who has it open for writing could go on. A lease proves that nobody
  // has, and holds until the ticket closes the descriptor. Otherwise the content is kept beside the anchor.
  if (object.stat.IsRegular() && by == KeepBy::kLink && !IsWhole(object.id) &&
      !TakeLease(object, LeaseKind::kReaders) && object.stat.size > 0 && !unprotected_) {
    TRY(TouchMeta(object, path, TouchReason::kContent));
    TRY(CaptureWhole(object, path, false));
    ++place_.stats.writer_copy;
  }
  TRY_ASSIGN(AnchorId slot, files_.NewAnchor());
  if (by == KeepBy::kRename) return Anchored(object, slot, true);
  TRY_ASSIGN(int anchors, files_.Anchors());
  if (::linkat(dir_fd, name, anchors, AnchorName(slot).c_str(), 0) == 0) {
    ++place_.stats.anchor_link;
    return Anchored(object, slot, false);
  }
  // protected_hardlinks refuses links to what we neither own nor may write; moving it is allowed by the directory alone.
  if (errno == EPERM || errno == EMLINK) return Anchored(object, slot, true);
  if (errno == EXDEV) {  // a mount in between that the probe did not see
    TRY(KeepAsContent(object, path));
    return Keep{.kept = Kept::kContent};
  }
  return Error::FromErrno(errno, "keep what is about to be removed");
}

Result<Keep> StepWriter::Anchored(const OpenObject& object, AnchorId slot, bool by_rename) {
  if (by_rename) {
    TRY(files_.Anchors());
    ++place_.stats.anchor_rename;
  }
  const uint64_t retained = object.stat.nlink == 1 ? object.stat.blocks * 512 : 0;
  retained_ += retained;
  const bool shared = object.stat.nlink > 1;
  if (shared) ++shared_anchors_;
  MutexLock lock(mutex_);
  ++touched_[object.id].anchors;
  return Keep{.kept = Kept::kAnchor,
              .anchor = slot,
              .by_rename = by_rename,
              .shared = shared,
              .retained = retained};
}

Status StepWriter::KeepAsContent(const OpenObject& object, std::string_view path) {
  TRY_ASSIGN(Metadata meta, CaptureMetadata(object));
  std::string why;
  if (!CanRestore(meta, &why)) {
    return Error(Code::kNotRestorable,
                 fmt::format("{} could not be made anew as it was: {}", path, why));
  }
  ++place_.stats.anchor_copy;
  TRY(TouchMeta(object, path, TouchReason::kContent));  // also of what has no content
  return TouchContent(object, path, ContentChange::TruncateTo(0), WriteVisibility::kUnseen);
}

Result<OpSeq> StepWriter::IntendRemove(const NameAt& at, const OpenObject& object,
                                       const Keep& keep) {
  const OpSeq seq = NextSeq();
  RemoveRecord record{.seq = seq,
                      .at = at,
                      .object = object.id,
                      .mode = object.stat.mode,
                      .kept = keep.kept,
                      .anchor = keep.anchor,
                      .nlink = object.stat.nlink,
                      .rdev = object.stat.rdev,
                      .symlink_target = {}};
  Metadata meta;
  if (keep.kept == Kept::kContent && object.stat.IsSymlink()) {
    TRY_ASSIGN(meta, CaptureMetadata(object));
    record.symlink_target = meta.symlink_target;
  }
  TRY(Append(record));
  TRY(MakeDurable());
  return seq;
}

Result<OpSeq> StepWriter::IntendRename(const NameAt& from, const NameAt& to, RenameMode mode,
                                       const OpenObject& object, const OpenObject* target,
                                       const Keep& target_keep) {
  const OpSeq seq = NextSeq();
  RenameRecord record{.seq = seq,
                      .from = from,
                      .to = to,
                      .exchange = mode == RenameMode::kExchange,
                      .object = object.id,
                      .mode = object.stat.mode,
                      .target = kNoObject,
                      .target_mode = 0,
                      .target_kept = Kept::kNothing,
                      .anchor = target_keep.anchor,
                      .target_symlink = {},
                      .target_rdev = 0};
  Metadata meta;
#ifndef SANDGLASS_MUTANT_forget_rename_target
  if (target != nullptr) {
    record.target = target->id;
    record.target_mode = target->stat.mode;
    record.target_kept = target_keep.kept;
    record.target_rdev = target->stat.rdev;
    if (target_keep.kept == Kept::kContent && target->stat.IsSymlink()) {
      TRY_ASSIGN(meta, CaptureMetadata(*target));
      record.target_symlink = meta.symlink_target;
    }
  }
#endif
  TRY(Append(record));
  TRY(MakeDurable());
  return seq;
}

bool StepWriter::MayReplaceInode(const OpenObject& object) const {
  if (!place_.abilities.exchange || !object.stat.IsRegular() || object.stat.nlink != 1 ||
      object.stat.size <= kSmallFileBytes || IsWhole(object.id)) {
    return false;
  }
  MutexLock lock(mutex_);
  auto found = touched_.find(object.id);
  return found == touched_.end() || found->second.ranges == nullptr;
}

Result<std::optional<StepWriter::Replacement>> StepWriter::TryReplaceInode(const OpenObject& object,
                                                                           const OpenObject& dir,
                                                                           const NameAt& at) {
  using Nothing = std::optional<Replacement>;
  const std::string path = JoinPath(at.dir, at.name);
  TRY(TouchMeta(object, path, TouchReason::kNames));
  if (IsWhole(object.id)) return Nothing();  // a shadow was adopted: there are writers
  TRY_ASSIGN(Metadata meta, CaptureMetadata(object));
  std::string why;
  if (!CanRestore(meta, &why) || LosesCapabilities(meta) || !TakeLease(object, LeaseKind::kAlone))
    return Nothing();
  TRY_ASSIGN(int anchors, files_.Anchors());
  TRY_ASSIGN(AnchorId slot, files_.NewAnchor());
  AnchorName slot_name(slot);
  TRY_ASSIGN(const Fd fresh_fd,
             OpenStoreFile(anchors, slot_name.c_str(), O_RDWR | O_CREAT | O_EXCL));
  TRY_ASSIGN(OpenObject fresh, OpenObjectAt(place_.identifier, anchors, slot_name.c_str()));
  TRY(ApplyMetadata(fresh, meta));
  TRY(TouchMeta(dir, at.dir, TouchReason::kNames));
  TRY_ASSIGN(OpSeq seq, IntendReplace(at, object.id, fresh.id, slot, AnchorId{UINT32_MAX}));
  const std::string name(at.name);
  if (::renameat2(anchors, slot_name.c_str(), dir.fd.get(), name.c_str(), RENAME_EXCHANGE) != 0) {
    TRY(Settle(seq, errno));
    return Nothing();
  }
  // A truncation leaves its folder alone; our exchange of names must not show there either.
  TRY(ApplyMtime(dir, dir.stat.mtime_ns));
  MarkBorn(fresh.id);
  {
    MutexLock lock(mutex_);
    ++touched_[object.id].anchors;
  }
  const uint64_t retained = object.stat.blocks * 512;
  retained_ += retained;
  ++place_.stats.inode_move;
  TRY(Settle(seq, 0));
  return Nothing(Replacement{seq, slot, object.id, fresh.id, retained});
}

Status StepWriter::TakeBackReplacement(const Replacement& replacement, const OpenObject& dir,
                                       const std::string& name) {
  TRY_ASSIGN(int anchors, files_.Anchors());
  const AnchorName anchor(replacement.anchor);
  TRY_ASSIGN(ObjectId now, place_.identifier.OfName(dir.fd.get(), name.c_str()));
  if (now != replacement.fresh) return Ok();  // somebody gave the name away: the journal knows
  if (::renameat2(anchors, anchor.c_str(), dir.fd.get(), name.c_str(), RENAME_EXCHANGE) != 0)
    return Error::FromErrno(errno, fmt::format("give {} its content back", name));
  TRY(ApplyMtime(dir, dir.stat.mtime_ns));
  // The last word counts.
  TRY(Append(OutcomeRecord{.seq = replacement.seq, .sys_errno = ECANCELED, .object = kNoObject}));
  ::unlinkat(anchors, anchor.c_str(), 0);
  retained_ -= replacement.retained;
  MutexLock lock(mutex_);
  --touched_[replacement.old_object].anchors;
  return Ok();
}

Result<OpSeq> StepWriter::IntendReplace(const NameAt& at, ObjectId old_object, ObjectId fresh,
                                        AnchorId anchor, AnchorId origin) {
  const OpSeq seq = NextSeq();
  TRY(Append(ReplaceRecord{.seq = seq,
                           .at = at,
                           .old_object = old_object,
                           .fresh_object = fresh,
                           .anchor = anchor,
                           .returned = origin.value != UINT32_MAX,
                           .origin = origin}));
  TRY(MakeDurable());
  return seq;
}

void StepWriter::ReleaseKeep(const Keep& keep, ObjectId object, int dir_fd,
                             const std::string& name) {
  if (keep.kept != Kept::kAnchor) return;
  auto anchors = files_.Anchors();
  if (!anchors.ok()) return;
  if (keep.by_rename) {
    // It was moved away to make room. If the name is taken, the operation did happen.
    if (::renameat2(*anchors, AnchorName(keep.anchor).c_str(), dir_fd, name.c_str(),
                    RENAME_NOREPLACE) != 0)
      return;
  } else {
    ::unlinkat(*anchors, AnchorName(keep.anchor).c_str(), 0);
  }
  retained_ -= keep.retained;
  if (keep.shared) --shared_anchors_;
  MutexLock lock(mutex_);
  --touched_[object].anchors;
}

Status StepWriter::Settle(OpSeq seq, int sys_errno, ObjectId created) {
  if (created != kNoObject && sys_errno == 0) MarkBorn(created);
  ++settled_;
  return Append(OutcomeRecord{.seq = seq, .sys_errno = sys_errno, .object = created});
}

Status StepWriter::MarkUnprotected(std::string_view why) {
  if (unprotected_.exchange(true)) return Ok();
  return Append(UnprotectedRecord{.why = why});
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
  TRY(Append(DropRecord{.object = copy.object, .blob = copy.blob}));
  {
    // Should the step not close after all, the next write has to be kept again.
    MutexLock lock(mutex_);
    touched_[copy.object].whole = false;
  }
  ::unlinkat(blobs, name.c_str(), 0);
  copied_ -= place_.abilities.reflinks ? 0 : copy.size;
  ++place_.stats.provisional_dropped;
  return Ok();
}

Status StepWriter::NoteAfter(ObjectId object, const FileStat& stat) {
  return journal_->Append(AfterRecord{.object = object,
                                      .size = stat.size,
                                      .mtime_ns = stat.mtime_ns,
                                      .ctime_ns = stat.ctime_ns,
                                      .mode = stat.mode,
                                      .uid = stat.uid,
                                      .gid = stat.gid});
}

Status StepWriter::Close(int64_t now_ns, const ChangeCounts& counts) {
  if (closed_) return MakeDurable();
  TRY(Append(CloseRecord{.closed_ns = now_ns,
                         .protection = unprotected_ ? Protection::kUnprotected : Protection::kFull,
                         .counts = counts,
                         .copied_bytes = copied_,
                         .retained_bytes = retained_,
                         .shared_anchors = shared_anchors_}));
  TRY(journal_->Finish());
  closed_ = true;
  return MakeDurable();  // with the cut: a reader looks for the end of a step at the end of the file
}

}  // namespace sandglass::undo
