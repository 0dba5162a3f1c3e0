// ParityFixture: commands natively and, as one step, in a world that `sandglass run` makes.
#pragma once

#include <string>
#include <vector>

#include "tests/bridge/command_cases.h"
#include "tests/bridge/test_world.h"
#include "tests/session/sandglass_fixture.h"

namespace sandglass::test {

class ParityFixture : public SandglassFixture {
 protected:
  // In the world of the project; what lies beside the project in `outside` may be written.
  CommandResult RunInWorld(const std::string& command) {
    const std::string outside = workspace_.root() + "/outside";
    const Ended ended =
        Sandglass({"run", "--rw", outside, "--ro", SANDGLASS_BIN, "-e", "LC_ALL=C", "-e",
                   "HOME=/nonexistent", "--", "bash", "-c", "exec 2>&1; " + command});
    return {ended.exit_code, ended.out + ended.err};
  }
  static CommandResult Natively(const std::string& command, const std::string& folder) {
    return RunNatively(command, folder, ::geteuid());
  }
};

inline std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace sandglass::test
