// A project in which a round of changes can be made again and again, each time others.
#pragma once

#include <fmt/format.h>

#include "tests/undo/undo_fixture.h"

namespace sandglass::undo {

class UndoHistoryTest : public UndoTest {
 protected:
  void SetUp() override { StartWith(test::SmallTree); }

  void ChangeMuch(int round) {
    EXPECT_OK(ops().Overwrite("small.txt", fmt::format("round {}", round)));
    EXPECT_OK(ops().WriteAt("large.bin", 100'000u * static_cast<uint64_t>(round), "changed",
                            WriteVisibility::kAnnounced));
    EXPECT_OK(ops().WriteNew(fmt::format("new{}.txt", round), "new"));
    EXPECT_OK(ops().Mkdir(fmt::format("dir{}", round)));
    EXPECT_OK(ops().Rename(round % 2 == 0 ? "lib" : "src", round % 2 == 0 ? "src" : "lib"));
  }
};

}  // namespace sandglass::undo
