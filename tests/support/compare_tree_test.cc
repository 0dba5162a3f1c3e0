// compare_tree.py, run as the crash harness runs it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/support/fixtures.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"
#include "tests/support/tree_builder.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;

struct Ran {
  int exit_code;
  std::string output;
};

Ran RunShell(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "re");
  CHECK(pipe != nullptr);
  Ran ran{};
  char buffer[4096];
  for (size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    ran.output.append(buffer, got);
  const int status = ::pclose(pipe);
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

class CompareTree : public ::testing::Test {
 protected:
  void SetUp() override {
    if (RunShell("python3 --version").exit_code != 0) GTEST_SKIP() << "needs python3";
  }

  Ran Save() const {
    return RunShell(
        fmt::format("python3 {} snapshot {} >{}", kProgram, workspace_.project(), json_));
  }
  Ran Compare() const {
    return RunShell(fmt::format("python3 {} diff {} {}", kProgram, json_, workspace_.project()));
  }

  static constexpr const char* kProgram = SANDGLASS_TEST_SUPPORT_DIR "/compare_tree.py";
  TempWorkspace workspace_;
  std::string json_ = workspace_.root() + "/before.json";
};

TEST_F(CompareTree, ItsOwnTestsPass) {
  const Ran ran = RunShell(fmt::format("TMPDIR={} python3 -B {}/compare_tree_test.py",
                                       workspace_.root(), SANDGLASS_TEST_SUPPORT_DIR));
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
}

TEST_F(CompareTree, AnUntouchedTreeEqualsItself) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to see all of the tree";
  WeirdTree(workspace_.project());
  EXPECT_EQ(Save().exit_code, 0);
  const Ran ran = Compare();
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
}

TEST_F(CompareTree, ADifferenceBelowPathMaxIsSeen) {
  WeirdTree(workspace_.project());
  Save();
  TreeBuilder level = TreeBuilder(workspace_.project()).Below("long");
  const std::string name(250, 'p');
  while (::faccessat(level.fd(), name.c_str(), F_OK, 0) == 0) level = level.Below(name);
  level.Mode("bottom.txt", 0600);
  const Ran ran = Compare();
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.output, HasSubstr("/bottom.txt': mode '0644' -> '0600'"));
}

TEST_F(CompareTree, WhatCannotBeComparedIsNeverEqual) {
  EXPECT_EQ(Compare().exit_code, 2);
  EXPECT_EQ(RunShell(fmt::format("python3 {} nonsense", kProgram)).exit_code, 2);
  EXPECT_EQ(RunShell(fmt::format("python3 {} snapshot {}/missing", kProgram, workspace_.project()))
                .exit_code,
            2);
}

}  // namespace
}  // namespace sandglass::test
