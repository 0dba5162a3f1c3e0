#include "cli/progress_bar.h"

#include <gtest/gtest.h>

namespace sandglass::cli {
namespace {

TEST(ProgressText, ShowsTheShareThatIsDone) {
  EXPECT_EQ(ProgressText({.done = 50, .total = 200}),
            "[#####---------------]  25 %  50 of 200 paths");
  EXPECT_EQ(ProgressText({.done = 0, .total = 3}), "[--------------------]   0 %  0 of 3 paths");
  EXPECT_EQ(ProgressText({.done = 3, .total = 3}), "[####################] 100 %  3 of 3 paths");
}

TEST(ProgressText, NumbersThatMakeNoSenseDoNoHarm) {
  EXPECT_EQ(ProgressText({.done = 9, .total = 3}), "[####################] 100 %  3 of 3 paths");
  EXPECT_EQ(ProgressText({.done = 0, .total = 0}), "[--------------------]   0 %  0 of 0 paths");
}

TEST(ProgressBar, WithoutATerminalNobodyIsAskedForProgress) {
  EXPECT_FALSE(ProgressBar(-1).teller());
  EXPECT_TRUE(ProgressBar(2).teller());
}

}  // namespace
}  // namespace sandglass::cli
