// Commands that ask for much, or do not end as they should.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "base/json.h"
#include "tests/session/shell_fixture.h"
#include "tests/session/victims.h"
#include "tests/support/tree_snapshot.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DemandingCommand : public ShellFixture {};

TEST_F(DemandingCommand, OpensTenThousandFilesAtOnce) {
  const TreeSnapshot before = workspace_.Snapshot();
  const Ended ran = Shell(
      "python3 -c '\n"
      "import os, resource\n"
      "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
      "resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n"
      "os.mkdir(\"many\")\n"
      "files = [open(f\"many/{i}\", \"w\") for i in range(10000)]\n"
      "for f in files: f.write(\"x\")\n"
      "for f in files: f.close()\n"
      "print(len(os.listdir(\"many\")))'");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "10000\n");
  EXPECT_EQ(workspace_.ReadFile("many/9999"), "x");
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

// Whoever reads slowly, or not at all, must not make us hold it all.
TEST_F(DemandingCommand, PrintsGigabytesInBoundedMemory) {
  const char* scale = std::getenv("SANDGLASS_SCALE");
  const bool full = scale != nullptr && std::string_view(scale) == "full";
  const std::string bytes = full ? "10000000000" : "500000000";
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) {
    ::setenv("SANDGLASS_HOME", state_.c_str(), 1);
    ::setenv("HOME", home_.c_str(), 1);
    const Fd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (::dup2(nowhere.get(), 1) == 1 && ::chdir(workspace_.project().c_str()) == 0)
      ::execl(SANDGLASS_BINARY, "sandglass", "run", "--", "sh", "-c",
              ("yes | head -c " + bytes).c_str(), nullptr);
    ::_exit(99);
  }
  int status = 0;
  rusage used{};
  MustCall(::wait4(child, &status, 0, &used), "wait4");
  EXPECT_EQ(status, 0);
  EXPECT_LT(used.ru_maxrss, 100 << 10) << "kilobytes";
}

TEST_F(DemandingCommand, IgnoresSigtermAndIsEndedAllTheSame) {
  const auto begin = std::chrono::steady_clock::now();
  const Ended ran = Sandglass({"run", "--timeout", "300ms", "--", "sh", "-c",
                               "trap '' TERM; touch made; while :; do sleep 0.05; done"});
  EXPECT_EQ(ran.exit_code, 128 + SIGKILL) << ran.err;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_FALSE(workspace_.Exists("made"));
}

TEST_F(DemandingCommand, ForksDaemonsAndWhatTheyDidIsUndoneToo) {
  AdoptOrphans();
  const TreeSnapshot before = workspace_.Snapshot();
  const Ended ran = Shell(
      "for i in 1 2 3; do (setsid sh -c \"trap '' TERM HUP; while :; do echo $i >>log$i; sleep "
      "0.01; done\" "
      "</dev/null >/dev/null 2>&1 &); done; while ! test -e log1 -a -e log2 -a -e log3; do sleep "
      "0.01; done");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(SurvivorsAfter(std::chrono::seconds(10)), IsEmpty());
  // The moment between the step's end and theirs is an ambient step.
  for (int i = 0; i < 3 && workspace_.Exists("log1"); ++i)
    EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
}

TEST_F(DemandingCommand, FillsTheDiskAndIsUndoneOnceThereIsALittleRoom) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to mount a small file system";
  MustCall(::unshare(CLONE_NEWNS), "unshare");
  MustCall(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "private mounts");
  MustCall(::mount("none", workspace_.root().c_str(), "tmpfs", 0, "size=16m"), "tmpfs");
  for (const std::string& folder : {state_, home_, workspace_.project()})
    MustCall(::mkdir(folder.c_str(), 0700), folder);
  workspace_.WriteFile("keep.txt", "kept\n");
  workspace_.WriteFile("src/file", std::string(1 << 20, 'a'));
  const std::string ballast = workspace_.root() + "/ballast";
  {
    const Fd file(MustCall(::open(ballast.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), ballast));
    MustCall(::fallocate(file.get(), 0, 0, 2 << 20), "fallocate");
  }
  const TreeSnapshot before = workspace_.Snapshot();
  const Ended ran = Shell(
      "echo changed >keep.txt; rm src/file; mkdir a; cat /dev/zero >a/fill; code=$?; echo small "
      ">a/small; mv a b; exit $code");
  EXPECT_NE(ran.exit_code, 0) << "or the disk was not full";
  const TreeSnapshot full = workspace_.Snapshot();
  const Ended refused = Sandglass({"undo"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("too little room to take this back safely; free "));
  EXPECT_TRUE(TreesEqual(full, workspace_.Snapshot()));
  MustCall(::unlink(ballast.c_str()), ballast);
  const Ended undone = Sandglass({"undo"});
  EXPECT_EQ(undone.exit_code, 0) << undone.err;
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot()));
  MustCall(::umount2(workspace_.root().c_str(), MNT_DETACH), "umount");
}

// It rests when a line ends: a write in the very moment in which a step closes may be taken for an edit by somebody else.
TEST_F(DemandingCommand, KeepsADatabaseOpenOverManyLines) {
  const TreeSnapshot before = workspace_.Snapshot();
  StartShell();
  Type("coproc sqlite3 base.db");
  Type(
      "ask() { echo \"$1; select 'did it';\" >&${COPROC[1]}; read -r -u ${COPROC[0]} answer; echo "
      "\"$answer\"; sleep 0.1; }");
  EXPECT_THAT(Type("ask 'pragma journal_mode=wal'; ask 'create table t (a)'"), HasSubstr("did it"));
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(
        Type(fmt::format("ask 'insert into t select {} from generate_series(1, 500)'; touch line{}",
                         i, i)),
        HasSubstr("did it"));
  }
  // It has the database open for writing: who it is can be read.
  const Ended refused = Sandglass({"undo", "11", "--json"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.out, HasSubstr("\"busy\""));
  EXPECT_THAT(refused.out, HasSubstr("\"pids\":["));
  Type("eval \"exec ${COPROC[1]}>&-\"; wait");
  EXPECT_THAT(Type("sqlite3 base.db 'select count(*) from t'"), HasSubstr("5000"));
  const TreeSnapshot after = workspace_.Snapshot();
  int undone = 0;
  std::string said;
  while (undone < 30 && (said = Type("undo")).find("undone") != std::string::npos) ++undone;
  EXPECT_TRUE(TreesEqual(before, workspace_.Snapshot())) << undone << " undone, then: " << said;
  Type(fmt::format("redo {}", undone));
  EXPECT_TRUE(TreesEqual(after, workspace_.Snapshot()));
  EXPECT_THAT(Type("sqlite3 base.db 'pragma integrity_check; select count(*) from t'"),
              HasSubstr("ok\r\n5000"));
  EXPECT_EQ(Leave(), 0);
}

}  // namespace
}  // namespace sandglass::test
