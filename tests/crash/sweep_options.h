// The command line of crash_sweep. Value type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "base/result.h"
#include "tests/crash/tracer.h"

namespace sandglass::crash {

enum class Fault : uint8_t { kKill, kNoSpace, kIo, kShort };

struct SweepOptions {
  std::string program;  // the scenario program; default: crash_scenario beside this program
  std::string folder;   // where trials create their folders
  std::string results;  // JSON Lines for the test report; "": none
  std::string file_system = "-";  // what the report calls the place
  std::string scenario = "*";     // shell pattern
  Fault fault = Fault::kKill;
  CallSelection calls = CallSelection::kDistinct;
  uint32_t sample = 1;  // every how manyth point
  uint32_t workers = 2 * std::max(1u, std::thread::hardware_concurrency());  // they often wait
  uint64_t min_points = 0;
  uint64_t min_scenarios = 0;
  std::optional<size_t> point;  // only this call
  std::optional<Deed> when;     // only before or only after it
  bool list = false;
  bool list_calls = false;  // print the numbered calls of the scenarios instead of sweeping
  bool keep = false;        // keep every folder
  bool help = false;
};

// kInvalid: an option that does not exist or makes no sense; the message says which.
Result<SweepOptions> ParseSweepOptions(int argc, char** argv);
std::string SweepUsage();

}  // namespace sandglass::crash
