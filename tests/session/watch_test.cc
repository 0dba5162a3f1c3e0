// A session watches its projects: what a person does while commands run is told at once, and what commands do is not.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/io.h"
#include "base/process_tree.h"
#include "session/session.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"
#include "undo/undo_log.h"
#include "world/local/local_world.h"

namespace sandglass::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kTries = 2'000;
constexpr int kPauseUs = 10'000;

void WaitUntil(const std::function<bool()>& is_so) {
  for (int i = 0; i < kTries && !is_so(); ++i) ::usleep(kPauseUs);
}

std::string NameOf(const std::string& of) {
  const auto name = ReadFileAt(AT_FDCWD, ("/proc/" + of + "/comm").c_str(), 64);
  return name.ok() ? *name : "";
}

class WatchedSession : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = world::WhyNoLocalWorld(); !why.empty())
      GTEST_SKIP() << "no local world: " << why;
    nothing_ = Fd(MustCall(::open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null"));
    options_.shim_path = SANDGLASS_SHIM;
    options_.projects.push_back({{.project = workspace_.project(), .store = workspace_.store()}});
    options_.on_external = [this](const session::ExternalModification& event) {
      events_.push_back(event);
    };
    workspace_.WriteFile("person.txt", "1");
  }
  void Start() { session_ = Must(session::Session::Start(options_)); }

  session::CommandReport Run(const std::string& script) {
    auto streams =
        Must(session::HostStreams::Open({nothing_.get(), nothing_.get(), nothing_.get()}));
    return Must(session_->Run({.argv = {"/bin/sh", "-c", script}, .label = script}, streams));
  }
  // A command that lasts until the person has done `deed`, in a process of its own: a session has one thread.
  session::CommandReport RunBeside(const std::function<void()>& deed) {
    const pid_t session = ::getpid();
    const pid_t person = MustCall(::fork(), "fork");
    if (person == 0) {
      WaitUntil([&] { return IsWatched(session); });
      deed();
      workspace_.WriteFile("go", "");
      ::_exit(0);
    }
    auto report = Run("echo 1 > command.txt; while [ ! -e go ]; do sleep 0.02; done; rm go");
    int status = 0;
    MustCall(::waitpid(person, &status, 0), "waitpid");
    return report;
  }
  // Or will be in a moment.
  static bool IsWatched(pid_t session) {
    for (const pid_t child : ChildrenOf(session)) {
      std::error_code gone;
      for (const auto& task :
           std::filesystem::directory_iterator(fmt::format("/proc/{}/task", child), gone)) {
        if (NameOf(fmt::format("{}/task/{}", child, task.path().filename().string())) ==
            "sg-judge\n")
          return true;
      }
    }
    return false;
  }
  std::set<std::string> BarrierPaths() const {
    std::set<std::string> paths;
    const auto reader = Must(undo::StoreReader::Open(options_.projects.front().paths));
    for (const undo::HistoryEntry& entry : Must(reader.History())) {
      if (entry.barrier) paths.insert(entry.barrier->paths.begin(), entry.barrier->paths.end());
    }
    return paths;
  }
  void EditAndAwaitBarrier(const std::string& path) const {
    // The judge is there a moment before the folders are watched: a person who is not heard saves again.
    WaitUntil([&] {
      workspace_.WriteFile(path, "by a person");
      return BarrierPaths().contains(path);
    });
  }
  std::set<std::string> Told() const {
    std::set<std::string> paths;
    for (const session::ExternalModification& event : events_)
      paths.insert(event.affected_paths.begin(), event.affected_paths.end());
    return paths;
  }

  const TempWorkspace workspace_;
  Fd nothing_;
  session::SessionOptions options_;
  std::unique_ptr<session::Session> session_;
  std::vector<session::ExternalModification> events_;
};

TEST_F(WatchedSession, EB_01_WhatAPersonDoesBesideACommandIsToldAtOnce) {
  Start();
  const auto report = RunBeside([this] { EditAndAwaitBarrier("person.txt"); });
  session_->TakeEvents();
  EXPECT_THAT(Told(), Contains("person.txt"));
  EXPECT_THAT(BarrierPaths(), Contains("person.txt"));
  EXPECT_THAT(report.warnings, Contains(HasSubstr("somebody else changed person.txt")));
}

TEST_F(WatchedSession, EB_05_WhatCommandsDoIsNeverTold) {
  Start();
  RunBeside([this] { EditAndAwaitBarrier("person.txt"); });
  events_.clear();
  for (int i = 0; i < 3; ++i) {
    Run("for i in $(seq 60); do mkdir -p d/$i/x; echo $i > d/$i/x/f; cp d/$i/x/f d/$i/g; "
        "mv d/$i e$i; echo more >> e$i/g; chmod 600 e$i/g; ln e$i/g e$i/h; ln -s g e$i/s; done; "
        "sed -i s/1/2/ e1/g; (sleep 0.3; echo late) > late.log & rm -r e2*; rm -rf d; touch -d "
        "2020-01-01 e1/g; tar c e1 | (mkdir -p t && cd t && tar x); git init -q r 2>/dev/null; :");
    Run("rm -rf e* t late.log r");
  }
  RunBeside([this] { EditAndAwaitBarrier("again.txt"); });
  session_->TakeEvents();
  std::set<std::string> told = Told();
  for (const char* path : {"person.txt", "again.txt", "go"}) told.erase(path);
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(WatchedSession, FW_03_OffIsOff) {
  options_.watch.watching = session::Watching::kOff;
  Start();
  Run("echo 1 > command.txt; sleep 0.3");
  EXPECT_FALSE(IsWatched(::getpid()));
}

TEST_F(WatchedSession, EB_09_ASessionThatCannotLockOthersOutDoesNotStart) {
  options_.watch.policy = session::WatchPolicy::kLock;
  const auto session = session::Session::Start(options_);
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace sandglass::test
