#include "base/did_you_mean.h"

#include <gtest/gtest.h>

namespace sandglass {
namespace {

TEST(DidYouMean, CountsSlips) {
  EXPECT_EQ(EditDistance("undo", "undo"), 0u);
  EXPECT_EQ(EditDistance("udno", "undo"), 1u) << "two letters that changed places are one slip";
  EXPECT_EQ(EditDistance("", "undo"), 4u);
  EXPECT_EQ(EditDistance("histroy", "history"), 1u);
  EXPECT_EQ(EditDistance("stats", "status"), 1u);
}

TEST(DidYouMean, OffersOnlyWhatIsNear) {
  constexpr std::string_view kKnown[] = {"run", "undo", "redo", "history"};
  EXPECT_EQ(NearestWord("unod", kKnown), "undo");
  EXPECT_EQ(NearestWord("rum", kKnown), "run");
  EXPECT_EQ(NearestWord("frobnicate", kKnown), "");
  EXPECT_EQ(NearestWord("", kKnown), "");
  EXPECT_EQ(NearestWord(std::string(1000, 'u'), kKnown), "");
}

}  // namespace
}  // namespace sandglass
