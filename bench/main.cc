#include <benchmark/benchmark.h>

#include "bench/registry.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  // First: what earlier benchmarks leave in the allocator's pools would hide memory from its count.
  sandglass::bench::RegisterScale();
  sandglass::bench::RegisterBulk();
  sandglass::bench::RegisterLargeFile();
  sandglass::bench::RegisterMicro();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
