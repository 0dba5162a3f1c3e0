#include "cli/held_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sandglass::cli {
namespace {

using ::testing::HasSubstr;
using undo::SafeguardKind;

undo::SafeguardQuestion Question(SafeguardKind kind) {
  return {.kind = kind, .step = {3}, .amount = 2048, .sample_paths = {"a", "b\x1b[2J", "c"}};
}

TEST(HeldText, SaysWhatIsAboutToHappen) {
  EXPECT_EQ(HeldSentence(Question(SafeguardKind::kDeleteCount)),
            "step 3 is about to delete 2048 files or folders");
  EXPECT_THAT(HeldSentence(Question(SafeguardKind::kTruncateLarge)), HasSubstr("2.0 KiB"));
  EXPECT_THAT(HeldSentence(Question(SafeguardKind::kUndoLimit)), HasSubstr("cannot be undone"));
  undo::SafeguardQuestion ambient = Question(SafeguardKind::kRenameOver);
  ambient.step = {-1};
  EXPECT_THAT(HeldSentence(ambient), HasSubstr("left behind is about to rename over"));
}

TEST(HeldText, PathsSteerNoTerminalAndLongListsAreCut) {
  const std::string text = SampleText(Question(SafeguardKind::kDeleteCount), 2);
  EXPECT_EQ(text, "  a\n  b\\x1b[2J\n  and 2046 more\n");
  const std::string all = HeldText(
      {{"sg_003", Question(SafeguardKind::kDeleteCount), std::chrono::milliseconds(1'200)}});
  EXPECT_THAT(all, HasSubstr("sg_003  step 3 is about to delete 2048 files or folders; denied in "
                             "2 s\n"));
  EXPECT_THAT(all, HasSubstr("  c\n"));
  EXPECT_THAT(all, HasSubstr("and 2045 more"));
}

}  // namespace
}  // namespace sandglass::cli
