// The harness on a toy whose faults are known: it has to find each of them and nothing else.
#include "tests/crash/sweep.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::crash {
namespace {

using test::Must;

std::string ToyProgram() {
  std::array<char, 4096> path;
  const ssize_t length =
      test::MustCall(readlink("/proc/self/exe", path.data(), path.size()), "readlink");
  const std::string self(path.data(), static_cast<size_t>(length));
  return self.substr(0, self.rfind('/') + 1) + "crash_toy";
}

class SweepTest : public ::testing::Test {
 protected:
  SweepOptions Options(const std::string& scenario, Fault fault = Fault::kKill) const {
    SweepOptions options;
    options.program = ToyProgram();
    options.folder = place_.root();
    options.scenario = scenario;
    options.fault = fault;
    if (fault == Fault::kShort)
      options.calls = CallSelection::kShortable;
    else if (fault != Fault::kKill)
      options.calls = CallSelection::kSpace;
    return options;
  }
  SweepSummary Run(const SweepOptions& options) const { return Must(Sweep(options).Run()); }

  test::TempWorkspace place_;
};

TEST_F(SweepTest, ASoundLogHasNoMismatchAtAnyPoint) {
  const SweepSummary summary = Run(Options("sound"));
  EXPECT_EQ(summary.mismatches, 0U);
  // unlink, open, write, rename of the intent; open, write of the file; rename that closes: each before and after.
  EXPECT_EQ(summary.points, 14U);
}

TEST_F(SweepTest, CallsThatOnlyLookCanBePointsToo) {
  SweepOptions options = Options("sound");
  options.calls = CallSelection::kTouching;
  const SweepSummary summary = Run(options);
  EXPECT_EQ(summary.mismatches, 0U);
  EXPECT_GT(summary.points, 14U);
}

TEST_F(SweepTest, ALogWrittenAfterTheOperationIsCaught) {
  const SweepSummary summary = Run(Options("late"));
  // From the creation of the file up to the intent that comes too late.
  EXPECT_EQ(summary.mismatches, 10U);
}

TEST_F(SweepTest, RecoveryThatIsKilledIsSweptAsWell) {
  const SweepSummary summary = Run(Options("recovery"));
  EXPECT_EQ(summary.mismatches, 0U);
  EXPECT_EQ(summary.points, 6U);
}

TEST_F(SweepTest, AKilledCallWasNotExecutedBeforeAndWasAfter) {
  SweepOptions options = Options("late");
  options.point = 0;  // the creation of the file, with no intent yet
  options.when = Deed::kKillBefore;
  EXPECT_EQ(Run(options).mismatches, 0U);
  options.when = Deed::kKillAfter;
  EXPECT_EQ(Run(options).mismatches, 1U);
}

TEST_F(SweepTest, AFullDiskIsRefusedInOrder) {
  const SweepSummary summary = Run(Options("sound", Fault::kNoSpace));
  EXPECT_EQ(summary.mismatches, 0U);
  EXPECT_EQ(summary.points, 4U);
  EXPECT_EQ(summary.scenarios[0].refusals, 4U);
}

TEST_F(SweepTest, AProgramThatDiesOfAnErrorIsCaught) {
  EXPECT_EQ(Run(Options("rude", Fault::kIo)).mismatches, 4U);
}

TEST_F(SweepTest, AShortWriteThatIsNotResumedIsCaught) {
  EXPECT_EQ(Run(Options("sound", Fault::kShort)).mismatches, 0U);
  EXPECT_EQ(Run(Options("careless", Fault::kShort)).mismatches, 1U);
}

TEST_F(SweepTest, ASampleIsASmallerSweep) {
  SweepOptions options = Options("sound");
  options.sample = 4;
  EXPECT_EQ(Run(options).points, 4U);
}

TEST_F(SweepTest, ResultsAreWrittenPerScenario) {
  SweepOptions options = Options("*");
  options.sample = 5;
  options.results = place_.root() + "/results";
  Run(options);
  std::ifstream file(options.results);
  std::string first;
  std::getline(file, first);
  EXPECT_EQ(first,
            R"({"suite":"crash-sweep","fs":"-","test":"sound","status":"passed","reason":""})");
}

}  // namespace
}  // namespace sandglass::crash
