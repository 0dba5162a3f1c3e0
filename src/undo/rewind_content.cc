// Rewinder: contents, written back into the same inode.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/io.h"
#include "base/rel_path.h"
#include "undo/rewinder.h"

namespace sandglass::undo {
namespace {

constexpr size_t kHoleBytes = 4096;

}  // namespace

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
  auto blobs = in_.files.Blobs();
  if (!blobs.ok()) return false;
  Fd blob(::openat(*blobs, BlobName({static_cast<uint32_t>(r.where)}).c_str(),
                   O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  auto same =
      blob.valid() ? SameBytes(blob.get(), object.fd.get(), r.file_size) : Result<bool>(false);
  return same.ok() && *same;
}

Status Rewinder::WriteContent(const OpenObject& object, const ContentRecord& r, Parent& parent,
                              const std::string& name) {
  if (HoldsAlready(object, r)) return Ok();
  TRY(RecordContentChange(object, r));
  auto fd = OpenForWriting(object, std::string(r.path), parent, name);
  if (!fd.ok() && fd.error().sys_errno() == ETXTBSY && r.whole) {
    TRY(ReplaceBusy(object, r, parent, name));
    fd = OpenForWriting(object, std::string(r.path), parent, name);
  }
  if (!fd.ok()) return fd.error();
  Status filled = r.whole ? FillWhole(fd->get(), r) : FillRange(fd->get(), r);
  if (filled.ok() || filled.error().code() != Code::kCorrupt) return filled;
  AddConflict(ConflictKind::kCorrupt, r.path, filled.error().message());
  return Ok();
}

// A program that is running cannot be written to: it gets a new inode, and the table says so.
Status Rewinder::ReplaceBusy(const OpenObject& object, const ContentRecord& r, Parent& parent,
                             const std::string& name) {
  const NameAt at{parent.object.id, ParentOf(r.path), name};
  if (in_.recorder != nullptr) {
    TRY(TakeAway(at, parent, name, object));
  } else if (::unlinkat(parent.object.fd.get(), name.c_str(), 0) != 0) {
    return Error::FromErrno(errno, fmt::format("replace {}", r.path));
  }
  return MakeAnew({at, object.id, S_IFREG, Kept::kContent, {}, 1, 0, {}}, parent, name);
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
    TRY_ASSIGN(Bytes bytes, in_.files.ReadPack(r.where, r.length));
    if (HashBytes64(bytes) != r.checksum)
      return Error(Code::kCorrupt, "its kept bytes fail their checksum");
    TRY(PWriteFully(fd, bytes, static_cast<off_t>(r.offset)));
  }
  if (::ftruncate(fd, static_cast<off_t>(r.file_size)) != 0)
    return Error::FromErrno(errno, "restore size");
  return Ok();
}

Status Rewinder::FillWhole(int fd, const ContentRecord& r) {
  if (r.keeping == Keeping::kPack) {
    TRY_ASSIGN(Bytes bytes, in_.files.ReadPack(r.where, r.length));
    if (HashBytes64(bytes) != r.checksum)
      return Error(Code::kCorrupt, "its kept bytes fail their checksum");
    if (r.sparse && ::ftruncate(fd, 0) != 0) return Error::FromErrno(errno, "restore size");
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = r.sparse ? std::min(kHoleBytes, bytes.size() - at) : bytes.size();
      ByteView block = ByteView(bytes).subspan(at, size);
      const bool hole =
          r.sparse && std::all_of(block.begin(), block.end(), [](uint8_t b) { return b == 0; });
      if (!hole) TRY(PWriteFully(fd, block, static_cast<off_t>(at)));
      at += size;
    }
  } else {
    TRY_ASSIGN(int blobs, in_.files.Blobs());
    Fd blob(::openat(blobs, BlobName({static_cast<uint32_t>(r.where)}).c_str(),
                     O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!blob.valid())
      return Error(Code::kCorrupt, "what was kept of it is missing from the store");
    if (::ftruncate(fd, 0) != 0) return Error::FromErrno(errno, "restore size");
    if (r.keeping == Keeping::kBlob || ::ioctl(fd, FICLONE, blob.get()) != 0) {
      TRY_ASSIGN(uint64_t checksum, CopySparse(blob.get(), fd, r.file_size));
      if (r.checksum != 0 && checksum != r.checksum)
        return Error(Code::kCorrupt, "its kept bytes fail their checksum");
    }
  }
  if (::ftruncate(fd, static_cast<off_t>(r.file_size)) != 0)
    return Error::FromErrno(errno, "restore size");
  return Ok();
}

}  // namespace sandglass::undo
