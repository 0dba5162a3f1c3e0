// Words for what a sequence found wrong.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ids.h"

namespace sandglass::model {

inline Error Wrong(std::string what) { return Error{Code::kInvalid, std::move(what)}; }

// "3, 2, 1"
std::string Ids(const std::vector<StepId>& ids);
// The first lines, indented, and how many more there are.
std::string Listed(std::vector<std::string> lines);

// What two failures of one kind have in common: the first two lines, without names and numbers.
std::string KindOf(const std::string& failure);

}  // namespace sandglass::model
