// The groups of benchmarks; main() registers them in an order of its choosing. `ratio` lines report
// the counters that tools/bench.py reads: see comparison.h.
#pragma once

namespace sandglass::bench {

void RegisterScale();      // memory of a large step, time to open a long log
void RegisterBulk();       // 10,000 files deleted, brought back, overwritten, created
void RegisterLargeFile();  // a file of 1 GiB changed and truncated
void RegisterMicro();      // capture, compression, restore, journal, snapshot by size

}  // namespace sandglass::bench
