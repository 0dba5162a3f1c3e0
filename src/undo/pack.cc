#include "undo/pack.h"

#include <sys/stat.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/hash.h"
#include "base/io.h"

namespace sandglass::undo {
namespace {

constexpr int kLevel = 3;
constexpr char kMagic[8] = {'S', 'G', 'P', 'A', 'C', 'K', 'Z', '\n'};

// The last bytes of the file. The index stands before it: `chunks` ends of 8 bytes each.
struct Trailer {
  uint64_t raw_bytes;
  uint64_t chunks;
  uint64_t checksum;  // of the ends
  char magic[8];
};

// Not by rounding up first: a damaged size near the largest number would wrap to no chunks at all.
uint64_t ChunkCount(uint64_t raw_bytes) {
  return raw_bytes / kPackChunkBytes + (raw_bytes % kPackChunkBytes != 0 ? 1 : 0);
}

}  // namespace

Result<PackIndex> PackIndex::Parse(ByteView tail, uint64_t frames_end) {
  if (tail.size() < sizeof(Trailer)) return Error(Code::kCorrupt, "compressed pack is too short");
  TRY_ASSIGN(Trailer trailer, ByteCursor(tail.last(sizeof(Trailer))).Take<Trailer>());
  ByteView ends = tail.first(tail.size() - sizeof(Trailer));
  if (std::memcmp(trailer.magic, kMagic, sizeof(kMagic)) != 0 ||
      ends.size() % sizeof(uint64_t) != 0 || ends.size() / sizeof(uint64_t) != trailer.chunks ||
      HashBytes64(ends) != trailer.checksum || trailer.chunks != ChunkCount(trailer.raw_bytes)) {
    return Error(Code::kCorrupt, "compressed pack has a damaged index");
  }
  PackIndex index{.raw_bytes = trailer.raw_bytes, .ends = std::vector<uint64_t>(trailer.chunks)};
  if (!ends.empty()) std::memcpy(index.ends.data(), ends.data(), ends.size());
  if (!std::is_sorted(index.ends.begin(), index.ends.end()) ||
      (!index.ends.empty() && index.ends.back() != frames_end)) {
    return Error(Code::kCorrupt, "compressed pack has a damaged index");
  }
  return index;
}

Bytes PackIndex::Encode() const {
  ByteWriter out;
  ByteView raw_ends{reinterpret_cast<const uint8_t*>(ends.data()), ends.size() * sizeof(uint64_t)};
  out.PutBytes(raw_ends);
  Trailer trailer{.raw_bytes = raw_bytes,
                  .chunks = ends.size(),
                  .checksum = HashBytes64(raw_ends),
                  .magic = {}};
  std::memcpy(trailer.magic, kMagic, sizeof(kMagic));
  out.Put(trailer);
  return out.bytes();
}

Result<PackReader> PackReader::Open(Fd file) {
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return Error::FromErrno(errno, "stat pack");
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  if (size < sizeof(Trailer)) return Error(Code::kCorrupt, "compressed pack is too short");
  Bytes last(sizeof(Trailer));
  TRY(PReadFully(file.get(), last, static_cast<off_t>(size - sizeof(Trailer))));
  TRY_ASSIGN(Trailer trailer, ByteCursor(last).Take<Trailer>());
  if (trailer.chunks > (size - sizeof(Trailer)) / sizeof(uint64_t)) {
    return Error(Code::kCorrupt, "compressed pack has a damaged index");
  }
  Bytes tail(trailer.chunks * sizeof(uint64_t) + sizeof(Trailer));
  const uint64_t frames_end = size - tail.size();
  TRY(PReadFully(file.get(), tail, static_cast<off_t>(frames_end)));
  PackReader reader;
  TRY_ASSIGN(reader.index_, PackIndex::Parse(tail, frames_end));
  reader.file_ = std::move(file);
  return reader;
}

Result<const Bytes*> PackReader::Chunk(size_t index) {
  if (index == cached_) return &chunk_;
  cached_ = SIZE_MAX;
  const uint64_t begin = index == 0 ? 0 : index_.ends[index - 1];
  const uint64_t raw_size =
      std::min<uint64_t>(kPackChunkBytes, index_.raw_bytes - index * uint64_t{kPackChunkBytes});
  const uint64_t frame_size = index_.ends[index] - begin;
  if (frame_size > ZSTD_compressBound(kPackChunkBytes))
    return Error(Code::kCorrupt, "pack chunk is too large");
  Bytes frame(frame_size);
  TRY(PReadFully(file_.get(), frame, static_cast<off_t>(begin)));
  chunk_.resize(raw_size);
  const size_t got = ZSTD_decompress(chunk_.data(), chunk_.size(), frame.data(), frame.size());
  if (ZSTD_isError(got) || got != raw_size)
    return Error(Code::kCorrupt, "pack chunk does not decompress");
  cached_ = index;
  return &chunk_;
}

Result<Bytes> PackReader::Read(uint64_t offset, uint64_t length) {
  if (offset > index_.raw_bytes || length > index_.raw_bytes - offset) {
    return Error(Code::kCorrupt, "pack is shorter than its journal says");
  }
  // A forged index may promise far more than its frames hold: memory is taken as they prove to be there.
  Bytes out;
  out.reserve(std::min<uint64_t>(length, kPackChunkBytes));
  while (out.size() < length) {
    const uint64_t at = offset + out.size();
    TRY_ASSIGN(const Bytes* chunk, Chunk(at / kPackChunkBytes));
    const uint64_t begin = at % kPackChunkBytes;
    const uint64_t count = std::min<uint64_t>(length - out.size(), chunk->size() - begin);
    out.insert(out.end(), chunk->begin() + static_cast<ptrdiff_t>(begin),
               chunk->begin() + static_cast<ptrdiff_t>(begin + count));
  }
  return out;
}

Status WriteCompressedPack(int raw, uint64_t raw_bytes, int out) {
  PackIndex index{.raw_bytes = raw_bytes};
  Bytes chunk(kPackChunkBytes), frame(ZSTD_compressBound(kPackChunkBytes));
  uint64_t written = 0;
  for (uint64_t at = 0; at < raw_bytes; at += kPackChunkBytes) {
    const uint64_t want = std::min<uint64_t>(kPackChunkBytes, raw_bytes - at);
    TRY_ASSIGN(size_t got, PReadFully(raw, std::span(chunk).first(want), static_cast<off_t>(at)));
    if (got != want) return Error(Code::kCorrupt, "pack ends too early");
    const size_t size = ZSTD_compress(frame.data(), frame.size(), chunk.data(), want, kLevel);
    if (ZSTD_isError(size)) return Error(Code::kIo, "zstd could not compress a chunk");
    TRY(PWriteFully(out, ByteView(frame).first(size), static_cast<off_t>(written)));
    written += size;
    index.ends.push_back(written);
  }
  return PWriteFully(out, index.Encode(), static_cast<off_t>(written));
}

}  // namespace sandglass::undo
