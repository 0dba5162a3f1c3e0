// crash_sweep: kills the scenario program before and after every system call that touches project or store, and checks what the
// next opening makes of it. Exit code 0: all as it must be; 1: not; 2: the harness could not work.
#include <fmt/format.h>

#include <cstdio>

#include "tests/crash/sweep.h"
#include "tests/crash/sweep_options.h"

namespace sandglass::crash {
namespace {

constexpr int kFailed = 1;
constexpr int kUnable = 2;

int Unable(const Error& error) {
  fmt::print(stderr, "crash-sweep: {}\n", error.ToString());
  return kUnable;
}

int List(Sweep& sweep) {
  const Result<std::vector<ScenarioInfo>> scenarios = sweep.Scenarios();
  if (!scenarios.ok()) return Unable(scenarios.error());
  for (const ScenarioInfo& info : *scenarios) fmt::print("{:32} {}\n", info.name, info.about);
  return 0;
}

void PrintTally(const ScenarioTally& tally) {
  std::string notes;
  if (tally.refusals > 0) notes += fmt::format(", {} refused", tally.refusals);
  if (tally.unreached > 0) notes += fmt::format(", {} not reached", tally.unreached);
  if (tally.moved > 0) notes += fmt::format(", {} at another call", tally.moved);
  fmt::print("  {:32} {:6} points, {} mismatches{}\n", tally.info.name, tally.points,
             tally.mismatches, notes);
}

int Report(const SweepSummary& summary, const SweepOptions& options) {
  for (const ScenarioTally& tally : summary.scenarios) PrintTally(tally);
  const char* what = options.fault == Fault::kKill ? "kill points" : "injected failures";
  fmt::print("crash-sweep: {} scenarios, {} {}, {} mismatches\n", summary.scenarios.size(),
             summary.points, what, summary.mismatches);
  if (summary.points < options.min_points || summary.scenarios.size() < options.min_scenarios) {
    fmt::print("crash-sweep: too few: at least {} points in {} scenarios are asked for\n",
               options.min_points, options.min_scenarios);
    return kFailed;
  }
  return summary.mismatches == 0 ? 0 : kFailed;
}

int Main(int argc, char** argv) {
  const Result<SweepOptions> options = ParseSweepOptions(argc, argv);
  if (!options.ok()) {
    fmt::print(stderr, "{}", SweepUsage());
    return Unable(options.error());
  }
  if (options->help) {
    fmt::print("{}", SweepUsage());
    return 0;
  }
  Sweep sweep(*options);
  if (options->list) return List(sweep);
  const Result<SweepSummary> summary = sweep.Run();
  if (!summary.ok()) return Unable(summary.error());
  return options->list_calls ? 0 : Report(*summary, *options);
}

}  // namespace
}  // namespace sandglass::crash

int main(int argc, char** argv) { return sandglass::crash::Main(argc, argv); }
