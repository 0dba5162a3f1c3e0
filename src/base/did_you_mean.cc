#include "base/did_you_mean.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sandglass {
namespace {

constexpr size_t kLongestWord = 64;  // nobody mistypes more

// One slip in a short word, two in a longer one.
size_t Tolerance(std::string_view word) { return word.size() <= 3 ? 1 : 2; }

}  // namespace

size_t EditDistance(std::string_view one, std::string_view other) {
  std::vector<size_t> before_last, last(other.size() + 1), row(other.size() + 1);
  for (size_t j = 0; j <= other.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= one.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= other.size(); ++j) {
      const size_t cost = one[i - 1] == other[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + cost});
      const bool swapped =
          i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::exchange(last, row);
  }
  return last.back();
}

std::string_view NearestWord(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > kLongestWord) return "";
  std::string_view nearest;
  size_t least = Tolerance(word) + 1;
  for (const std::string_view candidate : known) {
    const size_t distance = EditDistance(word, candidate);
    if (distance >= least || distance >= candidate.size()) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace sandglass
