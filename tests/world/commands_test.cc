// What the shim does with commands.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>

#include "tests/world/world_client.h"

namespace sandglass::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WorldCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = world::WhyNoLocalWorld(); !why.empty())
      GTEST_SKIP() << "no local world: " << why;
    world_.emplace();
  }
  TestWorld& world() { return *world_; }

  // Runs on a terminal of 24 x 80.
  static control::Exec OnTerminal(std::string_view command) {
    control::Exec exec = Shell(command);
    exec.pty = control::TerminalSize{};
    exec.takes_input = true;
    return exec;
  }
  static control::Exec WithInput(std::string_view command) {
    control::Exec exec = Shell(command);
    exec.takes_input = true;
    return exec;
  }

 private:
  std::optional<TestWorld> world_;
};

TEST_F(WorldCommand, SH_01_StartsPrintsAndCompletes) {
  const Ran ran = world().Run("echo printed");
  EXPECT_EQ(ran.out, "printed\n");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.error, "");
  EXPECT_THAT(world().problems(), IsEmpty());
}

TEST_F(WorldCommand, SH_02_TellsItsExitCode) { EXPECT_EQ(world().Run("exit 42").exit_code, 42); }

TEST_F(WorldCommand, ThatASignalEndedSaysWhich) {
  const Ran ran = world().Run("kill -USR1 $$");
  EXPECT_EQ(ran.exit_code, 128 + SIGUSR1);
  EXPECT_EQ(ran.signal, SIGUSR1);
}

TEST_F(WorldCommand, SH_03_KeepsItsTwoStreamsApart) {
  const Ran ran = world().Run("echo one; echo two >&2");
  EXPECT_EQ(ran.out, "one\n");
  EXPECT_EQ(ran.err, "two\n");
}

TEST_F(WorldCommand, TakesAProgramWithArguments) {
  control::Exec exec;
  exec.argv = {"printf", "%s|", "a b", "$HOME"};
  EXPECT_EQ(world().Run(exec).out, "a b|$HOME|");
}

TEST_F(WorldCommand, SH_04_GetsWhatItsEnvironmentAdds) {
  control::Exec exec = Shell("echo $COLOUR $SANDGLASS");
  exec.env = {{"COLOUR", "blue"}};
  EXPECT_EQ(world().Run(exec).out, "blue 1\n");
}

TEST_F(WorldCommand, SH_04_StartsInTheProjectOrWhereItIsTold) {
  EXPECT_EQ(world().Run("pwd").out, world().project() + "\n");
  control::Exec exec = Shell("pwd");
  exec.cwd = "/usr";
  EXPECT_EQ(world().Run(exec).out, "/usr\n");
}

TEST_F(WorldCommand, ThatDoesNotExistIs127) {
  control::Exec exec;
  exec.argv = {"no-such-program"};
  const Ran ran = world().Run(exec);
  EXPECT_EQ(ran.exit_code, 127);
  EXPECT_EQ(ran.error, "no-such-program: No such file or directory");
}

TEST_F(WorldCommand, ThatIsNoProgramIs126) {
  control::Exec exec;
  exec.argv = {"/etc/passwd"};
  const Ran ran = world().Run(exec);
  EXPECT_EQ(ran.exit_code, 126);
  EXPECT_EQ(ran.error, "/etc/passwd: Permission denied");
}

TEST_F(WorldCommand, InAFolderThatDoesNotExistDoesNotStart) {
  control::Exec exec = Shell("true");
  exec.cwd = "/no/such";
  const Ran ran = world().Run(exec);
  EXPECT_EQ(ran.exit_code, 126);
  EXPECT_EQ(ran.error, "no folder /no/such: No such file or directory");
}

TEST_F(WorldCommand, HasOnlyItsThreeDescriptors) {
  // The third is the folder that ls reads.
  EXPECT_EQ(world().Run("exec ls /proc/self/fd").out, "0\n1\n2\n3\n");
}

TEST_F(WorldCommand, MayPrintAMebibyte) {
  const Ran ran = world().Run("head -c 1048576 /dev/zero | tr '\\0' x");
  EXPECT_EQ(ran.out, std::string(1048576, 'x'));
}

TEST_F(WorldCommand, ThatPrintsWithoutEndStopsAtItsWindow) {
  world().StopTaking();
  const StepId id = world().Begin(Shell("yes"));
  world().Pump(milliseconds(300));
  EXPECT_EQ(world().Of(id).out.size(), control::kWindowBytes);
  world().GoOnTaking();
  world().Pump(milliseconds(100));
  EXPECT_GT(world().Of(id).out.size(), 2 * control::kWindowBytes);
  world().Send(control::Signal{id, SIGINT});
  EXPECT_EQ(world().Finish(id).signal, SIGINT);
}

TEST_F(WorldCommand, SendsAllItsOutputBeforeItsEndAlsoWhenTheWindowIsFull) {
  world().StopTaking();
  const StepId id = world().Begin(Shell("head -c 300000 /dev/zero"));
  world().Pump(milliseconds(200));
  world().GoOnTaking();
  EXPECT_EQ(world().Finish(id).out.size(), 300'000u);
}

TEST_F(WorldCommand, SendsBytesThatAreNoText) {
  EXPECT_EQ(world().Run("printf '\\377\\000x'").out, std::string("\xff\0x", 3));
}

TEST_F(WorldCommand, ReadsItsInputToTheEnd) {
  const StepId id = world().Begin(WithInput("cat; echo end"));
  world().Send(control::Input{.id = id, .data = "hello\n"});
  world().WaitForOutput(id, "hello\n");
  world().Send(control::Input{.id = id, .data = "bye\n", .eof = true});
  EXPECT_EQ(world().Finish(id).out, "hello\nbye\nend\n");
}

TEST_F(WorldCommand, WithoutInputReadsNothing) {
  EXPECT_EQ(world().Run("cat; echo end").out, "end\n");
}

TEST_F(WorldCommand, MayLeaveItsInputUnread) {
  const StepId id = world().Begin(WithInput("exec <&-; echo ready; sleep 0.2"));
  world().WaitForOutput(id, "ready");
  world().Send(control::Input{.id = id, .data = std::string(100'000, 'x')});
  EXPECT_EQ(world().Finish(id).exit_code, 0);
}

TEST_F(WorldCommand, OnATerminalHasOneThatIsItsOwn) {
  const Ran ran = world().Run(OnTerminal("tty; stty size; ls /dev/tty && echo yes >/dev/tty"));
  EXPECT_EQ(ran.out, "/dev/pts/0\r\n24 80\r\n/dev/tty\r\nyes\r\n");
}

TEST_F(WorldCommand, OnATerminalSeesItsNewSize) {
  const StepId id = world().Begin(OnTerminal("read line; stty size"));
  world().Send(control::Resize{id, {.rows = 50, .columns = 132}});
  world().Send(control::Input{.id = id, .data = "go\n"});
  EXPECT_THAT(world().Finish(id).out, HasSubstr("50 132\r\n"));
}

TEST_F(WorldCommand, OnATerminalIsInterruptedLikeByCtrlC) {
  const StepId id = world().Begin(OnTerminal("trap 'echo caught; exit 3' INT; echo ready; read x"));
  world().WaitForOutput(id, "ready");
  world().Send(control::Input{.id = id, .data = "\x03"});
  const Ran ran = world().Finish(id);
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_THAT(ran.out, HasSubstr("caught"));
}

TEST_F(WorldCommand, OnATerminalEndsItsInputLikeByCtrlD) {
  const StepId id = world().Begin(OnTerminal("stty -echo; echo ready; cat; echo end"));
  world().WaitForOutput(id, "ready");
  world().Send(control::Input{.id = id, .data = "line\n", .eof = true});
  EXPECT_THAT(world().Finish(id).out, HasSubstr("line\r\nend\r\n"));
}

TEST_F(WorldCommand, OnATerminalGetsSignalsInItsForeground) {
  // The shell of the terminal ignores the signal, its foreground job does not.
  const StepId id = world().Begin(
      OnTerminal("bash -ic 'trap : USR1; sh -c \"echo re\"ady\"; exec sleep 20\"; echo job $?'"));
  world().WaitForOutput(id, "ready");
  world().Pump(milliseconds(50));
  world().Send(control::Signal{id, SIGUSR1});
  EXPECT_THAT(world().Finish(id).out, HasSubstr(fmt::format("job {}", 128 + SIGUSR1)));
}

TEST_F(WorldCommand, IsEndedAtItsTimeout) {
  control::Exec exec = Shell("sleep 20");
  exec.timeout = milliseconds(100);
  const Ran ran = world().Run(exec);
  EXPECT_TRUE(ran.timed_out);
  EXPECT_EQ(ran.signal, SIGTERM);
}

TEST_F(WorldCommand, SH_06_ThatIgnoresSigtermIsKilledAfterItsGrace) {
  control::Exec exec = Shell("trap '' TERM; echo ready; while :; do sleep 1; done");
  exec.grace = milliseconds(150);
  const StepId id = world().Begin(exec);
  world().WaitForOutput(id, "ready");
  const auto before = SteadyClock::now();
  world().Send(control::Cancel{id});
  const Ran ran = world().Finish(id);
  EXPECT_EQ(ran.signal, SIGKILL);
  EXPECT_FALSE(ran.timed_out);
  EXPECT_GE(SteadyClock::now() - before, milliseconds(140));
}

TEST_F(WorldCommand, SH_06_IsCancelledWithTheDaemonsItLeftInOtherSessions) {
  control::Exec exec =
      Shell("setsid sh -c 'trap \"\" TERM; sleep 77 & sleep 77' & echo ready; wait");
  exec.grace = milliseconds(100);
  const StepId id = world().Begin(exec);
  world().WaitForOutput(id, "ready");
  world().Pump(milliseconds(100));
  world().Send(control::Cancel{id});
  world().Finish(id);
  world().Pump(milliseconds(500));
  EXPECT_EQ(world().Run("pgrep -x sleep").out, "");
}

TEST_F(WorldCommand, EndsThoughADaemonHoldsItsPipes) {
  const auto before = SteadyClock::now();
  EXPECT_EQ(world().Run("sleep 30 & echo started").out, "started\n");
  EXPECT_LT(SteadyClock::now() - before, seconds(10));
}

TEST_F(WorldCommand, LeavesADaemonThatMayGoOnPrinting) {
  world().Run("(for i in 1 2 3 4 5; do sleep 0.05; echo tick; done; echo done >/tmp/daemon) &");
  world().Pump(milliseconds(600));
  EXPECT_EQ(world().Run("cat /tmp/daemon").out, "done\n");
}

TEST_F(WorldCommand, SH_05_RunsBesideOthers) {
  const StepId slow = world().Begin(WithInput("read x; echo slow $x"));
  EXPECT_EQ(world().Run("echo quick").out, "quick\n");
  world().Send(control::Input{.id = slow, .data = "y\n"});
  EXPECT_EQ(world().Finish(slow).out, "slow y\n");
}

TEST_F(WorldCommand, SH_07_IsRunThoughTheShimGotNonsenseBefore) {
  const StepId running = world().Begin(Shell("sleep 0.3; echo still here"));
  for (const char* nonsense : {"this is no JSON", "{\"type\":\"no such type\"}", "{}", "[1,2]",
                               "{\"type\":\"exec\",\"id\":-5}"})
    world().SendLine(nonsense);
  EXPECT_EQ(world().Run("echo next").out, "next\n");
  EXPECT_EQ(world().Finish(running).out, "still here\n");
  EXPECT_EQ(world().problems().size(), 5u);
}

TEST_F(WorldCommand, LeavesNothingInTheShim) {
  for (int i = 0; i < 50; ++i) world().Run("true");
  // A keeper ends a moment after its command has been told as ended.
  const auto deadline = SteadyClock::now() + seconds(10);
  std::string processes;
  do {
    processes = world().Run("exec ps -e -o comm=").out;
  } while (processes != "sandglass-shim\nsg-keeper\nps\n" && SteadyClock::now() < deadline);
  EXPECT_EQ(processes, "sandglass-shim\nsg-keeper\nps\n");
}

TEST_F(WorldCommand, CannotEndTheShimOrTakeItsDescriptors) {
  world().Run("kill -KILL 1");
  for (const char* link : {"/proc/1/exe", "/proc/1/root", "/proc/1/fd/3", "/proc/$PPID/exe"})
    EXPECT_NE(world().Run(fmt::format("readlink {}", link)).exit_code, 0) << link;
  // pidfd_open and pidfd_getfd; the pid of the shim, then of the keeper.
  constexpr char kSteal[] =
      "import ctypes, os; c = ctypes.CDLL(None); "
      "print([c.syscall(438, c.syscall(434, pid, 0), fd, 0) for pid in (1, os.getppid()) "
      "for fd in (3, 4, 5)])";
  control::Exec exec;
  exec.argv = {"python3", "-c", kSteal};
  EXPECT_EQ(world().Run(exec).out, "[-1, -1, -1, -1, -1, -1]\n");
  EXPECT_EQ(world().Run("echo alive").out, "alive\n");
}

TEST_F(WorldCommand, ThatStopsItsKeeperCanBeCancelled) {
  control::Exec exec = Shell("kill -STOP $PPID; echo ready; sleep 20");
  exec.grace = milliseconds(50);
  const StepId id = world().Begin(exec);
  world().WaitForOutput(id, "ready");
  world().Send(control::Cancel{id});
  EXPECT_EQ(world().Finish(id).signal, SIGTERM);
}

TEST_F(WorldCommand, ThatKillsItsKeeperIsReportedAsKilled) {
  const Ran ran = world().Run("kill -KILL $PPID; sleep 0.3");
  EXPECT_EQ(ran.exit_code, 128 + SIGKILL);
  EXPECT_THAT(world().problems(), ElementsAre("the keeper of the command was killed"));
}

}  // namespace
}  // namespace sandglass::test
