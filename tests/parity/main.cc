// parity_program prepare | run | document
//   prepare: makes a stage for each case, in folders of the current folder
//   run: performs the cases and prints one line for each
//   document: prints docs/parity.md
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "tests/parity/case.h"
#include "tests/parity/document.h"
#include "tests/parity/outcome.h"
#include "tests/parity/stage.h"

namespace sandglass::parity {
namespace {

std::string FolderOf(size_t index) { return fmt::format("case{}", index); }

int Prepare(const Cases& cases) {
  ::umask(022);
  for (size_t i = 0; i < cases.size(); ++i) {
    if (::mkdir(FolderOf(i).c_str(), 0755) != 0 || ::chdir(FolderOf(i).c_str()) != 0) return 1;
    MakeStage();
    if (::chdir("..") != 0) return 1;
  }
  return 0;
}

// What root has in a world. Outside it has more, and then not even the kernel would be the same.
void DropCapabilities() {
  constexpr uint64_t kKept = 1ull << CAP_CHOWN | 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FOWNER |
                             1ull << CAP_FSETID | 1ull << CAP_SETUID | 1ull << CAP_SETGID;
  for (int cap = 0; cap <= 63; ++cap)
    if ((kKept >> cap & 1) == 0) ::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  data[0].effective = data[0].permitted = ::geteuid() == 0 ? static_cast<uint32_t>(kKept) : 0;
  ::syscall(SYS_capset, &header, data);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

[[noreturn]] void Act(const Case& test_case) {
  ::alarm(10);
  if (test_case.who == Who::kOther && ::geteuid() == 0) {
    const bool became = ::setresgid(kOtherUser, kOtherUser, kOtherUser) == 0 &&
                        ::setresuid(kOtherUser, kOtherUser, kOtherUser) == 0;
    if (!became) ::_exit(1);
  }
  TheOutcome().result = test_case.act();
  ::_exit(0);
}

std::string ResultText(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return "could not act";
  if (TheOutcome().result >= 0) return std::to_string(TheOutcome().result);
  const char* name = ::strerrorname_np(static_cast<int>(-TheOutcome().result));
  return name != nullptr ? name : fmt::format("errno {}", -TheOutcome().result);
}

std::string Perform(const Case& test_case) {
  CloseClosed();
  const Stage before = Look();
  TheOutcome() = {};
  const pid_t child = ::fork();
  if (child == 0) Act(test_case);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return "no process";
  const std::string changes = Changes(before, Look());
  OpenClosed();
  return fmt::format("{}{}{}", ResultText(status),
                     std::string_view(TheOutcome().notes, TheOutcome().length), changes);
}

int Run(const Cases& cases) {
  ::umask(022);
  DropCapabilities();
  for (size_t i = 0; i < cases.size(); ++i) {
    if (::chdir(FolderOf(i).c_str()) != 0) return 1;
    const std::string line = fmt::format("{} => {}", cases[i].Name(), Perform(cases[i]));
    // Each at once: a case that ends the program is then the one after the last line.
    std::puts(line.c_str());
    std::fflush(stdout);
    if (::chdir("..") != 0) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace sandglass::parity

int main(int argc, char** argv) {
  using namespace sandglass::parity;
  const std::string_view job = argc == 2 ? argv[1] : "";
  if (job == "document") {
    std::fputs(Document().c_str(), stdout);
    return 0;
  }
  const Cases cases = AllCases();
  if (job == "prepare") return Prepare(cases);
  if (job == "run") return Run(cases);
  return 2;
}
