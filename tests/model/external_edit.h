// A person's edit: plain system calls that no bridge sees.
#pragma once

#include <string>

#include "base/result.h"
#include "tests/model/command.h"

namespace sandglass::model {

enum class EditOf : uint8_t { kNameOrObject, kObject, kFolder };

// Changes the file in one of several ways and says which. kObject: the name keeps its object. kFolder: it is a folder, and what changes
// is the folder itself and no name in it.
Result<const char*> EditFromOutside(const std::string& absolute_path, EditOf what, Dice& dice);

}  // namespace sandglass::model
