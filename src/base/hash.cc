#include "base/hash.h"

#include <xxhash.h>

namespace sandglass {

uint64_t HashBytes64(ByteView bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

Hash128 HashBytes128(ByteView bytes, uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
  return {.lo = hash.low64, .hi = hash.high64};
}

Hasher64::Hasher64(uint64_t seed) : state_(XXH3_createState()) {
  CHECK(state_ != nullptr);
  CHECK(XXH3_64bits_reset_withSeed(state_.get(), seed) == XXH_OK);
}

void Hasher64::Update(ByteView bytes) {
  // An empty view may hold a null pointer, which the library calls an error.
  if (bytes.empty()) return;
  CHECK(XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()) == XXH_OK);
}

uint64_t Hasher64::Digest() const { return XXH3_64bits_digest(state_.get()); }

void Hasher64::FreeState::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

}  // namespace sandglass
