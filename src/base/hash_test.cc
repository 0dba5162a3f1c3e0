#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <unordered_set>

namespace sandglass {
namespace {

TEST(Hash, DigestsAreThoseOfTheXxh3Specification) {
  EXPECT_EQ(HashBytes64({}), 0x2D06800538D394C2U);
  EXPECT_EQ(HashBytes128({}), (Hash128{.lo = 0x6001C324468D497FU, .hi = 0x99AA06D3014798D8U}));
}

TEST(Hash, TheSeedChangesTheDigest) {
  const ByteView bytes = AsBytes("sandglass");
  EXPECT_NE(HashBytes64(bytes, 0), HashBytes64(bytes, 1));
  EXPECT_NE(HashBytes128(bytes, 0), HashBytes128(bytes, 1));
}

TEST(Hash, OneFlippedBitChangesBothDigests) {
  std::string text(1000, 'x');
  const uint64_t before64 = HashBytes64(AsBytes(text));
  const Hash128 before128 = HashBytes128(AsBytes(text));
  text[500] ^= 1;
  EXPECT_NE(HashBytes64(AsBytes(text)), before64);
  EXPECT_NE(HashBytes128(AsBytes(text)), before128);
}

TEST(Hash128, IsOrderedAndHashable) {
  const Hash128 a{.lo = 1, .hi = 2};
  const Hash128 b{.lo = 2, .hi = 1};
  EXPECT_LT(a, b);
  EXPECT_EQ((std::set<Hash128>{a, b, a}).size(), 2U);
  EXPECT_EQ((std::unordered_set<Hash128>{a, b, a}).size(), 2U);
}

TEST(Hasher64, HowTheBytesAreCutDoesNotChangeTheDigest) {
  const std::string text(10'000, 'q');
  for (const size_t piece : {1U, 7U, 255U, 256U, 4096U, 10'000U}) {
    Hasher64 hasher(5);
    for (size_t at = 0; at < text.size(); at += piece) {
      hasher.Update(AsBytes(std::string_view(text).substr(at, piece)));
    }
    EXPECT_EQ(hasher.Digest(), HashBytes64(AsBytes(text), 5)) << "pieces of " << piece;
  }
}

TEST(Hasher64, GoesOnAfterADigest) {
  Hasher64 hasher;
  EXPECT_EQ(hasher.Digest(), HashBytes64({}));
  hasher.Update({});
  hasher.Update(AsBytes("ab"));
  EXPECT_EQ(hasher.Digest(), HashBytes64(AsBytes("ab")));
  hasher.Update(AsBytes("c"));
  EXPECT_EQ(hasher.Digest(), HashBytes64(AsBytes("abc")));
}

}  // namespace
}  // namespace sandglass
