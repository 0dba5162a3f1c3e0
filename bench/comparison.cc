#include "bench/comparison.h"

#include <ctime>

#include "bench/bench_project.h"

namespace sandglass::bench {
namespace {

struct Times {
  std::vector<Seconds> wall, cpu;

  void DropFirst() {
    wall.erase(wall.begin());
    cpu.erase(cpu.begin());
  }
};

void RunSide(const Side& side, Times& times) {
  if (side.prepare) side.prepare();
  SyncDisk();
  const Seconds cpu_before = CpuNow();
  times.wall.push_back(TimeOf(side.work));
  times.cpu.push_back(CpuNow() - cpu_before);
}

double MedianRatio(const std::vector<Seconds>& ours, const std::vector<Seconds>& plain) {
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / plain[i]);

  return Median(std::move(ratios));
}

double Milliseconds(Seconds time) { return time.count() * 1e3; }

}  // namespace

Seconds CpuNow() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return Seconds(static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9);
}

Seconds TimeOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::steady_clock::now() - start;
}

void ReportRatio(benchmark::State& state, double ratio, double limit) {
  state.counters["ratio"] = ratio;
  state.counters["limit"] = limit;
}

void Compare(benchmark::State& state, double limit, const Side& ours, const Side& plain) {
  for (auto _ : state) {
    Times our_times, plain_times;
    for (int round = 0; round <= kRounds; ++round) {
      // Whoever comes first in a round may find the disk in another mood: take turns in that too.
      const bool ours_first = round % 2 == 0;
      if (!ours_first) RunSide(plain, plain_times);
      RunSide(ours, our_times);
      if (ours_first) RunSide(plain, plain_times);
    }
    our_times.DropFirst();
    plain_times.DropFirst();
    const Seconds our_time = Median(our_times.wall), plain_time = Median(plain_times.wall);
    state.SetIterationTime(our_time.count());
    ReportRatio(state, MedianRatio(our_times.wall, plain_times.wall), limit);
    state.counters["cpu_ratio"] = MedianRatio(our_times.cpu, plain_times.cpu);
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
