#include "tests/model/isolated_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/fd.h"
#include "base/io.h"
#include "tests/support/must.h"

namespace sandglass::model {
namespace {

constexpr size_t kMaxReport = size_t{1} << 20;
constexpr int kFailed = 17;  // no exit code of a sanitizer

[[noreturn]] void BeChild(const std::function<std::optional<std::string>()>& check, int report,
                          std::chrono::seconds patience) {
  alarm(static_cast<unsigned>(patience.count()));
  const std::optional<std::string> failure = check();
  if (!failure) _exit(0);
  const std::string text = failure->substr(0, kMaxReport);
  // Should the report be lost, the exit code still tells.
  (void)WriteFully(report, AsBytes(text)).ok();
  _exit(kFailed);
}

int Reap(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

std::optional<std::string> RunIsolated(const std::function<std::optional<std::string>()>& check,
                                       std::chrono::seconds patience) {
  int ends[2];
  test::MustCall(pipe2(ends, O_CLOEXEC), "pipe2");
  Fd read_end(ends[0]), write_end(ends[1]);
  const pid_t child = test::MustCall(fork(), "fork");
  if (child == 0) BeChild(check, write_end.get(), patience);
  write_end.Reset();
  const Bytes report = test::Must(ReadFully(read_end.get(), kMaxReport));
  const int status = Reap(child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    return fmt::format("not done after {} s", patience.count());
  }
  if (WIFSIGNALED(status)) return fmt::format("died of signal {}", strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) != kFailed) return fmt::format("exited with {}", WEXITSTATUS(status));
  return std::string(report.begin(), report.end());
}

}  // namespace sandglass::model
