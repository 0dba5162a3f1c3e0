// Comparison: the same work done in two ways, in turns and in one run, as the median of the rounds' ratios.
//
// Each timed part starts from the same state of the disk: prepared, then everything written back.
// A benchmark that promises something reports the counters `ratio` (lower is better) and `limit`,
// which tools/bench.py and tools/bench_compare read. One thread.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace sandglass::bench {

using Seconds = std::chrono::duration<double>;

struct Side {
  std::function<void()> prepare;  // not timed; may be empty
  std::function<void()> work;
};

// Rounds after the first, which warms caches and brings the store to its steady state.
inline constexpr int kRounds = 9;

// Runs both sides in turns; the time of the benchmark is the median of `ours`. Counters: ratio (the
// median of those of the rounds: a machine that gets slower or faster meanwhile does so for both
// sides of a round), limit (0: none), ours_ms, plain_ms, and cpu_ratio: the same ratio of processor
// time, which other work on the machine disturbs less.
void Compare(benchmark::State& state, double limit, const Side& ours, const Side& plain);

// Processor time of the process, the kernel's part included.
Seconds CpuNow();
Seconds TimeOf(const std::function<void()>& work);
template <class T>
T Median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}
void ReportRatio(benchmark::State& state, double ratio, double limit);

// Registers a benchmark that measures by itself, once.
void RegisterOnce(const char* name, void (*body)(benchmark::State&));

}  // namespace sandglass::bench
