// warm_command SHIM FOLDER: what one more command costs in a world that is there already, next to the same program without one.
// Prints the median of the paired ratios as JSON.
//
// Both sides give the program an input that is at its end and a pipe for each stream of output, read these to their end, and know
// its exit code when they return: what any program does that runs another one for its output. The plain side forks and executes, as the
// limit says. The world's side is Session::Run(): a step of its own and supervision from the first call on.
//
// Commands follow each other at once, in batches that the two sides take in turns. The entries of empty steps in the history are put off while
// that lasts (session/step_book.h) and made in the rest after a batch, so they are in neither side of the ratio. What they cost whoever
// never rests is told besides: many more commands at once, in which the entries that must not wait any longer are made. So is how
// long a single command takes in a world at rest. Both are not what counts.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "session/session.h"

namespace sandglass {
namespace {

constexpr int kRounds = 20;
constexpr int kBatch = 20;
constexpr int kSingles = 50;
constexpr int kWithoutRest = 1000;  // several times as many as are put off
constexpr std::chrono::milliseconds kRest{50};
constexpr const char* kProgram = "/bin/true";

double Microseconds(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  return took.count();
}

double MicrosecondsEach(int count, const auto& work) {
  return Microseconds([&] {
           for (int i = 0; i < count; ++i) work();
         }) /
         count;
}

struct Pipe {
  Pipe() {
    int ends[2];
    CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    read = Fd(ends[0]);
    write = Fd(ends[1]);
  }
  Fd read, write;
};

[[noreturn]] void Become(int input, int output, int errors) {
  char* argv[] = {const_cast<char*>(kProgram), nullptr};
  const int streams[] = {input, output, errors};
  for (int stream = 0; stream < 3; ++stream) ::dup2(streams[stream], stream);
  ::execv(kProgram, argv);
  ::_exit(127);
}

// Until both are at their end.
void Drain(const Fd& output, const Fd& errors) {
  char buffer[4096];
  pollfd waits[] = {{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}};
  while (waits[0].fd >= 0 || waits[1].fd >= 0) {
    CHECK(::poll(waits, 2, -1) > 0);
    for (pollfd& wait : waits) {
      if (wait.revents != 0 && ::read(wait.fd, buffer, sizeof(buffer)) <= 0) wait.fd = -1;
    }
  }
}

void RunPlainly(int nothing) {
  Pipe output, errors;
  const pid_t child = ::fork();
  CHECK(child >= 0);
  if (child == 0) Become(nothing, output.write.get(), errors.write.get());
  output.write.Reset();
  errors.write.Reset();
  Drain(output.read, errors.read);
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child && status == 0);
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
  Status failed;
  const auto run_in_world = [&] {
    auto ran = session->Run({.argv = {kProgram}, .label = "true"}, streams);
    if (!ran.ok()) failed = ran.error();
  };
  const auto run_plainly = [&] { RunPlainly(nothing.get()); };
  std::vector<double> native, world, ratios, singles;
  for (int i = 0; i < kRounds && failed.ok(); ++i) {
    native.push_back(MicrosecondsEach(kBatch, run_plainly));
    world.push_back(MicrosecondsEach(kBatch, run_in_world));
    ratios.push_back(world.back() / native.back());
    std::this_thread::sleep_for(kRest);
  }
  for (int i = 0; i < kSingles && failed.ok(); ++i) {
    singles.push_back(Microseconds(run_in_world));
    std::this_thread::sleep_for(kRest);
  }
  const double plain = MicrosecondsEach(kWithoutRest, run_plainly);
  const double without_rest = MicrosecondsEach(kWithoutRest, run_in_world);
  TRY(failed);
  fmt::print(
      "{{\"native_us\":{:.0f},\"world_us\":{:.0f},\"world_at_rest_us\":{:.0f},"
      "\"ratio_without_rest\":{:.3f},\"ratio\":{:.3f}}}\n",
      Median(native), Median(world), Median(singles), without_rest / plain, Median(ratios));
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
