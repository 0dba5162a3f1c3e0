// The inputs of store_files_fuzz: what the first byte selects, and what follows it.
//
// Objects and packs carry checksums, which no mutation would ever repair; hence a second form of each that the target seals with
// right checksums before the decoder sees it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sandglass::fuzz {

enum class StoreInput : uint8_t {
  kVersion = 0,  // the files, as they are
  kProject = 1,
  kBarriers = 2,
  kKeepList = 3,
  kRegistryEntry = 4,
  kObjects = 5,
  kSealedObjects = 6,  // entries of 60 bytes, without their checksums
  kPack = 7,           // a compressed pack
  kSealedPack = 8,     // u64 raw size; then per frame u16 length and bytes
  kRawPack = 9,        // u8 how often, then bytes to compress
  kJourney = 10,       // as it is
  kFrames = 11,        // the note of a shadow, as it is
  kSealedFrames = 12,  // per record u16 length and bytes, without checksums
};
inline constexpr uint8_t kStoreInputs = 13;

inline constexpr size_t kMaxStoreInputBytes = 16 << 10;

}  // namespace sandglass::fuzz
