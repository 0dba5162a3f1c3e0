// The libraries as a stranger meets them; the scripts beside this file do the work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "base/result.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::test {
namespace {

// Runs a script of this folder with SOURCE, BUILD, CXX and an empty folder WORK in its environment.
void ExpectSucceeds(const std::string& script) {
  const TempWorkspace workspace;
  const std::string command = "SOURCE='" SANDGLASS_SOURCE_DIR "' BUILD='" SANDGLASS_BUILD_DIR
                              "' CXX='" SANDGLASS_COMPILER "' WORK='" +
                              workspace.root() + "' sh -eu '" SANDGLASS_INSTALL_DIR "/" + script +
                              "' 2>&1";
  FILE* pipe = ::popen(command.c_str(), "re");
  CHECK(pipe != nullptr);
  std::string output;
  char buffer[4096];
  for (size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    output.append(buffer, got);
  const int status = ::pclose(pipe);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << output;
}

TEST(Install, TheReadmesExampleRunsAgainstWhatIsInstalled) { ExpectSucceeds("link_installed.sh"); }

TEST(Install, AnotherProjectCanBuildItAsAPart) { ExpectSucceeds("add_subdirectory.sh"); }

}  // namespace
}  // namespace sandglass::test
