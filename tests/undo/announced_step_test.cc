// Steps that begin with their first change.
#include <fcntl.h>
#include <unistd.h>

#include "tests/support/must.h"
#include "tests/undo/undo_fixture.h"
#include "undo/interceptor.h"

namespace sandglass::undo {
namespace {

using test::Must;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AnnouncedStep : public UndoTest {
 protected:
  void SetUp() override {
    StartWith([](const std::string& root) { TreeBuilder(root).File("a.txt", "old\n"); });
    before_ = Snapshot();
  }
  StepId Announce(IfUnchanged if_unchanged = IfUnchanged::kForgotten) {
    return Must(log().AnnounceStep({.label = "a line"}, if_unchanged));
  }
  TreeSnapshot before_;
};

TEST_F(AnnouncedStep, BeginsWithItsFirstChange) {
  const StepId id = Announce();
  EXPECT_EQ(log().open_step(), std::nullopt);
  EXPECT_OK(ops().WriteNew("b.txt", "x"));
  EXPECT_EQ(log().open_step(), id);
  EXPECT_OK(log().CloseStep());
  EXPECT_EQ(InfoOf(id).label, "a line");
  EXPECT_THAT(ChangeLines(id), ElementsAre("created b.txt"));
  RollBack();
  ExpectTree(before_);
}

TEST_F(AnnouncedStep, WithoutAChangeLeavesNoTraceUnlessItIsToBeRecorded) {
  Announce();
  EXPECT_OK(log().CloseStep());
  EXPECT_THAT(Steps(), IsEmpty());
  const StepId recorded = Announce(IfUnchanged::kRecorded);
  EXPECT_OK(log().CloseStep());
  EXPECT_EQ(InfoOf(recorded).counts.total(), 0u);
}

TEST_F(AnnouncedStep, IsInNobodysWayUntilItBegins) {
  InStep([&] { EXPECT_OK(ops().WriteNew("b.txt", "x")); });
  const TreeSnapshot after = Snapshot();
  Announce(IfUnchanged::kRecorded);
  RollBack();
  ExpectTree(before_);
  RedoSteps();
  ExpectTree(after);
  RollBack();
  EXPECT_OK(log().CloseStep());
  EXPECT_EQ(log().redo_depth(), 1u) << "an empty record is not worth a redo";
  Announce();
  EXPECT_OK(ops().WriteNew("c.txt", "x"));
  EXPECT_EQ(log().redo_depth(), 0u);
  EXPECT_CODE(log().Rollback(1), Code::kBusy);
  EXPECT_OK(log().CloseStep());
}

TEST_F(AnnouncedStep, KeepsItsIdFromARestoreThatComesFirst) {
  const StepId written = InStep([&] { EXPECT_OK(ops().Overwrite("a.txt", "new\n")); });
  const StepId id = Announce();
  const std::string paths[] = {"a.txt"};
  const RewindReport report = Must(log().Restore(written, paths));
  ASSERT_EQ(report.steps.size(), 1u);
  EXPECT_NE(report.steps.front(), id);
  EXPECT_OK(ops().WriteNew("b.txt", "x"));
  EXPECT_EQ(log().open_step(), id);
  EXPECT_OK(log().CloseStep());
  RollBack(3);
  ExpectTree(before_);
}

TEST_F(AnnouncedStep, CannotHaveAnIdThatARedoCouldBringBack) {
  const StepId undone = InStep([&] { EXPECT_OK(ops().Overwrite("a.txt", "new\n")); });
  const TreeSnapshot after = Snapshot();
  RollBack();
  OpenLog();
  const auto announce = [&](StepId id) {
    return log().AnnounceStep({.id = id}, IfUnchanged::kRecorded);
  };
  EXPECT_CODE(announce(undone), Code::kExists);
  const StepId id = Must(announce(StepId{undone.value + 1}));
  RedoSteps();
  EXPECT_OK(ops().WriteNew("b.txt", "x"));
  EXPECT_OK(log().CloseStep());
  EXPECT_THAT(ChangeLines(id), ElementsAre("created b.txt"));
  RollBack();
  ExpectTree(after);
  OpenLog();
  EXPECT_OK(log().OpenStep({.id = id})) << "which drops what could be redone";
  EXPECT_OK(log().CloseStep());
}

TEST_F(AnnouncedStep, OnlyOneAtATimeAndAnAbortForgetsIt) {
  Announce();
  EXPECT_CODE(log().AnnounceStep({}, IfUnchanged::kForgotten), Code::kBusy);
  EXPECT_CODE(log().OpenStep({}), Code::kBusy);
  EXPECT_OK(log().AbortStep());
  EXPECT_CODE(log().CloseStep(), Code::kNotFound);
  EXPECT_OK(log().OpenStep({}));
  EXPECT_CODE(log().AnnounceStep({}, IfUnchanged::kForgotten), Code::kBusy);
  EXPECT_OK(log().CloseStep());
}

TEST_F(AnnouncedStep, WhatALiveWriterDidInItIsItsChange) {
  ASSERT_OK(log().OpenStep({}));
  Fd daemon = Must(ops().OpenFile("a.txt", O_RDWR, WriteVisibility::kUnseen));
  const ObjectRef live[] = {{daemon.get(), "a.txt"}};
  EXPECT_EQ(::pwrite(daemon.get(), "one", 3, 0), 3);
  EXPECT_OK(log().CloseStep(live));
  const TreeSnapshot after_first = Snapshot();
  const StepId id = Announce();
  EXPECT_EQ(::pwrite(daemon.get(), "two", 3, 10), 3);
  daemon.Reset();
  EXPECT_OK(log().CloseStep());
  EXPECT_THAT(ChangeLines(id), ElementsAre("modified a.txt"));
  RollBack();
  ExpectTree(after_first);
  RollBack();
  ExpectTree(before_);
}

TEST_F(AnnouncedStep, ALiveWriterThatWritesTheSameBytesAgainHasChangedTheTime) {
  ASSERT_OK(log().OpenStep({}));
  Fd daemon = Must(ops().OpenFile("a.txt", O_RDWR, WriteVisibility::kUnseen));
  const ObjectRef live[] = {{daemon.get(), "a.txt"}};
  EXPECT_EQ(::pwrite(daemon.get(), "one", 3, 0), 3);
  EXPECT_OK(log().CloseStep(live));
  const TreeSnapshot after_first = Snapshot();
  Announce();
  EXPECT_EQ(::pwrite(daemon.get(), "one", 3, 0), 3);
  daemon.Reset();
  EXPECT_OK(log().CloseStep());
  RollBack();
  ExpectTree(after_first);
  RollBack();
  ExpectTree(before_);
}

// A background job that opens its file between two lines of a shell.
TEST_F(AnnouncedStep, AWriterThatOpenedItsFileInAnAmbientStepIsWatchedToo) {
  Fd daemon;
  log().SetLiveWriterSource([&] {
    return daemon.valid() ? std::vector<ObjectRef>{{daemon.get(), "a.txt"}}
                          : std::vector<ObjectRef>();
  });
  daemon = Must(ops().OpenFile("a.txt", O_RDWR, WriteVisibility::kUnseen));
  const StepId id = Announce();
  EXPECT_EQ(::pwrite(daemon.get(), "one", 3, 0), 3);
  EXPECT_OK(log().CloseStep());
  EXPECT_THAT(ChangeLines(id), ElementsAre("modified a.txt"));
  daemon.Reset();
  EXPECT_THAT(Barriers(), IsEmpty());
  RollBack();
  ExpectTree(before_);
  log().SetLiveWriterSource({});
}

}  // namespace
}  // namespace sandglass::undo
