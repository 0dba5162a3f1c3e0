// A person's edit: plain system calls that no bridge sees.
#pragma once

#include <string>

#include "base/result.h"
#include "tests/model/command.h"

namespace sandglass::model {

// Changes the file in one of several ways and says which.
Result<const char*> EditFromOutside(const std::string& absolute_path, Dice& dice);

}  // namespace sandglass::model
