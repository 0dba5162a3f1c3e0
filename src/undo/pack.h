// A compressed pack: raw bytes in chunks of fixed size, each one zstd frame, and an index behind them.
//
// Read-only and immutable once renamed into place. One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

namespace sandglass::undo {

inline constexpr uint32_t kPackChunkBytes = 256 << 10;

// The index of a compressed pack; pure parsing of its last bytes.
struct PackIndex {
  uint64_t raw_bytes = 0;
  std::vector<uint64_t> ends;  // where each chunk's frame ends in the file; the first begins at 0

  // `tail` is the whole file's end starting with the index; `frames_end` its offset in the file. kCorrupt.
  static Result<PackIndex> Parse(ByteView tail, uint64_t frames_end);
  Bytes Encode() const;
};

class PackReader {
 public:
  static Result<PackReader> Open(Fd file);
  uint64_t raw_bytes() const { return index_.raw_bytes; }
  // kCorrupt: beyond the end, or a chunk does not decompress.
  Result<Bytes> Read(uint64_t offset, uint64_t length);

 private:
  PackReader() = default;
  Result<const Bytes*> Chunk(size_t index);

  Fd file_;
  PackIndex index_;
  size_t cached_ = SIZE_MAX;
  Bytes chunk_;
};

// Compresses everything in `raw` into `out`.
Status WriteCompressedPack(int raw, uint64_t raw_bytes, int out);

}  // namespace sandglass::undo
