// What the process of a case tells the one that prints, in memory that they share. The program runs one case at a time.
#pragma once

#include <cstddef>

namespace sandglass::parity {

struct Outcome {
  long result;
  size_t length;
  char notes[4096];
};
Outcome& TheOutcome();

}  // namespace sandglass::parity
