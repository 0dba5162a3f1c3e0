// A diff in short: one line for each changed path, and a total, in the manner of `git diff --stat`. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "undo/types.h"

namespace sandglass::cli {

// `changes` and `diff` are of one step; `columns` is how long a line may be, if that can be.
std::string DiffStat(const std::vector<undo::Change>& changes, std::string_view diff,
                     size_t columns);

}  // namespace sandglass::cli
