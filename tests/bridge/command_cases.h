// Commands that a world must run as the host does, and the project that they work on. The bridge's tests and the parity suite both
// run all of them.
#pragma once

#include <ostream>
#include <string>

#include "tests/support/fixtures.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::test {

struct CommandCase {
  const char* name;
  const char* command;
};
inline std::ostream& operator<<(std::ostream& out, const CommandCase& test_case) {
  return out << test_case.name;
}

#include "tests/bridge/commands.inc"

// In an empty project; it is not aged yet.
inline void MakeCommandProject(const TempWorkspace& space) {
  SmallTree(space.project());
  space.WriteFile("d/one", "1\n");
  space.WriteFile("d/two", "2\n");
  space.WriteFile("d/e/three", "3\n");
  space.WriteFile("big", std::string(600000, 'b'));
}

// With what the commands know of their surroundings. `outside` is beside the project and may be written.
inline std::string WithPlaces(const TempWorkspace& space, const std::string& command) {
  return "P=$PWD; OUT=" + space.root() + "/outside; " + command;
}

// The output names its own folders.
inline std::string Neutral(std::string text, const std::string& root) {
  for (size_t at = text.find(root); at != std::string::npos; at = text.find(root))
    text.replace(at, root.size(), "ROOT");
  return text;
}

}  // namespace sandglass::test
