// ApiFixture: a project, and a place for the state and the home of the program whose interface a test drives.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/io.h"
#include "tests/api/line_client.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"
#include "world/local/local_world.h"

namespace sandglass::test {

class ApiFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = world::WhyNoLocalWorld(); !why.empty())
      GTEST_SKIP() << "no local world: " << why;
    place_.state = workspace_.root() + "/state";
    place_.home = workspace_.root() + "/home";
    MustCall(::mkdir(place_.state.c_str(), 0700), place_.state);
    MustCall(::mkdir(place_.home.c_str(), 0700), place_.home);
    workspace_.WriteFile("keep.txt", "kept\n");
    workspace_.WriteFile("src/main.c", "int main;\n");
  }
  // The user's settings, for sessions that start afterwards.
  void WriteConfig(std::string_view text) {
    const std::string file = place_.state + "/sandglass.toml";
    const Fd toml(
        MustCall(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), file));
    Must(WriteFully(toml.get(), AsBytes(text)));
  }
  void WaitUntilExists(const std::string& rel) {
    for (int i = 0; i < 3000 && !workspace_.Exists(rel); ++i) ::usleep(10'000);
    ASSERT_TRUE(workspace_.Exists(rel)) << rel;
  }

  TempWorkspace workspace_;
  LineClient::Place place_;
};

}  // namespace sandglass::test
