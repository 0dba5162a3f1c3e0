// SIGKILL of any part of Sandglass at any moment: after the next start the tree is the one before the interrupted step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/kills/batch.h"
#include "tests/kills/campaign.h"

namespace sandglass::test {
namespace {

using Kills = Campaign;

TEST_F(Kills, AfterEachRestartTheTreeIsTheOneBeforeTheInterruptedStep) {
  const CampaignSpec spec = CampaignSpec::FromEnvironment();
  const CampaignCounts counts = Conduct(spec);
  const std::string absent = fmt::format("{}", fmt::join(MissingPrograms(), " "));
  fmt::print("kills, seed {}: {}{}\n", spec.seed, counts.Text(),
             absent.empty() ? "" : "; not installed: " + absent);
  std::fflush(stdout);
  for (const std::string& mismatch : counts.mismatches) ADD_FAILURE() << mismatch;
  const int kills = spec.rounds * spec.kills_per_round;
  EXPECT_EQ(counts.KillsBut(Victim::kKeeper), kills);
  EXPECT_EQ(counts.steps, spec.rounds);
  EXPECT_GE(counts.inside * 100, kills * spec.inside_percent);
  EXPECT_GE(counts.differed, counts.inside / 2) << "or nothing had to be taken back";
  EXPECT_GE(counts.mutations, spec.rounds * spec.mutations * 10 / 13) << "too many programs failed";
}

// Or the verdicts above would mean nothing.
TEST_F(Kills, ANanosecondThatIsWrongAfterTheRestartIsSeenEachTime) {
  const CampaignSpec spec{
      .rounds = 1, .kills_per_round = 3, .mutations = 20, .tamper = CampaignSpec::Tamper::kOneTime};
  EXPECT_GE(Conduct(spec).mismatches.size(), 3U);
}

}  // namespace
}  // namespace sandglass::test
