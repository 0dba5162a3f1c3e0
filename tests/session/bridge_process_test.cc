// The session's end of the bridge process, without a world.
#include "session/bridge_process.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"
#include "world/local/local_world.h"

namespace sandglass::test {
namespace {

class BridgeProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    // It takes the same of the kernel.
    if (const std::string why = world::WhyNoLocalWorld(); !why.empty())
      GTEST_SKIP() << "no local world: " << why;
    session::WatchOptions watch;
    watch.watching = session::Watching::kOff;
    bridge_ = Must(session::BridgeProcess::Begin(
        {{.project = workspace_.project(), .store = workspace_.store()}}, {}, watch,
        session::Questions::kNobody));
    Must(bridge_->AwaitOpened());
  }

  const TempWorkspace workspace_;
  std::unique_ptr<session::BridgeProcess> bridge_;
};

TEST_F(BridgeProcess, WhatFailedBeforeARewindLeavesNoFrameOfItBehind) {
  const Fd content(MustCall(::memfd_create("content", MFD_CLOEXEC), "memfd"));
  Must(PWriteFully(content.get(), AsBytes(std::string_view("new\n")), 0));
  Must(bridge_->WriteFile(
      {.step = StepId{1}, .project = workspace_.project(), .path = "made", .label = "write"},
      content));
  Must(bridge_->Announce(StepId{2}, "first", undo::IfUnchanged::kForgotten));
  Must(bridge_->Announce(StepId{3}, "second", undo::IfUnchanged::kForgotten));  // fails
  int told = 0;
  const auto answer =
      bridge_->Rewind({.project = workspace_.project(), .progress = session::ProgressWanted::kYes},
                      [&](const undo::RewindProgress&) { ++told; });
  EXPECT_TRUE(answer.report) << answer.error->message();
  EXPECT_GT(told, 0);
  EXPECT_FALSE(workspace_.Exists("made"));
  EXPECT_EQ(bridge_->CheckWork().error().code(), Code::kBusy);
  EXPECT_TRUE(bridge_->AskPosition().ok());
}

}  // namespace
}  // namespace sandglass::test
