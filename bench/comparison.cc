#include "bench/comparison.h"

#include <algorithm>

#include "bench/bench_project.h"

namespace sandglass::bench {
namespace {

Seconds RunSide(const Side& side) {
  if (side.prepare) side.prepare();
  SyncDisk();
  return TimeOf(side.work);
}

double Milliseconds(Seconds time) { return time.count() * 1e3; }

}  // namespace

Seconds TimeOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::steady_clock::now() - start;
}

Seconds Median(std::vector<Seconds> times) {
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

void ReportRatio(benchmark::State& state, double ratio, double limit) {
  state.counters["ratio"] = ratio;
  state.counters["limit"] = limit;
}

void Compare(benchmark::State& state, double limit, const Side& ours, const Side& plain) {
  for (auto _ : state) {
    std::vector<Seconds> our_times, plain_times;
    for (int round = 0; round <= kRounds; ++round) {
      // Whoever comes first in a round may find the disk in another mood: take turns in that too.
      const bool ours_first = round % 2 == 0;
      if (!ours_first) plain_times.push_back(RunSide(plain));
      our_times.push_back(RunSide(ours));
      if (ours_first) plain_times.push_back(RunSide(plain));
    }
    our_times.erase(our_times.begin());
    plain_times.erase(plain_times.begin());
    const Seconds our_time = Median(our_times), plain_time = Median(plain_times);
    state.SetIterationTime(our_time.count());
    ReportRatio(state, our_time / plain_time, limit);
    state.counters["ours_ms"] = Milliseconds(our_time);
    state.counters["plain_ms"] = Milliseconds(plain_time);
  }
}

void RegisterOnce(const char* name, void (*body)(benchmark::State&)) {
  benchmark::RegisterBenchmark(name, body)
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace sandglass::bench
