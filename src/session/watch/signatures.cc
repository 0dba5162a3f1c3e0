#include "session/watch/signatures.h"

#include <fcntl.h>

#include "base/io.h"
#include "undo/place.h"

namespace sandglass::session {
namespace {

constexpr const char* kTable = "objects";
constexpr size_t kPieceBytes = 4'096 * undo::kObjectEntryBytes;

}  // namespace

// The table is appended to, and now and then another one takes its place.
Status Signatures::CatchUp(int store_fd) {
  const auto stat = undo::LookAt(store_fd, kTable);
  if (!stat) return Ok();
  if (!file_ || stat->ino != inode_ || stat->size < end_) {
    TRY_ASSIGN(file_, undo::OpenStoreFile(store_fd, kTable, O_RDONLY));
    TRY_ASSIGN(const undo::FileStat opened, undo::StatFd(file_.get()));
    inode_ = opened.ino;
    end_ = 0;
    content_ = {};
  }
  Bytes piece(kPieceBytes);
  while (true) {
    TRY_ASSIGN(const size_t got, PReadFully(file_.get(), piece, static_cast<off_t>(end_)));
    const size_t whole = got - got % undo::kObjectEntryBytes;
    undo::AddObjects(ByteView(piece).first(whole), content_);
    end_ += whole;
    if (got < piece.size()) return Ok();
  }
}

std::optional<undo::Signature> Signatures::Find(undo::ObjectId object) const {
  const auto found = content_.signatures.find(object);
  return found == content_.signatures.end() ? std::nullopt : std::optional(found->second);
}

std::optional<uint64_t> Signatures::FindAttributes(undo::ObjectId object) const {
  const auto found = content_.attributes.find(object);
  return found == content_.attributes.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace sandglass::session
