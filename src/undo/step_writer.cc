#include "undo/step_writer.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/io.h"

namespace sandglass::undo {

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

const StepWriter::Touch* StepWriter::FindTouched(ObjectId object) const {
  const auto found = touched_.find(object);
  const bool touched = found != touched_.end() && (found->second.born || found->second.meta);
  return touched ? &found->second : nullptr;
}

bool StepWriter::HasTouched(ObjectId object) const {
  MutexLock lock(mutex_);
  return FindTouched(object) != nullptr;
}

bool StepWriter::HasFolder(ObjectId folder) const {
  MutexLock lock(mutex_);
  const Touch* touch = FindTouched(folder);
  return touch != nullptr && !touch->gone;
}

void StepWriter::NoteGone(ObjectId folder) {
  MutexLock lock(mutex_);
  touched_[folder].gone = true;
}

uint32_t StepWriter::AnchorCount(ObjectId object) const {
  MutexLock lock(mutex_);
  auto found = touched_.find(object);
  return found == touched_.end() ? 0 : found->second.anchors;
}

bool StepWriter::Knows(ObjectId object) const {
  MutexLock lock(mutex_);
  auto found = touched_.find(object);
  return found != touched_.end() && (found->second.born || found->second.named);
}

void StepWriter::NoteCarried(ObjectId folder, std::string from) {
  MutexLock lock(mutex_);
  carried_.try_emplace(folder, std::move(from));
  carries_ = true;
}

std::optional<std::string> StepWriter::CarriedFrom(ObjectId folder) const {
  MutexLock lock(mutex_);
  auto found = carried_.find(folder);
  if (found == carried_.end()) return std::nullopt;
  return found->second;
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
  Touch& touch = touched_[object];
  touch.born = true;
  has_births_ = true;
  touch.gone = false;  // where identities are inode numbers, it may be another one's
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
  }
  if (mark) {
    TRY(Append(MarkRecord{.object = object.id, .path = path}));
    NoteMeta(object.id, reason, false);
    return Ok();
  }
  if (known) return Ok();
#ifdef SANDGLASS_MUTANT_skip_parent_times
  if (reason == TouchReason::kNames) return Ok();
#endif
  if (options_.shadows != nullptr) {
    // Unseen writes may have moved size and time since the step began: the shadow knows what they were.
    if (auto shadow = options_.shadows->Claim(object.id)) {
      TRY(AdoptShadow(object.id, path, std::move(*shadow)));
      NoteMeta(object.id, TouchReason::kDirect, false);
      return Ok();
    }
  }
  // Reading its xattrs may take the right to read it for a moment, so its mode is on record first.
  if (!names_only && !named && object.stat.IsRegular() && !object.readable && !object.stat.locked) {
    TRY(TouchMeta(object, path, TouchReason::kNames));
    TRY(MakeDurable());
    if (HasTouched(object.id)) return Ok();
    named = true;
  }
  // A rewind goes on: it must be able to take back what set such a time.
  if (!names_only && !object.stat.HasTellableMtime() && header_.reverses_uid == 0)
    return Error(Code::kNotRestorable,
                 fmt::format("{} has a modification time that undo could not restore", path));
  TRY(CheckJournal());
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

Status StepWriter::CheckJournal() const {
  if (journal_->bytes() <= options_.max_journal_bytes) return Ok();
  return Error(
      Code::kLimit,
      fmt::format("the step has more on record than all steps may keep for undo ({} bytes)",
                  options_.max_journal_bytes));
}

Status StepWriter::Intend(OpSeq seq, const Record& record) {
  TRY(CheckJournal());
  TRY(Append(record));
  Status durable = MakeDurable();
  if (!durable.ok()) (void)Settle(seq, ECANCELED);  // nobody is going to do it
  return durable;
}

Result<OpSeq> StepWriter::IntendCreate(const NameAt& at, Birth birth, uint32_t mode,
                                       ObjectId object, AnchorId origin) {
  const OpSeq seq = NextSeq();
  TRY(Intend(seq, CreateRecord{.seq = seq,
                               .at = at,
                               .birth = birth,
                               .mode = mode & S_IFMT,
                               .object = object,
                               .origin = origin}));
  return seq;
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
  TRY(Intend(seq, record));
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
#else
  (void)target;
#endif
  TRY(Intend(seq, record));
  return seq;
}

Result<OpSeq> StepWriter::IntendReplace(const NameAt& at, ObjectId old_object, ObjectId fresh,
                                        AnchorId anchor, AnchorId origin) {
  const OpSeq seq = NextSeq();
  TRY(Intend(seq, ReplaceRecord{.seq = seq,
                                .at = at,
                                .old_object = old_object,
                                .fresh_object = fresh,
                                .anchor = anchor,
                                .returned = origin.value != UINT32_MAX,
                                .origin = origin}));
  return seq;
}

Status StepWriter::Settle(OpSeq seq, int sys_errno, ObjectId created) {
  if (created != kNoObject && sys_errno == 0) MarkBorn(created);
  TRY(Append(OutcomeRecord{.seq = seq, .sys_errno = sys_errno, .object = created}));
  ++settled_;  // an outcome that is not on record is judged when the step closes
  return Ok();
}

Status StepWriter::MarkUnprotected(std::string_view why) {
  if (unprotected_) return Ok();
  // First the record: without it the step would pass for one that can be taken back, and nothing more be kept for it. Two of them, by
  // two threads, say the same.
  TRY(Append(UnprotectedRecord{.why = why}));
  unprotected_ = true;
  return Ok();
}

Status StepWriter::NoteAfter(ObjectId object, const FileStat& stat) {
  return journal_->Append(AfterRecord::Of(object, stat));
}

void StepWriter::NoteLostName(ObjectId object, const FileStat& stat) {
  MutexLock lock(mutex_);
  lost_names_.insert_or_assign(object, stat);
}

std::unordered_map<ObjectId, FileStat> StepWriter::LostNames() const {
  MutexLock lock(mutex_);
  return lost_names_;
}

Status StepWriter::Close(int64_t now_ns, const ChangeCounts& counts) {
  if (closed_) return MakeDurable();
  TRY(Append(CloseRecord{.closed_ns = now_ns,
                         .protection = unprotected_ ? Protection::kUnprotected : Protection::kFull,
                         .counts = counts,
                         .copied_bytes = copied_,
                         .retained_bytes = retained_bytes(),
                         .shared_anchors = shared_anchors_}));
  TRY(journal_->Finish());
  closed_ = true;
  return MakeDurable();  // with the cut: a reader looks for the end of a step at the end of the file
}

}  // namespace sandglass::undo
