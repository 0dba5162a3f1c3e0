// What grows with the number of paths: the memory of one large step, the time to open a long log.

#include <malloc.h>

#include <fstream>

#include "bench/bench_project.h"
#include "bench/comparison.h"
#include "bench/registry.h"
#include "tests/support/must.h"

namespace sandglass::bench {
namespace {

using test::Must;

constexpr double kMemoryLimit = 64 << 20;
constexpr size_t kManyPaths = 100'000;
constexpr Seconds kOpenLimit{0.050};
constexpr int kSteps = 100;
constexpr size_t kPathsPerStep = 1'000;

// A line "<key>: <n> kB" of /proc/self/status, in bytes.
uint64_t StatusBytes(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key) && line[key.size()] == ':') {
      return std::stoull(line.substr(key.size() + 1)) << 10;
    }
  }
  return 0;
}

// How much more memory than before was resident at most while `work` ran: the heap, and also the
// mapped pages of the journal, which belong to the kernel's cache.
template <class Work>
uint64_t PeakGrowth(const Work& work) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the high-water mark starts anew
  const uint64_t before = StatusBytes("VmRSS");
  work();
  return StatusBytes("VmHWM") - before;
}

void StepOfManyPaths(benchmark::State& state) {
  BenchProject project(InlineOptions(100));
  const FileSet files(project.root(), "d", kManyPaths);
  files.ForEach([](const FileAt& at) { PlainCreate(at, ""); });
  const auto remove_all = [&] {
    files.ForEach([&](const FileAt& at) { BridgeRemove(project.interceptor(), at); });
  };
  for (auto _ : state) {
    uint64_t peak = 0;
    state.SetIterationTime(
        TimeOf([&] { peak = PeakGrowth([&] { project.Step(remove_all); }); }).count());
    ReportRatio(state, static_cast<double>(peak) / kMemoryLimit, 1);
    state.counters["peak_bytes"] = static_cast<double>(peak);
    state.counters["rollback_peak_bytes"] =
        static_cast<double>(PeakGrowth([&] { Must(project.log().Rollback(1)); }));
  }
}

// The time to open a log of kSteps steps, each with kPathsPerStep files overwritten.
class LongLog {
 public:
  explicit LongLog(size_t file_bytes) : project_(InlineOptions(kSteps)) {
    const FileSet files(project_.root(), "d", kPathsPerStep);
    const std::string content = SampleContent(file_bytes);
    files.ForEach([&](const FileAt& at) { PlainCreate(at, content); });
    for (int step = 0; step < kSteps; ++step) {
      project_.Step([&] {
        files.ForEach(
            [&](const FileAt& at) { BridgeOverwrite(project_.interceptor(), at, content); });
      });
    }
    project_.CloseLog();
    stored_ = BytesBelow(project_.store());
  }

  Seconds Open() {
    project_.CloseLog();
    return TimeOf([&] { project_.Reopen(InlineOptions(kSteps)); });
  }
  double stored() const { return static_cast<double>(stored_); }

 private:
  BenchProject project_;
  uint64_t stored_ = 0;
};

constexpr int kOpens = 21;

void OpenLongLog(benchmark::State& state) {
  LongLog log(400);
  for (auto _ : state) {
    std::vector<Seconds> times;
    for (int i = 0; i < kOpens; ++i) times.push_back(log.Open());
    const Seconds time = Median(times);
    state.SetIterationTime(time.count());
    ReportRatio(state, time / kOpenLimit, 1);
    state.counters["stored_bytes"] = log.stored();
  }
}

void OpenHeavyLog(benchmark::State& state) {
  LongLog light(400), heavy(4000);
  for (auto _ : state) {
    std::vector<Seconds> light_times, heavy_times;
    for (int i = 0; i < kOpens; ++i) {
      light_times.push_back(light.Open());
      heavy_times.push_back(heavy.Open());
    }
    const Seconds time = Median(heavy_times);
    state.SetIterationTime(time.count());
    ReportRatio(state, time / Median(light_times), 1.5);
    state.counters["stored_bytes"] = heavy.stored();
  }
}

}  // namespace

void RegisterScale() {
  RegisterOnce("memory_of_100000_paths", StepOfManyPaths);
  RegisterOnce("open_100_steps_of_1000_paths", OpenLongLog);
  RegisterOnce("open_with_10_times_the_bytes", OpenHeavyLog);
}

}  // namespace sandglass::bench
