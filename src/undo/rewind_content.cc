// Rewinder: contents, written back into the same inode.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/io.h"
#include "base/rel_path.h"
#include "undo/rewinder.h"
#include "undo/running.h"

namespace sandglass::undo {

Status Rewinder::Undo(const ContentRecord& r) {
  if (in_.view.IsDropped(r)) return Ok();
  Parent* parent = nullptr;
  TRY_ASSIGN(auto object, Recorded(r.path, r.object, &parent));
  if (!object) return Ok();
  notes_[r.path];
  return WriteContent(*object, r, *parent, std::string(BaseName(r.path)));
}

Status Rewinder::RecordContentChange(const OpenObject& object, const ContentRecord& r) {
  if (in_.recorder == nullptr) return Ok();
  if (r.whole) {
    return in_.recorder->TouchContent(object, r.path, ContentChange::TruncateTo(0),
                                      WriteVisibility::kUnseen);
  }
  if (object.stat.size > r.file_size) {
    TRY(in_.recorder->TouchContent(object, r.path, ContentChange::TruncateTo(r.file_size),
                                   WriteVisibility::kAnnounced));
  }
  return in_.recorder->TouchContent(object, r.path, ContentChange::Range(r.offset, r.length),
                                    WriteVisibility::kAnnounced);
}

// What was copied only to be safe is often as it was: then there is nothing to write, and nothing to record.
bool Rewinder::HoldsAlready(const OpenObject& object, const ContentRecord& r) {
  if (!object.readable || object.stat.size != r.file_size) return false;
  if (r.keeping == Keeping::kPack) {
    if (r.length == 0) return true;
    if (r.length > r.file_size) return false;  // no record of ours
    Bytes now(r.length);
    auto got = PReadFully(object.fd.get(), now, static_cast<off_t>(r.offset));
    return got.ok() && *got == r.length && HashBytes64(now) == r.checksum;
  }
  const auto blob = in_.files.OpenBlob({static_cast<uint32_t>(r.where)});
  if (!blob.ok()) return false;
  auto same = SameBytes(blob->get(), object.fd.get(), r.file_size);
  return same.ok() && *same;
}

Status Rewinder::WriteContent(const OpenObject& object, const ContentRecord& r, Parent& parent,
                              const std::string& name) {
  if (HoldsAlready(object, r)) return Ok();
  TRY(RecordContentChange(object, r));
  const std::string path(r.path);
  auto fd = OpenForWriting(object, path, parent, name);
  if (!fd.ok() && fd.error().sys_errno() == ETXTBSY) {
    TRY_ASSIGN(const auto fresh, ReplaceRunning(object, path));
    if (!fresh) return Ok();
    TRY(RecordContentChange(*fresh, r));
    fd = OpenForWriting(*fresh, path, parent, name);
  }
  if (!fd.ok()) return fd.error();
  Status filled = r.whole ? FillWhole(fd->get(), r) : FillRange(fd->get(), r);
  if (filled.ok() || filled.error().code() != Code::kCorrupt) return filled;
  AddConflict(ConflictKind::kCorrupt, r.path, filled.error().message());
  return Ok();
}

// The fresh inode is a copy, so that nothing but the identity has changed until content is written to it: killed before the table knows
// the successor, the replace records lead back; killed later, the copy is the object. For the same reason taking this rewind back
// leaves the copy where it is.
Result<std::optional<OpenObject>> Rewinder::ReplaceRunning(const OpenObject& object,
                                                           const std::string& path) {
  using Nothing = std::optional<OpenObject>;
  if (in_.recorder == nullptr) {
    return Error(Code::kBusy,
                 fmt::format("{} is a running program, and an interrupted undo has to write to it; "
                             "end it and try again",
                             path));
  }
  std::string why = "is a running program";
  const NamesInProject names = NamesOf(place_, object.id, object.stat, path);
  if (!names.all) why += " with names that are not in the project";
  const bool exact = place_.abilities.exchange && names.all;
  if (!exact && in_.force == Force::kNo)
    return Error(Code::kBusy, fmt::format("{} {}", path, why), ETXTBSY);
  const auto leave = [&](const std::string& reason) {
    AddConflict(ConflictKind::kBusy, path, reason + "; its content was left as it is");
    return Nothing();
  };
  if (!place_.abilities.exchange) return leave(why);
  auto fresh = PrepareFresh(object, path, names.paths.size());
  if (!fresh.ok() && fresh.error().code() == Code::kDenied && in_.force == Force::kYes)
    return leave(fmt::format("{} ({})", why, fresh.error().message()));
  if (!fresh.ok()) return fresh.error();
  if (!names.all)
    report_.warnings.push_back(fmt::format("{} {}: those keep its content", path, why));
  std::vector<OpSeq> exchanges;
  for (size_t i = 0; i < names.paths.size(); ++i) {
    TRY_ASSIGN(exchanges.emplace_back(),
               ExchangeFor(fresh->object, fresh->slots[i], object, names.paths[i]));
  }
  if (in_.recorder->durability() == Durability::kPower && ::syncfs(place_.root.get()) != 0)
    return Error::FromErrno(errno, "sync the file system");
  in_.objects.Succeed(object.id, fresh->object.id);
  TRY(in_.objects.Flush());
  for (const OpSeq seq : exchanges) TRY(in_.recorder->Settle(seq, 0));
  links_.Add(fresh->object.id, path);
  return Nothing(std::move(fresh->object));
}

// The copy comes first: if it cannot be made, nothing is going to be kept.
Result<Rewinder::FreshInode> Rewinder::PrepareFresh(const OpenObject& object,
                                                    const std::string& path, size_t names) {
  StepFiles& files = in_.recorder->files();
  TRY_ASSIGN(const int anchors, files.Anchors());
  TRY_ASSIGN(const AnchorId made, files.NewAnchor());
  TRY_ASSIGN(OpenObject copy, CopyOf(object, made));
  std::vector<AnchorId> slots;
  while (slots.size() < names) {
    TRY_ASSIGN(const AnchorId slot, SlotFor(object, path));
    const AnchorName name(slot);
    const int done =
        slots.empty()
            ? ::renameat(anchors, AnchorName(made).c_str(), anchors, name.c_str())
            : ::linkat(anchors, AnchorName(slots.front()).c_str(), anchors, name.c_str(), 0);
    if (done != 0) return Error::FromErrno(errno, fmt::format("replace {}", path));
    slots.push_back(slot);
  }
  return FreshInode{std::move(copy), std::move(slots)};
}

// In the recorder's folder, from where one rename puts it into the project.
Result<OpenObject> Rewinder::CopyOf(const OpenObject& object, AnchorId slot) {
  TRY_ASSIGN(Metadata meta, CaptureMetadata(object));
  meta.flags &= ~kBlockingFlags;  // they come last, with the rest of what is put back
  TRY_ASSIGN(const int anchors, in_.recorder->files().Anchors());
  const Fd from(::open(ProcPath(object.fd.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!from.valid()) return Error::FromErrno(errno, "read a running program");
  {
    TRY_ASSIGN(const Fd to,
               OpenStoreFile(anchors, AnchorName(slot).c_str(), O_RDWR | O_CREAT | O_EXCL));
    TRY(CloneOrCopy(place_, from.get(), to.get(), object.stat.size));
  }
  TRY_ASSIGN(OpenObject copy, OpenObjectAt(place_.identifier, anchors, AnchorName(slot).c_str()));
  TRY(ApplyMetadata(copy, meta));
  TRY_ASSIGN(copy.stat, StatFd(copy.fd.get()));
  return copy;
}

Result<OpSeq> Rewinder::ExchangeFor(const OpenObject& fresh, AnchorId slot,
                                    const OpenObject& object, const std::string& path) {
  TRY_ASSIGN(Parent * parent, OpenParent(ParentOf(path), kNoObject, 1));
  TRY_ASSIGN(const FileStat dir, StatFd(parent->object.fd.get()));
  TRY_ASSIGN(const int anchors, in_.recorder->files().Anchors());
  const std::string name(BaseName(path));
  TRY_ASSIGN(OpSeq seq,
             in_.recorder->IntendReplace({parent->object.id, ParentOf(path), name}, object.id,
                                         fresh.id, slot, AnchorId{UINT32_MAX}));
  const int err = Attempt(*parent, &object, [&] {
    return ::renameat2(anchors, AnchorName(slot).c_str(), parent->object.fd.get(), name.c_str(),
                       RENAME_EXCHANGE);
  });
  if (err != 0) return Error::FromErrno(err, fmt::format("replace {}", path));
  // Writing to a file leaves its folder alone.
  TRY(ApplyMtime(parent->object, dir.mtime_ns));
  notes_[path].object = fresh.id;
  return seq;
}

Result<Fd> Rewinder::OpenForWriting(const OpenObject& object, const std::string& path,
                                    Parent& parent, const std::string& name) {
  Fd fd;
  const auto open_it = [&] {
    fd = Fd(::openat(parent.object.fd.get(), name.c_str(),
                     O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    return fd.valid() ? 0 : -1;
  };
  // The mode bits of the file itself first: they are about to be put back anyway.
  constexpr uint32_t kReadWrite = S_IRUSR | S_IWUSR;
  if (open_it() != 0 && errno == EACCES && (object.stat.mode & kReadWrite) != kReadWrite)
    ::chmod(ProcPath(object.fd.get()).c_str(), (object.stat.mode & 07777) | kReadWrite);
  const int err = fd.valid() ? 0 : Attempt(parent, &object, open_it);
  if (err == 0) return fd;
  return Error::FromErrno(err, fmt::format("restore the content of {}", path));
}

Status Rewinder::FillRange(int fd, const ContentRecord& r) {
  if (r.length > 0) {
    TRY_ASSIGN(const Bytes bytes, in_.files.ReadKept(r));
    TRY(PWriteFully(fd, bytes, static_cast<off_t>(r.offset)));
  }
  if (::ftruncate(fd, static_cast<off_t>(r.file_size)) != 0)
    return Error::FromErrno(errno, "restore size");
  return Ok();
}

Status Rewinder::FillWhole(int fd, const ContentRecord& r) {
  TRY(r.keeping == Keeping::kPack ? FillFromPack(fd, r) : FillFromBlob(fd, r));
  if (::ftruncate(fd, static_cast<off_t>(r.file_size)) != 0)
    return Error::FromErrno(errno, "restore size");
  return Ok();
}

Status Rewinder::FillFromPack(int fd, const ContentRecord& r) {
  TRY_ASSIGN(const Bytes bytes, in_.files.ReadKept(r));
  if (!r.sparse) return PWriteFully(fd, bytes, 0);
  if (::ftruncate(fd, 0) != 0) return Error::FromErrno(errno, "restore size");
  return WriteOverZeros(fd, 0, bytes);
}

// All of the blob is checked before the first byte of the file goes: a damaged copy is no reason to lose what is there.
Status Rewinder::FillFromBlob(int fd, const ContentRecord& r) {
  TRY_ASSIGN(const Fd blob, in_.files.OpenKept(r));
  if (::ftruncate(fd, 0) != 0) return Error::FromErrno(errno, "restore size");
  if (r.keeping == Keeping::kClone && ::ioctl(fd, FICLONE, blob.get()) == 0) return Ok();
  TRY(CopySparse(blob.get(), fd, r.file_size));
  return Ok();
}

}  // namespace sandglass::undo
