// A person's edit: plain system calls that no bridge sees.
#pragma once

#include <string>

#include "base/result.h"
#include "tests/model/command.h"

namespace sandglass::model {

enum class EditOf : uint8_t { kNameOrObject, kObject };

// Changes the file in one of several ways and says which. kObject: the name keeps its object.
Result<const char*> EditFromOutside(const std::string& absolute_path, EditOf what, Dice& dice);

}  // namespace sandglass::model
