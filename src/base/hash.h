// Hashes of bytes: XXH3, fast and stable across releases and machines, so a digest may be written
// to disk.
//
// They find accidents (torn writes, flipped bits), not attacks: whoever can choose the bytes can
// make a collision. Free functions and value types; a Hasher64 belongs to one thread at a time.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/bytes.h"

struct XXH3_state_s;

namespace sandglass {

struct Hash128 {
  uint64_t lo = 0;
  uint64_t hi = 0;

  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

uint64_t HashBytes64(ByteView bytes, uint64_t seed = 0);
Hash128 HashBytes128(ByteView bytes, uint64_t seed = 0);

// HashBytes64 over bytes that arrive in pieces: how they were cut does not change the digest.
class Hasher64 {
 public:
  explicit Hasher64(uint64_t seed = 0);

  void Update(ByteView bytes);
  // The digest of everything so far; more may follow.
  uint64_t Digest() const;

 private:
  struct FreeState {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, FreeState> state_;
};

}  // namespace sandglass

template <>
struct std::hash<sandglass::Hash128> {
  // The halves are already mixed: either is as good as any combination of both.
  size_t operator()(const sandglass::Hash128& hash) const noexcept { return hash.lo; }
};
