// `sandglass doctor`: everything holds in a real world; and whatever protection is taken away, the line that is about it says so.
#include "session/doctor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "session/probe.h"
#include "tests/support/deny_call.h"
#include "tests/support/must.h"
#include "world/local/local_world.h"

namespace sandglass::session {
namespace {

using test::DenyCall;
using test::Must;
using test::MustCall;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

const std::vector<std::string> kProbe = {SANDGLASS_BINARY, "doctor", "--probe"};

// What the words print, run as they are: the "world" that protects nothing.
Result<std::string> RunUnprotected(const ScratchProject&, const std::vector<std::string>& argv) {
  int ends[2];
  MustCall(::pipe2(ends, O_CLOEXEC), "pipe");
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) {
    ::dup2(ends[1], 1);
    std::vector<char*> words;
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execv(words[0], words.data());
    ::_exit(99);
  }
  ::close(ends[1]);
  std::string printed;
  char buffer[4096];
  for (ssize_t got; (got = ::read(ends[0], buffer, sizeof(buffer))) > 0;)
    printed.append(buffer, static_cast<size_t>(got));
  ::close(ends[0]);
  MustCall(::waitpid(child, nullptr, 0), "waitpid");
  return printed;
}

ScratchRunner RunProtected() { return RunInLocalWorld(SANDGLASS_BINARY, SANDGLASS_SHIM); }

std::set<std::string> NamesOf(const std::vector<Finding>& findings, Verdict verdict) {
  std::set<std::string> names;
  for (const Finding& finding : findings)
    if (finding.verdict == verdict) names.insert(finding.name);
  return names;
}

Verdict VerdictOf(const std::vector<Finding>& findings, std::string_view name) {
  for (const Finding& finding : findings)
    if (finding.name == name) return finding.verdict;
  return Verdict::kUnchecked;
}

class Doctor : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = world::WhyNoLocalWorld(); !why.empty())
      GTEST_SKIP() << "no local world: " << why;
  }
};

TEST_F(Doctor, FindsEveryProtectionOfARealWorld) {
  const std::vector<Finding> findings = ExamineWorld(kProbe, RunProtected());
  for (const Finding& finding : findings) {
    // No protection but a convenience, which some machines cannot have in all folders.
    if (finding.name == "system_layer" && finding.verdict == Verdict::kAbsent) continue;
    EXPECT_EQ(finding.verdict, Verdict::kProtects) << finding.name << ": " << finding.text;
  }
}

// An ordinary user may not do these two anywhere; for root they hold only in the world.
TEST_F(Doctor, NoticesEachProtectionThatIsMissing) {
  const std::set<std::string> refused_anyway =
      ::geteuid() == 0 ? std::set<std::string>() : std::set<std::string>{"trace", "handles"};
  for (const Finding& finding : ExamineWorld(kProbe, RunUnprotected)) {
    if (finding.name == "system_layer") {
      EXPECT_EQ(finding.verdict, Verdict::kAbsent) << finding.text;
      continue;
    }
    if (finding.name == "world" || refused_anyway.contains(finding.name)) continue;
    EXPECT_EQ(finding.verdict, Verdict::kFails) << finding.name << ": " << finding.text;
  }
}

TEST_F(Doctor, SaysWhenThereIsNoWorldToTry) {
  const auto findings = ExamineWorld(kProbe, RunInLocalWorld(SANDGLASS_BINARY, "/no/such/shim"));
  EXPECT_EQ(VerdictOf(findings, "world"), Verdict::kFails);
  EXPECT_EQ(NamesOf(findings, Verdict::kUnchecked).size(), findings.size() - 1);
}

// Lines about the machine: the same examination in a process that was denied something.
Verdict VerdictWithout(std::string_view name, const std::function<void()>& deny) {
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) {
    deny();
    ::_exit(static_cast<int>(VerdictOf(ExamineMachine(), name)));
  }
  int status = 0;
  MustCall(::waitpid(child, &status, 0), "waitpid");
  EXPECT_TRUE(WIFEXITED(status));
  return static_cast<Verdict>(WEXITSTATUS(status));
}

TEST_F(Doctor, NoticesAKernelThatRefusesNamespaces) {
  EXPECT_EQ(VerdictOf(ExamineMachine(), "namespaces"), Verdict::kProtects);
  // What glibc and we ourselves make processes with when namespaces are wanted.
  const Verdict verdict = VerdictWithout("namespaces", [] { DenyCall(SYS_clone); });
  EXPECT_EQ(verdict, Verdict::kFails);
}

TEST_F(Doctor, NoticesAKernelThatRefusesMountsInNamespaces) {
  const Verdict verdict = VerdictWithout("namespaces", [] { DenyCall(SYS_mount_setattr); });
  EXPECT_EQ(verdict, Verdict::kFails);
}

TEST_F(Doctor, NoticesAKernelWithoutSupervision) {
  EXPECT_EQ(VerdictOf(ExamineMachine(), "supervision"), Verdict::kProtects);
  EXPECT_EQ(VerdictWithout("supervision", [] { DenyCall(SYS_seccomp); }), Verdict::kFails);
}

TEST_F(Doctor, NoticesAKernelWithoutTheSecondLock) {
  EXPECT_EQ(VerdictWithout("second_lock", [] { DenyCall(SYS_landlock_create_ruleset); }),
            Verdict::kFails);
}

TEST_F(Doctor, NoticesThatLimitsCannotBeEnforced) {
  const auto hide_groups = [] {
    MustCall(::unshare(::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS), "unshare");
    MustCall(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "private");
    MustCall(::mount("none", "/sys/fs/cgroup", "tmpfs", 0, nullptr), "hide control groups");
  };
  for (const char* name : {"memory_limit", "cpu_limit"})
    EXPECT_EQ(VerdictWithout(name, hide_groups), Verdict::kAbsent) << name;
  // Of processes an ordinary user has another means.
  if (::geteuid() == 0) EXPECT_EQ(VerdictWithout("process_limit", hide_groups), Verdict::kAbsent);
}

TEST(ProbeTargets, SurviveWritingAndParsing) {
  const ProbeTargets targets{.host_process = 4711,
                             .loopback_port = 65535,
                             .abstract_socket = "name",
                             .socket_file = "/s\xff",
                             .secret_file = "/home/u/x",
                             .store_file = "/st ore",
                             .system_file = "/usr/x",
                             .new_file = "/n\nf"};
  const ProbeTargets read = Must(ParseTargets(WriteTargets(targets)));
  EXPECT_EQ(WriteTargets(read), WriteTargets(targets));
  EXPECT_EQ(read.socket_file, targets.socket_file);
}

TEST(ProbeTargets, WrongOnesAreRefused) {
  for (const char* text :
       {"", "{}", "[]", "{\"host_process\":-1}", "{\"host_process\":99999999999}"})
    EXPECT_FALSE(ParseTargets(text).ok()) << text;
}

TEST(ProbeReport, IsRefusedUnlessEveryTryIsInIt) {
  EXPECT_FALSE(ParseProbeReport("{\"mount\":false}").ok());
  EXPECT_FALSE(ParseProbeReport("").ok());
}

}  // namespace
}  // namespace sandglass::session
