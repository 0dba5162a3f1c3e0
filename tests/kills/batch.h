// A batch: a script for the shell in a world that changes the project by some hundred calls of programs that people use, chosen at
// random. Each program that reports success prints kEffective; the last change writes the batch's number to kDoneFile.
#pragma once

#include <string>
#include <vector>

#include "tests/kills/known_tree.h"

namespace sandglass::test {

inline constexpr char kEffective = '\x02';

struct BatchSpec {
  int number = 0;
  int mutations = 0;
};

std::string BatchScript(const BatchSpec& spec, const TreeSnapshot& tree, Random& random);

// Programs that batches use where they are installed, and that are not installed here.
std::vector<std::string> MissingPrograms();

}  // namespace sandglass::test
