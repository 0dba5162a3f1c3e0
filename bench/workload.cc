// workload: work for the comparison of worlds, done the same way inside and outside, and a stopwatch that stands next to it: what is
// measured inside a world is the work and not the making of the world.
//
//   workload time CMD...      runs it and prints its nanoseconds on the last line
//   workload create DIR N     N small files
//   workload write FILE MIB   in blocks of 1 MiB
//   workload read FILE
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

[[noreturn]] void Die(std::string_view what) {
  fmt::print(stderr, "workload: {}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

void Need(long result, std::string_view what) {
  if (result < 0) Die(what);
}

constexpr size_t kBlock = 1 << 20;

int Create(const std::string& folder, int count) {
  const std::string content(100, 'x');
  Need(::mkdir(folder.c_str(), 0755), folder);
  for (int i = 0; i < count; ++i) {
    const std::string path = fmt::format("{}/{}", folder, i);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    Need(fd, path);
    Need(::write(fd, content.data(), content.size()), path);
    ::close(fd);
  }
  return 0;
}

int Write(const std::string& path, int mebibytes) {
  const std::string block(kBlock, 'y');
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  Need(fd, path);
  for (int i = 0; i < mebibytes; ++i) Need(::write(fd, block.data(), block.size()), path);
  Need(::close(fd), path);
  return 0;
}

int Read(const std::string& path) {
  std::string block(kBlock, '\0');
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  Need(fd, path);
  ssize_t got = 1;
  while (got > 0) got = ::read(fd, block.data(), block.size());
  Need(got, path);
  return 0;
}

int Time(char** argv) {
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  errno = ::posix_spawnp(&child, argv[0], nullptr, nullptr, argv, environ);
  if (errno != 0) Die(argv[0]);
  int status = 0;
  Need(::waitpid(child, &status, 0), "waitpid");
  const auto took = std::chrono::steady_clock::now() - start;
  fmt::print("\n{}\n", std::chrono::nanoseconds(took).count());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string verb = words.empty() ? "" : words[0];
  if (verb == "time" && argc > 2) return Time(argv + 2);
  if (verb == "create" && argc == 4) return Create(words[1], std::atoi(words[2].c_str()));
  if (verb == "write" && argc == 4) return Write(words[1], std::atoi(words[2].c_str()));
  if (verb == "read" && argc == 3) return Read(words[1]);
  fmt::print(stderr, "usage: workload time CMD... | create DIR N | write FILE MIB | read FILE\n");
  return 2;
}
