#include "base/ids.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace sandglass {
namespace {

using OtherId = StrongId<struct OtherIdTag, int64_t>;

TEST(StrongId, IdsOfDifferentKindsDoNotMix) {
  static_assert(!std::is_convertible_v<StepId, OtherId>);
  static_assert(!std::is_convertible_v<int64_t, StepId>);
  static_assert(!std::is_convertible_v<StepId, int64_t>);
}

TEST(StrongId, ComparesAndHashesByValue) {
  EXPECT_LT(StepId{-1}, StepId{3});
  EXPECT_EQ(StepId{}, StepId{0});
  EXPECT_EQ((std::unordered_set<StepId>{StepId{1}, StepId{1}, StepId{2}}).size(), 2U);
}

}  // namespace
}  // namespace sandglass
