// StepWriter's anchors: an object that loses a name is kept as itself where that is possible.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/rel_path.h"
#include "undo/step_writer.h"

namespace sandglass::undo {
namespace {

// kNotRestorable: it has something that only root could give to its successor.
Status CheckCanBeMadeAnew(const OpenObject& object, std::string_view path) {
  if (::geteuid() == 0) return Ok();
  Metadata meta = MetadataOf(object.stat);
  TRY_ASSIGN(meta.xattrs, ListXattrs(object));
  std::string why;
  if (CanRestore(meta, &why)) return Ok();
  return Error(Code::kNotRestorable,
               fmt::format("{} could not be made anew as it was: {}", path, why));
}

// May this process set the times of such an object to something else than now?
bool MaySetTimes(const FileStat& stat) { return ::geteuid() == 0 || stat.uid == ::geteuid(); }

}  // namespace

Result<Keep> StepWriter::KeepObject(const OpenObject& object, int dir_fd, const char* name,
                                    std::string_view path, KeepBy by) {
  if (IsBorn(object.id)) return Keep{};
  if (object.stat.IsDirectory()) {
    TRY(TouchMeta(object, path, TouchReason::kNames));
    TRY(CheckCanBeMadeAnew(object, path));
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
    files_.NoteAnchored(slot);
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
  TRY(CheckCanBeMadeAnew(object, path));
  ++place_.stats.anchor_copy;
  TRY(TouchMeta(object, path, TouchReason::kContent));  // also of what has no content
  return TouchContent(object, path, ContentChange::TruncateTo(0), WriteVisibility::kUnseen);
}

void StepWriter::ReleaseKeep(const Keep& keep, ObjectId object, int dir_fd,
                             const std::string& name) {
  if (keep.kept != Kept::kAnchor) return;
  auto anchors = files_.Anchors();
  if (!anchors.ok()) return;
  if (keep.by_rename) {
    // It was moved away to make room, or did not get that far. If the name is taken, the operation did happen.
    const AnchorName anchor(keep.anchor);
    if (::renameat2(*anchors, anchor.c_str(), dir_fd, name.c_str(), RENAME_NOREPLACE) != 0 &&
        NameExists(*anchors, anchor.c_str()))
      return;
  } else {
    ::unlinkat(*anchors, AnchorName(keep.anchor).c_str(), 0);
  }
  retained_ -= keep.retained;
  if (keep.shared) --shared_anchors_;
  MutexLock lock(mutex_);
  --touched_[object].anchors;
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
  if (!MaySetTimes(dir.stat)) return Nothing();  // the exchange would show in the folder
  const std::string path = JoinPath(at.dir, at.name);
  TRY(TouchMeta(object, path, TouchReason::kNames));
  if (IsWhole(object.id)) return Nothing();  // a shadow was adopted: there are writers
  TRY_ASSIGN(Metadata meta, CaptureMetadata(object));
  std::string why;
  if (!CanRestore(meta, &why) || LosesCapabilities(meta.xattrs) ||
      !TakeLease(object, LeaseKind::kAlone))
    return Nothing();
  TRY(TouchMeta(dir, at.dir, TouchReason::kNames));
  TRY_ASSIGN(AnchorId slot, files_.NewAnchor());
  auto replaced = ReplaceBy(slot, meta, object, dir, at);
  // Without a replacement the slot holds at most the fresh inode, unless the old one could not get its name back.
  if (auto anchors = files_.Anchors(); anchors.ok() && (!replaced.ok() || !*replaced)) {
    const AnchorName name(slot);
    const auto there = place_.identifier.OfName(*anchors, name.c_str());
    if (there.ok() && *there != object.id) ::unlinkat(*anchors, name.c_str(), 0);
  }
  return replaced;
}

Result<std::optional<StepWriter::Replacement>> StepWriter::ReplaceBy(AnchorId slot,
                                                                     const Metadata& meta,
                                                                     const OpenObject& object,
                                                                     const OpenObject& dir,
                                                                     const NameAt& at) {
  using Nothing = std::optional<Replacement>;
  TRY_ASSIGN(OpenObject fresh, MakeFreshInode(slot, meta));
  TRY_ASSIGN(OpSeq seq, IntendReplace(at, object.id, fresh.id, slot, AnchorId{UINT32_MAX}));
  TRY_ASSIGN(int anchors, files_.Anchors());
  const AnchorName anchor(slot);
  const std::string name(at.name);
  const auto exchange = [&] {
    return ::renameat2(anchors, anchor.c_str(), dir.fd.get(), name.c_str(), RENAME_EXCHANGE) == 0;
  };
  if (!exchange()) {
    TRY(Settle(seq, errno));
    return Nothing();
  }
  // A truncation leaves its folder alone; our exchange of names must not show there either.
  Status done = ApplyMtime(dir, dir.stat.mtime_ns);
  if (done.ok()) done = Settle(seq, 0);
  if (!done.ok() && exchange()) {
    (void)ApplyMtime(dir, dir.stat.mtime_ns);
    (void)Settle(seq, ECANCELED);  // without an outcome, the name decides when the step closes
    return done.error();
  }
  MarkBorn(fresh.id);
  {
    MutexLock lock(mutex_);
    ++touched_[object.id].anchors;
  }
  const uint64_t retained = object.stat.blocks * 512;
  retained_ += retained;
  ++place_.stats.inode_move;
  TRY(done);  // it stays exchanged: undo gives the content back
  return Nothing(Replacement{seq, slot, object.id, fresh.id, retained, std::move(fresh.fd)});
}

Result<OpenObject> StepWriter::MakeFreshInode(AnchorId slot, const Metadata& meta) {
  TRY_ASSIGN(int anchors, files_.Anchors());
  const AnchorName name(slot);
  TRY_ASSIGN(const Fd made, OpenStoreFile(anchors, name.c_str(), O_RDWR | O_CREAT | O_EXCL));
  files_.NoteAnchored(slot);
  TRY_ASSIGN(OpenObject fresh, OpenObjectAt(place_.identifier, anchors, name.c_str()));
  TRY(ApplyMetadata(fresh, meta));
  return fresh;
}

Status StepWriter::TakeBackReplacement(const Replacement& replacement, const OpenObject& dir,
                                       const std::string& name) {
  TRY_ASSIGN(int anchors, files_.Anchors());
  const AnchorName anchor(replacement.anchor);
  TRY_ASSIGN(ObjectId now, place_.identifier.OfName(dir.fd.get(), name.c_str()));
  if (now != replacement.fresh) return Ok();  // somebody gave the name away: the journal knows
  if (::renameat2(anchors, anchor.c_str(), dir.fd.get(), name.c_str(), RENAME_EXCHANGE) != 0)
    return Error::FromErrno(errno, fmt::format("give {} its content back", name));
  const Status dated = ApplyMtime(dir, dir.stat.mtime_ns);
  // The last word counts.
  TRY(Append(OutcomeRecord{.seq = replacement.seq, .sys_errno = ECANCELED, .object = kNoObject}));
  ::unlinkat(anchors, anchor.c_str(), 0);
  retained_ -= replacement.retained;
  MutexLock lock(mutex_);
  --touched_[replacement.old_object].anchors;
  return dated;
}

}  // namespace sandglass::undo
