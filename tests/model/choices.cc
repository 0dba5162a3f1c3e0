#include "tests/model/choices.h"

#include <algorithm>
#include <cstring>

#include "tests/support/tree_snapshot.h"

namespace sandglass::model {

uint64_t SomeSize(Dice& dice) {
  switch (dice.Below(6)) {
    case 0:
      return dice.Below(64);
    case 1:
      return 1 + dice.Below(300);
    case 2:
      return 4 * kKiB;
    case 3:
      return 90 * kKiB + dice.Below(20 * kKiB);
    case 4:
      return kLarge + dice.Below(3);  // around the threshold
    default:
      return 300 * kKiB + dice.Below(400 * kKiB);
  }
}

uint64_t SomeLength(Dice& dice) {
  switch (dice.Below(4)) {
    case 0:
      return 1 + dice.Below(16);
    case 1:
      return 4 * kKiB;
    case 2:
      return 1 + dice.Below(5000);
    default:
      return 70 * kKiB;  // more than one block of a range
  }
}

uint64_t SomeOffset(Dice& dice, uint64_t size) {
  switch (dice.Below(5)) {
    case 0:
      return 0;
    case 1:
      return size / 2;
    case 2:
      return size > 64 * kKiB ? 64 * kKiB - 1 : size / 3;
    case 3:
      return size;
    default:
      return size + 1 + dice.Below(80 * kKiB);
  }
}

std::string Pattern(uint32_t salt, size_t length) {
  std::string bytes(length, '\0');
  uint64_t state = (uint64_t{salt} << 1 | 1) * 0x9e3779b97f4a7c15;
  for (size_t at = 0; at < length; at += sizeof(state)) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    std::memcpy(bytes.data() + at, &state, std::min(sizeof(state), length - at));
  }
  return bytes;
}

std::string Shown(const std::string& path) { return path.empty() ? "." : test::Printable(path); }

const Spot* PickFile(const Inventory& inventory, uint32_t choice, Dice& dice,
                     const Inventory::Predicate& fits) {
  if (dice.OneIn(3)) {
    const Spot* large =
        inventory.Pick(choice, [&](const Spot& spot) { return IsLargeFile(spot) && fits(spot); });
    if (large != nullptr) return large;
  }
  return inventory.Pick(choice, fits);
}

}  // namespace sandglass::model
