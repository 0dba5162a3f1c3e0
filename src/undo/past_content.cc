#include "undo/past_content.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/hash.h"
#include "base/io.h"
#include "undo/journal_view.h"
#include "undo/verify.h"

namespace sandglass::undo {
namespace {

constexpr size_t kBlock = 64 << 10;
Result<bool> Holds(int fd, uint64_t offset, ByteView bytes) {
  Bytes now(bytes.size());
  TRY_ASSIGN(const size_t got, PReadFully(fd, now, static_cast<off_t>(offset)));
  return got == bytes.size() && std::equal(bytes.begin(), bytes.end(), now.begin());
}

}  // namespace

PastContent PastContent::Of(OpenObject file) {
  PastContent content;
  content.size_ = content.base_end_ = file.stat.size;
  content.base_ = std::move(file);
  return content;
}

Status PastContent::TurnBack(const ContentRecord& record, StepFiles& files) {
  return record.keeping == Keeping::kPack ? TurnBackByPack(record, files)
                                          : TurnBackByBlob(record, files);
}

Status PastContent::TurnBackByPack(const ContentRecord& r, StepFiles& files) {
  // By subtraction, because a sum of forged numbers can wrap.
  if (r.length != 0 && (r.offset > r.file_size || r.length > r.file_size - r.offset))
    return Error(Code::kCorrupt, "its kept bytes do not fit");
  if (r.whole) *this = PastContent();
  Resize(r.file_size);
  if (r.length == 0) return Ok();
  TRY(files.ReadKept(r));
  Cover(r.offset, {&files, r.where, r.length});
  return Ok();
}

Status PastContent::TurnBackByBlob(const ContentRecord& r, StepFiles& files) {
  TRY_ASSIGN(Fd blob, files.OpenKept(r));
  TRY_ASSIGN(const FileStat stat, StatFd(blob.get()));
  *this = Of({.fd = std::move(blob), .id = kNoObject, .stat = stat, .readable = true});
  return Ok();
}

void PastContent::Split(uint64_t at) {
  const auto next = pieces_.lower_bound(at);
  if (next == pieces_.begin()) return;
  auto& [offset, piece] = *std::prev(next);
  if (offset + piece.length <= at) return;
  const uint64_t first = at - offset;
  pieces_.emplace_hint(next, at, Piece{piece.files, piece.where + first, piece.length - first});
  piece.length = first;
}

void PastContent::Resize(uint64_t size) {
  Split(size);
  pieces_.erase(pieces_.lower_bound(size), pieces_.end());
  base_end_ = std::min(base_end_, size);
  if (base_end_ == 0) base_ = {};
  size_ = size;
}

void PastContent::Cover(uint64_t offset, const Piece& piece) {
  const uint64_t end = offset + piece.length;
  Split(offset);
  Split(end);
  pieces_.erase(pieces_.lower_bound(offset), pieces_.lower_bound(end));
  pieces_.emplace(offset, piece);
}

Status PastContent::ForEachPiece(const std::function<Status(uint64_t, ByteView)>& each) const {
  for (const auto& [offset, piece] : pieces_) {
    TRY_ASSIGN(const Bytes bytes, piece.files->ReadPack(piece.where, piece.length));
    TRY(each(offset, bytes));
  }
  return Ok();
}

Status PastContent::WriteTo(int fd) const {
  if (base_end_ > 0) TRY(CopySparse(base_.fd.get(), fd, base_end_));
  if (::ftruncate(fd, static_cast<off_t>(size_)) != 0)
    return Error::FromErrno(errno, "set the size of a restored file");
  return ForEachPiece([&](uint64_t offset, ByteView bytes) -> Status {
    if (offset >= base_end_) return WriteOverZeros(fd, offset, bytes);
    return PWriteFully(fd, bytes, static_cast<off_t>(offset));
  });
}

Status PastContent::Read(uint64_t offset, std::span<uint8_t> out) const {
  std::fill(out.begin(), out.end(), uint8_t{0});
  const uint64_t end = offset + out.size();
  if (offset < base_end_) {
    const size_t want = std::min(end, base_end_) - offset;
    TRY(PReadFully(base_.fd.get(), out.first(want), static_cast<off_t>(offset)));
  }
  auto at = pieces_.upper_bound(offset);
  if (at != pieces_.begin()) --at;
  for (; at != pieces_.end() && at->first < end; ++at) {
    const auto& [begin, piece] = *at;
    const uint64_t from = std::max(begin, offset), to = std::min(begin + piece.length, end);
    if (from >= to) continue;
    TRY_ASSIGN(const Bytes bytes, piece.files->ReadPack(piece.where + (from - begin), to - from));
    std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<ptrdiff_t>(from - offset));
  }
  return Ok();
}

Result<std::string> PastContent::Text(uint64_t max_bytes) const {
  if (size_ > max_bytes) return Error(Code::kLimit, "too large");
  std::string text(size_, '\0');
  TRY(Read(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));
  if (!base_.fd.valid()) return text;
  TRY_ASSIGN(const FileStat now, StatFd(base_.fd.get()));
  if (now.mtime_ns == base_.stat.mtime_ns && now.size == base_.stat.size) return text;
  return Error(Code::kBusy, "it is being written to");
}

Result<bool> PastContent::IsIn(const OpenObject& file) const {
  if (file.stat.size != size_) return false;
  bool same = true;
  if (BytesOf(file.id) == size_) {  // the pieces alone can differ
    TRY(ForEachPiece([&](uint64_t offset, ByteView bytes) -> Status {
      if (!same) return Ok();
      TRY_ASSIGN(same, Holds(file.fd.get(), offset, bytes));
      return Ok();
    }));
    return same;
  }
  if (pieces_.empty() && base_end_ == size_) return SameBytes(base_.fd.get(), file.fd.get(), size_);
  Bytes block(kBlock);
  for (uint64_t at = 0; same && at < size_; at += kBlock) {
    const auto part = std::span(block).first(std::min<uint64_t>(kBlock, size_ - at));
    TRY(Read(at, part));
    TRY_ASSIGN(same, Holds(file.fd.get(), at, part));
  }
  return same;
}

}  // namespace sandglass::undo
