// PastContent: the bytes that a file had at some moment, put together from where they are now: one file that still has most of them
// (the object itself, an anchor, a blob), and over it the pieces that steps kept in their packs.
//
// It holds descriptors and places, not bytes, so a file of any size takes next to no memory. It reads packs of the PastReader that made
// it, which must outlive it. Movable handle; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "undo/object.h"
#include "undo/record.h"
#include "undo/step_files.h"

namespace sandglass::undo {

class PastContent {
 public:
  // Of no bytes.
  PastContent() = default;
  // What the readable `file` holds now.
  static PastContent Of(OpenObject file);

  // Turns it back by one preimage. kCorrupt: what was kept is missing or damaged.
  Status TurnBack(const ContentRecord& record, StepFiles& files);

  uint64_t size() const { return size_; }
  // The first so many bytes are, but for the pieces, those that `object` itself holds now: 0 if it has none of them.
  uint64_t BytesOf(ObjectId object) const { return base_.id == object ? base_end_ : 0; }
  // Calls `each(offset, bytes)` for the pieces that steps kept, in order; they do not overlap.
  Status ForEachPiece(const std::function<Status(uint64_t, ByteView)>& each) const;

  // Into the empty file `fd`, holes as holes.
  Status WriteTo(int fd) const;
  // kLimit: more than `max_bytes`. kBusy: somebody was writing to the file meanwhile.
  Result<std::string> Text(uint64_t max_bytes) const;
  // Does the readable `file` hold the same?
  Result<bool> IsIn(const OpenObject& file) const;

 private:
  struct Piece {
    StepFiles* files;
    uint64_t where;  // in their pack
    uint64_t length;
  };

  Status TurnBackByPack(const ContentRecord& record, StepFiles& files);
  Status TurnBackByBlob(const ContentRecord& record, StepFiles& files);
  // No piece lies on both sides of `at` any more.
  void Split(uint64_t at);
  void Resize(uint64_t size);
  void Cover(uint64_t offset, const Piece& piece);
  // Bytes from `offset` on, all of them within the content.
  Status Read(uint64_t offset, std::span<uint8_t> out) const;

  OpenObject base_;
  uint64_t base_end_ = 0;             // how much of it counts; behind that are zeros
  std::map<uint64_t, Piece> pieces_;  // by offset
  uint64_t size_ = 0;
};

}  // namespace sandglass::undo
