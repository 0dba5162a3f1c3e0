// Real commands in the world of `sandglass run`: output, exit code and tree are as outside, and undo brings the old tree back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/parity/parity_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void MakeReady(const TempWorkspace& space) {
  MakeCommandProject(space);
  AgeTree(space.project());
  MustCall(::mkdir((space.root() + "/outside").c_str(), 0777), "outside");
}

class CommandParity : public ParityFixture, public ::testing::WithParamInterface<CommandCase> {};

TEST_P(CommandParity, EndsAsItDoesNatively) {
  TempWorkspace native;
  MakeReady(native);
  Must(RemoveTree(workspace_.project() + "/src"));
  MustCall(::unlink(workspace_.Path("keep.txt").c_str()), "unlink");
  MakeReady(workspace_);
  const TreeSnapshot before = workspace_.Snapshot();

  const CommandResult wanted = Natively(WithPlaces(native, GetParam().command), native.project());
  ASSERT_THAT(wanted.output, Not(HasSubstr("command not found"))) << "a tool is missing";
  const CommandResult got = RunInWorld(WithPlaces(workspace_, GetParam().command));
  EXPECT_EQ(got.exit_code, wanted.exit_code);
  EXPECT_EQ(Neutral(got.output, workspace_.root()), Neutral(wanted.output, native.root()));

  CompareOptions any_time;
  any_time.mtime_tolerance_ns = INT64_MAX;
  EXPECT_TRUE(TreesEqual(native.Snapshot(), workspace_.Snapshot(), any_time));

  // What came and went within the step is no change, but the folder's time tells.
  const Ended undone = Sandglass({"undo"});
  if (undone.exit_code == 0)
    EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  else
    EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot(), any_time)) << undone.err;
}

INSTANTIATE_TEST_SUITE_P(Commands, CommandParity, ::testing::ValuesIn(kCommands),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sandglass::test
