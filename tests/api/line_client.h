// LineClient: the real program, started as one that another program drives by lines of JSON, and what it says.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "base/json.h"
#include "tests/support/must.h"

namespace sandglass::test {

class LineClient {
 public:
  struct Place {
    std::string state, home;
    std::vector<std::string> words;  // behind the command
    std::string program = SANDGLASS_BINARY;
    std::vector<std::string> before = {};     // in front of it
    std::function<void()> before_start = {};  // in the process that becomes the program
  };

  LineClient(const Place& place, const std::vector<std::string>& command) {
    int in[2], out[2];
    MustCall(::pipe2(in, O_CLOEXEC), "pipe");
    MustCall(::pipe2(out, O_CLOEXEC), "pipe");
    Fd their_in(in[0]), their_out(out[1]);
    in_ = Fd(in[1]);
    out_ = Fd(out[0]);
    err_ = Fd(MustCall(::memfd_create("err", MFD_CLOEXEC), "memfd"));
    std::vector<std::string> words = {place.program};
    words.insert(words.end(), place.before.begin(), place.before.end());
    words.insert(words.end(), command.begin(), command.end());
    words.insert(words.end(), place.words.begin(), place.words.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = MustCall(::fork(), "fork");
    if (pid_ == 0) {
      ::setenv("SANDGLASS_HOME", place.state.c_str(), 1);
      ::setenv("HOME", place.home.c_str(), 1);
      if (place.before_start) place.before_start();
      const int err =
          ::open(fmt::format("/proc/self/fd/{}", err_.get()).c_str(), O_WRONLY | O_APPEND);
      if (::dup2(their_in.get(), 0) < 0 || ::dup2(their_out.get(), 1) < 0 || ::dup2(err, 2) < 0)
        ::_exit(99);
      ::execv(argv[0], argv.data());
      ::_exit(99);
    }
  }
  // One whom somebody else serves, by a connected socket.
  explicit LineClient(Fd socket) : in_(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0)) {
    out_ = std::move(socket);
    err_ = Fd(MustCall(::memfd_create("err", MFD_CLOEXEC), "memfd"));
  }
  LineClient(const LineClient&) = delete;
  LineClient& operator=(const LineClient&) = delete;
  ~LineClient() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  void SendLine(const std::string& line) { Must(WriteFully(in_.get(), AsBytes(line + "\n"))); }

  void CloseInput() { in_.Reset(); }
  void CloseOutput() { out_.Reset(); }
  int input_fd() const { return in_.get(); }
  int output_fd() const { return out_.get(); }
  // Its exit code, or minus the signal. What it still says is read.
  int Wait() {
    CloseInput();
    while (out_.valid() && ReadMore(10'000)) {
    }
    int status = 0;
    MustCall(::waitpid(std::exchange(pid_, -1), &status, 0), "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string Log() const {
    MustCall(::lseek(err_.get(), 0, SEEK_SET), "rewind");
    return std::string(AsText(Must(ReadFully(err_.get(), 64 << 20))));
  }
  const std::vector<std::string>& lines() const { return lines_; }

 protected:
  bool is_open() const { return out_.valid() && !ended_; }
  bool ReadMore(int patience_ms) {
    pollfd ready{out_.get(), POLLIN, 0};
    if (::poll(&ready, 1, patience_ms) <= 0) return false;
    char buffer[1 << 16];
    const ssize_t got = ::read(out_.get(), buffer, sizeof(buffer));
    if (got <= 0) {
      ended_ = true;
      return false;
    }
    partial_.append(buffer, static_cast<size_t>(got));
    for (size_t end = partial_.find('\n'); end != partial_.npos; end = partial_.find('\n')) {
      lines_.push_back(partial_.substr(0, end));
      came_.push_back(Must(ParseJson(lines_.back(), 64 << 20)));
      partial_.erase(0, end + 1);
    }
    return true;
  }

  std::vector<Json> came_;

 private:
  pid_t pid_ = -1;
  Fd in_, out_, err_;
  std::string partial_;
  std::vector<std::string> lines_;
  bool ended_ = false;
};

}  // namespace sandglass::test
