#include "session/stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sandglass::session {
namespace {

TEST(Stage, WhereNoFolderCanTakeChangesItIsRefusedAndEachReasonIsTold) {
  const auto stage = Stage::Make("/", {"/proc/no-such", "/sys"});
  ASSERT_FALSE(stage.ok());
  EXPECT_EQ(stage.error().code(), Code::kUnsupported);
  EXPECT_THAT(stage.error().message(), ::testing::HasSubstr("/proc/no-such"));
  EXPECT_THAT(stage.error().message(), ::testing::HasSubstr("SANDGLASS_HOME"));
}

}  // namespace
}  // namespace sandglass::session
