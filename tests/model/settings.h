// What the environment says about a run of the model test.
//   SANDGLASS_MODEL_SEQUENCES  how many sequences; default: by SANDGLASS_SCALE and SANDGLASS_TEST_FS
//   SANDGLASS_MODEL_SEED       the first sequence's seed, each further one has the next; default: from the clock
//   SANDGLASS_MODEL_REQUIRE    fail when an operation or strategy that the place offers was used less often; default: 0. Of a full
//                              run, tools/model_counts.py judges the sum over all file systems
//   SANDGLASS_MODEL_REPORT     file for the counts as JSON, or a folder for <file system>.json
//   SANDGLASS_MODEL_SHRINK     0: report a failure as it is, without looking for a shorter one
//   SANDGLASS_MODEL_TRACE      print every operation at once
#pragma once

#include <cstdint>
#include <string>

namespace sandglass::model {

struct Settings {
  uint64_t sequences = 60;
  uint64_t seed = 0;
  uint64_t required = 0;
  bool shrink = true;
  std::string report;       // empty: none
  std::string file_system;  // as the runner calls it; empty: unknown

  static Settings FromEnvironment();
};

}  // namespace sandglass::model
