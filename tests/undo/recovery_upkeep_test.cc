// A process that dies while it drops an old step: the step is there as a whole, or gone.
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "tests/support/must.h"
#include "tests/undo/forked.h"
#include "tests/undo/undo_fixture.h"

namespace {

// Takes the place of the call in this program: removing the first anchor of a step may be the last thing that a process does.
bool dies_with_an_anchor = false;

}  // namespace

extern "C" int unlinkat(int fd, const char* name, int flags) noexcept {
  const auto rc = static_cast<int>(::syscall(SYS_unlinkat, fd, name, flags));
  if (dies_with_an_anchor && std::string_view(name) == "0" && flags == 0) sandglass::undo::DieNow();
  return rc;
}

namespace sandglass::undo {
namespace {

using ::testing::IsEmpty;

class UndoKilledUpkeep : public UndoTest {
 protected:
  // `a` has a second name outside of all steps, so that an anchor of it is shared.
  void SetUp() override {
    options_.compression = Compression::kOff;
    workspace().WriteFile("a", "old");
    const std::string a = workspace().Path("a"), b = workspace().Path("b");
    test::MustCall(::link(a.c_str(), b.c_str()), "link");
    test::AgeTree(workspace().project());
  }
  std::vector<std::string> Trash() const { return NamesIn(workspace().store() + "/trash"); }
};

TEST_F(UndoKilledUpkeep, AnEvictedStepIsWholeOrGone) {
  options_.limits.max_steps = 1;
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] { EXPECT_OK(ops().Unlink("a")); });
    dies_with_an_anchor = true;
    InStep([&] { EXPECT_OK(ops().WriteNew("n", "new")); });
  });
  OpenLog();
  const auto plan = log().PlanRollback(static_cast<uint32_t>(Steps().size()));
  ASSERT_OK(plan);
  EXPECT_THAT(Lines(plan->conflicts), IsEmpty());
  RollBack(static_cast<uint32_t>(Steps().size()));
  EXPECT_THAT(Trash(), IsEmpty());
}

TEST_F(UndoKilledUpkeep, AClearedRedoIsWholeOrGone) {
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] { EXPECT_OK(ops().Link("b", "c")); });
    RollBack();
    dies_with_an_anchor = true;
    (void)log().OpenStep({});
  });
  OpenLog();
  if (log().redo_depth() == 1) {
    RedoSteps();
    EXPECT_EQ(Content("c"), "old");
  }
  EXPECT_THAT(Trash(), IsEmpty());
}

// Losing the anchor moves the time stamp of a file that a later step has changed. Nobody has edited it.
TEST_F(UndoKilledUpkeep, WhatLosesAnAnchorDoesNotPassForEdited) {
  options_.limits.max_steps = 2;
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] { EXPECT_OK(ops().Unlink("a")); });
    InStep([&] { EXPECT_OK(ops().Overwrite("b", "changed")); });
    dies_with_an_anchor = true;
    InStep([&] { EXPECT_OK(ops().WriteNew("n", "new")); });
  });
  OpenLog();
  ASSERT_EQ(Steps().size(), 2u);
  RollBack(2);
  EXPECT_EQ(Content("b"), "old");
}

TEST_F(UndoKilledUpkeep, AnEditAfterItIsStillOne) {
  options_.limits.max_steps = 2;
  RunUntilDeath([&] {
    OpenLog();
    InStep([&] { EXPECT_OK(ops().Unlink("a")); });
    InStep([&] { EXPECT_OK(ops().Overwrite("b", "changed")); });
    dies_with_an_anchor = true;
    InStep([&] { EXPECT_OK(ops().WriteNew("n", "new")); });
  });
  OpenLog();
  workspace().WriteFile("b", "by a person");
  EXPECT_CODE(log().Rollback(2), Code::kConflict);
  EXPECT_EQ(Content("b"), "by a person");
}

}  // namespace
}  // namespace sandglass::undo
