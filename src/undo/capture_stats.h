// How often each way of keeping content was used: tests prove with it that every strategy ran, and `status` shows it.
#pragma once

#include <atomic>
#include <cstdint>

namespace sandglass::undo {

struct CaptureStats {
  std::atomic<uint64_t> anchor_link{0};    // inode linked into the store
  std::atomic<uint64_t> anchor_rename{0};  // inode moved into the store
  std::atomic<uint64_t> anchor_copy{0};    // no anchor possible: kept as content
  std::atomic<uint64_t> writer_copy{0};    // anchored, and copied because a writer had it open
  std::atomic<uint64_t> pack{0};           // small content appended to the pack
  std::atomic<uint64_t> range{0};          // blocks of a large file
  std::atomic<uint64_t> reflink{0};        // cloned
  std::atomic<uint64_t> blob_copy{0};      // large content copied
  std::atomic<uint64_t> provisional_dropped{0};  // copied, and dropped because nothing changed
  std::atomic<uint64_t> inode_move{0};           // inode exchanged for a fresh one
  std::atomic<uint64_t> shadow{0};               // content kept for a live writer
};

}  // namespace sandglass::undo
