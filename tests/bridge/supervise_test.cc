// Real commands, once natively and once in a supervised world on an equal project: output, exit code and tree are the same, and
// rolling the step back brings the old tree.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>

#include "bridge/supervise/supervisor.h"
#include "bridge/supervise/syscall_table.h"
#include "tests/bridge/command_cases.h"
#include "tests/bridge/test_world.h"
#include "tests/support/fixtures.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"
#include "tests/support/tree_snapshot.h"
#include "undo/undo_log.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A project, its undo log, a supervisor.
class Bench {
 public:
  explicit Bench(uid_t owner = 0) {
    MakeCommandProject(space);
    if (owner != 0)
      RunNatively("chown -R " + std::to_string(owner) + ":" + std::to_string(owner) + " .",
                  space.project());
    AgeTree(space.project());
    mkdir((space.root() + "/outside").c_str(), 0777);
    chmod((space.root() + "/outside").c_str(), 0777);
    chmod(space.root().c_str(), 0755);
    log = Must(undo::UndoLog::Open({.project = space.project(), .store = space.store()}));
    supervisor = Must(bridge::Supervisor::Create({{space.project(), &log->interceptor()}}));
  }

  CommandResult RunInWorld(const std::string& command, const WorldOptions& options = {}) {
    RunningWorld world(*supervisor, command, space.project(), options);
    CommandResult result = world.Finish();
    calls = world.command().calls();
    return result;
  }

  TempWorkspace space;
  std::unique_ptr<undo::UndoLog> log;
  std::unique_ptr<bridge::Supervisor> supervisor;
  uint64_t calls = 0;
};

void ExpectLikeNative(const CommandCase& test_case, uid_t uid, const char* also_at = "") {
  Bench native(uid), world(uid);
  const TreeSnapshot before = world.space.Snapshot();
  const CommandResult wanted =
      RunNatively(WithPlaces(native.space, test_case.command), native.space.project(), uid);

  ASSERT_THAT(wanted.output, Not(HasSubstr("command not found"))) << "a tool is missing";

  Must(world.log->OpenStep({.label = test_case.name}));
  WorldOptions options{.uid = uid, .also_at = also_at};
  const CommandResult got = world.RunInWorld(WithPlaces(world.space, test_case.command), options);
  EXPECT_EQ(got.exit_code, wanted.exit_code);
  EXPECT_EQ(Neutral(got.output, world.space.root()), Neutral(wanted.output, native.space.root()));

  CompareOptions any_time;
  any_time.mtime_tolerance_ns = INT64_MAX;
  EXPECT_TRUE(TreesEqual(native.space.Snapshot(), world.space.Snapshot(), any_time));

  EXPECT_TRUE(world.supervisor->LiveWriters(0).empty());
  Must(world.log->CloseStep());
  const auto rolled_back = world.log->Rollback(1);
  if (rolled_back.ok()) {
    EXPECT_TREE_EQ(before, world.space.Snapshot());
    return;
  }
  // What came and went within the step is no change, but the folder's time tells.
  EXPECT_EQ(rolled_back.error().code(), Code::kNotFound) << rolled_back.error().ToString();
  EXPECT_TRUE(TreesEqual(before, world.space.Snapshot(), any_time));
}

class LikeNative : public ::testing::TestWithParam<CommandCase> {};

TEST_P(LikeNative, AsTheUserOfTheSupervisor) {
  if (const std::string why = WhyNoWorld(); !why.empty()) GTEST_SKIP() << why;
  ExpectLikeNative(GetParam(), geteuid());
}

TEST_P(LikeNative, AsAUserUnderARootSupervisor) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  ExpectLikeNative(GetParam(), 1234);
}

INSTANTIATE_TEST_SUITE_P(Commands, LikeNative, ::testing::ValuesIn(kCommands),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sandglass::test
