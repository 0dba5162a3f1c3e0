// warm_command SHIM FOLDER: what one more command costs in a world that is there already, next to a plain spawn of the same program.
// Prints the median of the paired ratios as JSON.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "base/fd.h"
#include "session/session.h"

namespace sandglass {
namespace {

constexpr int kRounds = 200;
constexpr const char* kProgram = "/bin/true";

double Microseconds(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  return took.count();
}

void Spawn() {
  char* argv[] = {const_cast<char*>(kProgram), nullptr};
  pid_t child = 0;
  CHECK(::posix_spawn(&child, kProgram, nullptr, nullptr, argv, environ) == 0);
  CHECK(::waitpid(child, nullptr, 0) == child);
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Status Measure(const std::string& shim, const std::string& folder) {
  session::SessionOptions options{.shim_path = shim};
  const std::string project = folder + "/project", store = folder + "/store";
  ::mkdir(project.c_str(), 0700);
  options.projects.push_back({{.project = project, .store = store}});
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  TRY_ASSIGN(auto streams,
             session::HostStreams::Open({nothing.get(), nothing.get(), nothing.get()}));
  TRY_ASSIGN(auto session, session::Session::Start(options));
  std::vector<double> native, world, ratios;
  Status failed;
  for (int i = 0; i < kRounds && failed.ok(); ++i) {
    native.push_back(Microseconds(Spawn));
    world.push_back(Microseconds([&] {
      auto ran = session->Run({.argv = {kProgram}, .label = "true"}, streams);
      if (!ran.ok()) failed = ran.error();
    }));
    ratios.push_back(world.back() / native.back());
  }
  TRY(failed);
  fmt::print("{{\"native_us\":{:.0f},\"world_us\":{:.0f},\"ratio\":{:.3f}}}\n", Median(native),
             Median(world), Median(ratios));
  return Ok();
}

}  // namespace
}  // namespace sandglass

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: warm_command SHIM FOLDER\n");
    return 2;
  }
  const sandglass::Status measured = sandglass::Measure(argv[1], argv[2]);
  if (!measured.ok()) fmt::print(stderr, "warm_command: {}\n", measured.error().message());
  return measured.ok() ? 0 : 1;
}
