// The inputs of undo_journal_fuzz: what the first byte selects, and what follows it.
//
// Journals and packs carry checksums, which no mutation would ever repair; hence two forms of each,
// one that is taken as it is and one that the target seals with right checksums before the decoder
// sees it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sandglass::fuzz {

enum class JournalInput : uint8_t {
  kRawJournal = 0,  // a journal file
  kSealedJournal =
      1,         // u8 step kind, u8 label length and label; then per record u16 length and payload
  kRawPack = 2,  // u64 where the frames end, then the last bytes of a compressed pack
  kSealedPack = 3,  // u64 raw size, then u64 for each end of a frame
};
inline constexpr uint8_t kJournalInputs = 4;

// More would only make quadratic work on paths look like an endless loop.
inline constexpr size_t kMaxInputBytes = 16 << 10;

}  // namespace sandglass::fuzz
