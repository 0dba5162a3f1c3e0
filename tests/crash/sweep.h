// Sweep: every scenario, every point, every deed; and the count of what did not come out as it must.
//
// First each scenario runs twice undisturbed: that numbers its calls, shows its states, and says which times differ from run to run.
// Then each (scenario, call, before or after) gets a trial of its own. Trials are spread over a few threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_annotations.h"
#include "tests/crash/sweep_options.h"
#include "tests/crash/trial.h"

namespace sandglass::crash {

struct ScenarioTally {
  ScenarioInfo info;
  Knowledge knowledge;
  uint64_t points = 0;  // trials in which the deed was done
  uint64_t unreached =
      0;  // the run was over before that call: threads do not always make the same calls
  uint64_t moved = 0;     // the call of that number was another one than in the undisturbed run
  uint64_t refusals = 0;  // trials in which an operation was refused
  uint64_t mismatches = 0;
  std::string first_problem;
};

struct SweepSummary {
  std::vector<ScenarioTally> scenarios;
  uint64_t points = 0;
  uint64_t mismatches = 0;
};

class Sweep {
 public:
  explicit Sweep(SweepOptions options) : options_(std::move(options)) {}

  // An Error means that the harness itself could not work.
  Result<SweepSummary> Run();
  // The scenarios that the options select.
  Result<std::vector<ScenarioInfo>> Scenarios();

 private:
  struct Job {
    size_t scenario;  // index into tallies_
    Deal deal;
  };

  Status MakeFolder();
  // Numbers the calls by `selection`.
  Status Learn(ScenarioTally& tally, CallSelection selection);
  void CountUndisturbed(ScenarioTally& tally, const std::vector<std::string>& problems,
                        const std::string& folder) EXCLUDES(mutex_);
  Status LearnAll();
  void PrintCalls() const;
  std::vector<Job> Jobs() const;
  std::vector<Deed> DeedsAt(const SeenCall& call) const;
  Status RunJob(const Job& job);
  void Count(const Job& job, const Verdict& verdict, const std::string& folder) EXCLUDES(mutex_);
  Result<Verdict> RunTrial(const ScenarioTally& tally, const Deal& deal, std::string& folder);
  Status CleanUp(const Verdict& verdict, const std::string& folder);
  std::string ReplayCommand(const ScenarioInfo& scenario, const Deal& deal) const;
  // Calls `work` with 0..count-1 on the workers; the first Error, if any.
  Status Spread(size_t count, const std::function<Status(size_t)>& work) const;
  Status WriteResults() const;
  SweepSummary Summary() const;

  const SweepOptions options_;
  std::string folder_;
  std::atomic<uint64_t> next_folder_{0};
  Mutex mutex_;  // the counts in tallies_, and the order of what is printed
  std::vector<ScenarioTally> tallies_;
  uint64_t kept_ GUARDED_BY(mutex_) = 0;
};

}  // namespace sandglass::crash
