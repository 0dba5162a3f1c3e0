// SandglassFixture: the real program and the real shim on a project of one test, with a state folder and a home of their own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "base/process_tree.h"
#include "session/bridge_process.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"
#include "world/local/local_world.h"

namespace sandglass::test {

using Words = std::vector<std::string>;

struct Ended {
  int exit_code = -1;  // negative: the signal that ended sandglass itself
  std::string out, err;
};

class SandglassFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = world::WhyNoLocalWorld(); !why.empty())
      GTEST_SKIP() << "no local world: " << why;
    state_ = workspace_.root() + "/state";
    home_ = workspace_.root() + "/home";
    MustCall(::mkdir(state_.c_str(), 0700), state_);
    MustCall(::mkdir(home_.c_str(), 0700), home_);
    MustCall(::mkdir((home_ + "/.ssh").c_str(), 0700), home_);
    workspace_.WriteFile("keep.txt", "kept\n");
    workspace_.WriteFile("src/deep/file", "old\n");
    MustCall(::symlink("file", workspace_.Path("src/deep/link").c_str()), "symlink");
    MustCall(::chmod(workspace_.Path("keep.txt").c_str(), 0640), "chmod");
  }

  // `sandglass` with these words, in the project or in `start_`. Its input is `input`.
  Ended Sandglass(const Words& words, const std::string& input = "") {
    return Finish(Begin(words, input));
  }
  Ended Run(const Words& command, const std::string& input = "") {
    Words words = {"run", "--"};
    words.insert(words.end(), command.begin(), command.end());
    return Sandglass(words, input);
  }
  Ended Shell(const std::string& script, const std::string& input = "") {
    return Run({"sh", "-c", script}, input);
  }

  struct Started {
    pid_t pid = -1;
    Fd out, err;
  };
  Started Begin(const Words& words, const std::string& input = "") {
    Started started;
    const Fd in(MustCall(::memfd_create("in", MFD_CLOEXEC), "memfd"));
    Must(PWriteFully(in.get(), AsBytes(input), 0));
    started.out = Fd(MustCall(::memfd_create("out", MFD_CLOEXEC), "memfd"));
    started.err = Fd(MustCall(::memfd_create("err", MFD_CLOEXEC), "memfd"));
    std::vector<char*> argv = {const_cast<char*>(SANDGLASS_BINARY)};
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    started.pid = MustCall(::fork(), "fork");
    if (started.pid == 0) {
      ::setenv("SANDGLASS_HOME", state_.c_str(), 1);
      ::setenv("HOME", home_.c_str(), 1);
      ::setenv("A_SECRET", "of the host", 1);
      if (before_start_) before_start_();
      const int redirected[] = {::dup2(in.get(), 0), ::dup2(started.out.get(), 1),
                                ::dup2(started.err.get(), 2)};
      const std::string& folder = start_.empty() ? workspace_.project() : start_;
      if (redirected[0] < 0 || ::chdir(folder.c_str()) != 0) ::_exit(99);
      ::execv(argv[0], argv.data());
      ::_exit(99);
    }
    return started;
  }
  Ended Finish(const Started& started) {
    int status = 0;
    MustCall(::waitpid(started.pid, &status, 0), "waitpid");
    Ended ended{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status)};
    ended.out = Content(started.out);
    ended.err = Content(started.err);
    return ended;
  }
  static std::string Content(const Fd& file) {
    MustCall(::lseek(file.get(), 0, SEEK_SET), "rewind");
    const Bytes bytes = Must(ReadFully(file.get(), 64 << 20));
    return std::string(AsText(bytes));
  }
  // Undo could keep its content only by more copying than a step may do.
  void MakeTooLargeToCopy(const std::string& rel) {
    constexpr off_t kBytes = off_t{300} << 20;
    workspace_.WriteFile(rel, "x");
    const Fd file(
        MustCall(::open(workspace_.Path(rel).c_str(), O_WRONLY | O_CLOEXEC), "open " + rel));
    MustCall(::fallocate(file.get(), 0, 0, kBytes), "fallocate");
  }
  void WaitUntilExists(const std::string& rel) {
    for (int i = 0; i < 1000 && !workspace_.Exists(rel); ++i) ::usleep(10'000);
    ASSERT_TRUE(workspace_.Exists(rel)) << rel;
  }

  // The bridge process of a running sandglass.
  static pid_t BridgeOf(pid_t sandglass) {
    for (const pid_t child : ChildrenOf(sandglass)) {
      const auto name =
          ReadFileAt(AT_FDCWD, ("/proc/" + std::to_string(child) + "/comm").c_str(), 64);
      if (name.ok() && *name == std::string(session::kBridgeName) + "\n") return child;
    }
    ADD_FAILURE() << "no bridge process";
    return -1;
  }

  // A process of this machine that has `word` as its last argument.
  static bool IsRunning(const std::string& word) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const auto line = ReadFileAt(AT_FDCWD, (entry.path() / "cmdline").c_str(), 1 << 20);
      if (line.ok() && line->ends_with(std::string("\0", 1) + word + std::string("\0", 1)))
        return true;
    }
    return false;
  }

  // It may have been started and not have executed its program yet.
  static bool BeginsToRun(const std::string& word) {
    for (int i = 0; i < 1000 && !IsRunning(word); ++i) ::usleep(10'000);
    return IsRunning(word);
  }

  TempWorkspace workspace_;
  std::string state_, home_;
  std::function<void()> before_start_;  // in the process that becomes the program
  std::string start_;                   // where the program is started; "": in the project
};

}  // namespace sandglass::test
