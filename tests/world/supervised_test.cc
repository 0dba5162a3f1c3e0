// A local world with the supervised bridge: commands change the real project, and undo takes it back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bridge/supervise/filter.h"
#include "bridge/supervise/supervisor.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"
#include "tests/support/tree_snapshot.h"
#include "tests/world/world_client.h"
#include "undo/undo_log.h"

namespace sandglass::test {
namespace {

class SupervisedLocalWorld : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = world::WhyNoLocalWorld(); !why.empty())
      GTEST_SKIP() << "no local world: " << why;
    workspace_.WriteFile("keep", "kept\n");
    workspace_.WriteFile("folder/file", "old\n");
    log_ =
        Must(undo::UndoLog::Open({.project = workspace_.project(), .store = workspace_.store()}));
    supervisor_ = Must(bridge::Supervisor::Create({{workspace_.project(), &log_->interceptor()}}));
    world_ = std::make_unique<TestWorld>(workspace_, [](world::LocalWorldSpec& spec) {
      spec.command_filter = bridge::BuildFilter();
    });
    world_->SuperviseBy([this](StepId, Fd listener) {
      commands_.push_back(
          Must(supervisor_->Supervise(std::move(listener), world_->world().init_pid())));
    });
  }
  void TearDown() override {
    world_.reset();  // ends all processes, for which the commands wait
    commands_.clear();
  }

  // As one step, which is then closed.
  Ran RunStep(StepId step, const std::string& command) {
    Must(log_->OpenStep({.id = step}));
    Ran ran = world_->Run(command);
    commands_.back()->Wait();
    Must(log_->CloseStep());
    return ran;
  }

  TempWorkspace workspace_;
  std::unique_ptr<undo::UndoLog> log_;
  std::unique_ptr<bridge::Supervisor> supervisor_;
  std::unique_ptr<TestWorld> world_;
  std::vector<std::unique_ptr<bridge::SupervisedCommand>> commands_;
};

TEST_F(SupervisedLocalWorld, ChangesTheProjectAndUndoTakesItBack) {
  const TreeSnapshot before = workspace_.Snapshot();
  const Ran ran = RunStep(StepId{1},
                          "echo new >folder/file && rm keep && mkdir -p a/b && ln -s x a/link && "
                          "mv folder moved && cat moved/file");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "new\n");
  EXPECT_EQ(workspace_.ReadFile("moved/file"), "new\n");
  EXPECT_FALSE(workspace_.Exists("keep"));
  Must(log_->Rollback(1));
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

TEST_F(SupervisedLocalWorld, WritesNativelyWhereTheProjectIsNot) {
  const Ran ran = RunStep(StepId{1}, "echo one >/tmp/own && mv /tmp/own ~/own && cat ~/own");
  EXPECT_EQ(ran.out, "one\n") << ran.err;
}

TEST_F(SupervisedLocalWorld, RunsRealPrograms) {
  const Ran ran = RunStep(StepId{1},
                          "git init -q . && git add . && git -c user.name=n -c user.email=e commit "
                          "-qm first && git log --format=%s && git status --short");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "first\n");
}

TEST_F(SupervisedLocalWorld, LeavesAShellOnATerminalWorking) {
  Must(log_->OpenStep({.id = StepId{1}}));
  control::Exec exec = Shell("exec bash --norc -i");
  exec.pty = control::TerminalSize{};
  exec.takes_input = true;
  const StepId id = world_->Begin(exec);
  world_->Send(control::Input{.id = id, .data = "echo hi >made; exit 5\n"});
  EXPECT_EQ(world_->Finish(id).exit_code, 5);
  commands_.back()->Wait();
  Must(log_->CloseStep());
  EXPECT_EQ(workspace_.ReadFile("made"), "hi\n");
}

}  // namespace
}  // namespace sandglass::test
