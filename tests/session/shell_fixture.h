// ShellFixture: `sandglass shell` on a terminal of the test's own, which types lines and reads what is shown.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/session/sandglass_fixture.h"

namespace sandglass::test {

class ShellFixture : public SandglassFixture {
 protected:
  static constexpr std::string_view kPrompt = "(sandglass) $ ";

  void StartAtTerminal(Words words) {
    words.insert(words.begin(), "sandglass");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    int terminal = -1;
    shell_ = MustCall(::forkpty(&terminal, nullptr, nullptr, nullptr), "forkpty");
    if (shell_ == 0) {
      ::setenv("SANDGLASS_HOME", state_.c_str(), 1);
      ::setenv("HOME", home_.c_str(), 1);
      ::setenv("TERM", "dumb", 1);
      if (::chdir(workspace_.project().c_str()) == 0) ::execv(SANDGLASS_BINARY, argv.data());
      ::_exit(99);
    }
    terminal_ = Fd(terminal);
  }
  // What was shown before the first prompt.
  std::string StartShell(const Words& options = {}) {
    Words words = {"shell", "-e", "PS1=$ "};
    words.insert(words.end(), options.begin(), options.end());
    StartAtTerminal(std::move(words));
    std::string shown = ReadUntil("# ", "$ ");
    // A prompt that no machine's settings change, and no echo of what is typed.
    Type("stty -echo; PS1='(sandglass) $ '");
    return shown;
  }
  // What is shown until the next prompt.
  std::string Type(const std::string& line) {
    Send(line + "\r");
    return ReadUntil(kPrompt);
  }
  void Send(const std::string& bytes) { Must(WriteFully(terminal_.get(), AsBytes(bytes))); }
  // Until it ends with one of these, or hangs up.
  std::string ReadUntil(std::string_view end, std::string_view or_end = "\x01") {
    std::string seen;
    while (!seen.ends_with(end) && !seen.ends_with(or_end)) {
      const auto more = ReadSome(std::chrono::seconds(20));
      if (!more) {
        ADD_FAILURE() << "nothing more came after: " << seen;
        return seen;
      }
      if (more->empty()) return seen;
      seen += *more;
    }
    return seen;
  }
  // What is shown for so long, or until it hangs up.
  std::string ReadFor(std::chrono::microseconds duration) {
    const auto end = std::chrono::steady_clock::now() + duration;
    std::string seen;
    while (const auto more = ReadSome(end - std::chrono::steady_clock::now())) {
      if (more->empty()) return seen;
      seen += *more;
    }
    return seen;
  }
  int Leave(const std::string& line = "exit") {
    Send(line + "\r");
    ReadUntil("\x01");
    int status = 0;
    MustCall(::waitpid(shell_, &status, 0), "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  pid_t shell_ = -1;
  Fd terminal_;

 private:
  // Nullopt: nothing came. Empty: it hung up.
  std::optional<std::string> ReadSome(std::chrono::nanoseconds patience) {
    const auto left = std::max<int64_t>(0, patience.count());
    const timespec wait{left / 1'000'000'000, left % 1'000'000'000};
    pollfd ready{terminal_.get(), POLLIN, 0};
    if (::ppoll(&ready, 1, &wait, nullptr) <= 0) return std::nullopt;
    char buffer[4096];
    const ssize_t got = ::read(terminal_.get(), buffer, sizeof(buffer));
    return std::string(buffer, static_cast<size_t>(std::max<ssize_t>(0, got)));
  }
};

}  // namespace sandglass::test
