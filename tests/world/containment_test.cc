// What a world sees and what it cannot do.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/io.h"
#include "tests/support/must.h"
#include "tests/world/world_client.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class WorldContainment : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = world::WhyNoLocalWorld(); !why.empty())
      GTEST_SKIP() << "no local world: " << why;
  }
  static bool root() { return ::geteuid() == 0; }
};

TEST_F(WorldContainment, HasTheProjectReadOnly) {
  TestWorld world;
  world.workspace().WriteFile("file", "content");
  EXPECT_EQ(world.Run("cat file").out, "content");
  EXPECT_THAT(world.Run("echo x >file").err, HasSubstr("Read-only file system"));
  EXPECT_THAT(world.Run("mkdir new").err, HasSubstr("Read-only file system"));
}

TEST_F(WorldContainment, SeesWhatTheHostDoesToTheProject) {
  TestWorld world;
  world.workspace().WriteFile("later", "1");
  EXPECT_EQ(world.Run("cat later").out, "1");
}

TEST_F(WorldContainment, CannotMakeTheProjectWritable) {
  TestWorld world;
  const std::string remount = fmt::format("mount -o remount,bind,rw {}", world.project());
  EXPECT_NE(world.Run(remount).exit_code, 0);
  EXPECT_NE(world.Run("umount .").exit_code, 0);
  EXPECT_NE(
      world.Run(fmt::format("unshare -Urm sh -c '{} && touch {}/x'", remount, world.project()))
          .exit_code,
      0);
  EXPECT_FALSE(world.workspace().Exists("x"));
}

TEST_F(WorldContainment, CannotChangeTheHostsFiles) {
  TestWorld world;
  for (const char* path : {"/usr/x", "/etc/x", "/x", "/var/lib/x", "/dev/x", "/sys/x"})
    EXPECT_NE(world.Run(fmt::format("touch {}", path)).exit_code, 0) << path;
}

TEST_F(WorldContainment, MovesThingsAboutInItsOwnPlaces) {
  TestWorld world;
  EXPECT_EQ(world
                .Run("mkdir -p ~/a ~/b && echo x >~/a/f && mv ~/a/f ~/b && ln ~/b/f ~/a/g && cat "
                     "~/a/g && truncate -s 0 ~/b/f && echo y >/dev/shm/z && cat /dev/shm/z")
                .out,
            "x\ny\n");
}

TEST_F(WorldContainment, HasTemporaryFoldersOfItsOwn) {
  std::ofstream("/tmp/sandglass-host-file") << "host";
  TestWorld world;
  for (const char* folder : {"/tmp", "/var/tmp", "/run", "/dev/shm"}) {
    if (std::string_view(folder) == "/run" && !root()) continue;
    const Ran ran = world.Run(fmt::format("echo own >{0}/own && cat {0}/own", folder));
    EXPECT_EQ(ran.out, "own\n") << folder << ran.err;
    EXPECT_NE(::access(fmt::format("{}/own", folder).c_str(), F_OK), 0);
  }
  EXPECT_NE(world.Run("cat /tmp/sandglass-host-file").exit_code, 0);
  ::unlink("/tmp/sandglass-host-file");
}

TEST_F(WorldContainment, HasAHomeOfItsOwn) {
  TestWorld world;
  const std::string home = world.workspace().root() + "/home";
  EXPECT_EQ(world.Run("echo $HOME").out, home + "\n");
  EXPECT_EQ(world.Run("ls -A ~; echo x >~/file && cat ~/file").out, "x\n");
  EXPECT_NE(::access((home + "/file").c_str(), F_OK), 0);
  EXPECT_EQ(::access((home + "/.ssh/id_test").c_str(), F_OK), 0);
}

TEST_F(WorldContainment, SeesNoHomeOfOthers) {
  TestWorld world;
  EXPECT_EQ(world.Run("ls -A /root /home 2>&1 | grep -v : | tr -d '\\n'").out, "");
  EXPECT_NE(world.Run("cat /etc/shadow").exit_code, 0);
}

TEST_F(WorldContainment, KeepsItsLayer) {
  const TempWorkspace workspace;
  const std::string layer = workspace.root() + "/layer";
  MustCall(::mkdir(layer.c_str(), 0755), layer);
  const auto with_layer = [&](world::LocalWorldSpec& spec) { spec.layer = layer; };
  TestWorld(workspace, with_layer).Run("echo kept >~/file; echo kept >/tmp/file");
  TestWorld again(workspace, with_layer);
  EXPECT_EQ(again.Run("cat ~/file /tmp/file").out, "kept\nkept\n");
  EXPECT_EQ(Must(ReadFileAt(AT_FDCWD, (layer + "/home/file").c_str(), 100)), "kept\n");
}

TEST_F(WorldContainment, RefusesALayerWithASymlinkWhereTheProjectBelongs) {
  const TempWorkspace workspace;
  const std::string layer = workspace.root() + "/layer";
  MustCall(::mkdir(layer.c_str(), 0755), layer);
  // The project lies in the world's own temporary folder, and its last folder's place is taken.
  if (!workspace.project().starts_with("/tmp/")) GTEST_SKIP() << "tests do not run in /tmp";
  const std::string place = layer + "/tmp" + workspace.project().substr(4);
  const std::string parent = place.substr(0, place.rfind('/'));
  ASSERT_EQ(std::system(fmt::format("mkdir -p {0} && ln -s /etc {1}", parent, place).c_str()), 0);
  world::LocalWorldSpec spec = SpecFor(workspace);
  spec.layer = layer;
  const auto world = world::LocalWorld::Start(spec);
  ASSERT_FALSE(world.ok());
  EXPECT_THAT(world.error().message(),
              HasSubstr("mount " + workspace.project() + ": Too many levels of symbolic links"));
}

TEST_F(WorldContainment, HidesPathsWhereverTheyLie) {
  const TempWorkspace workspace;
  workspace.WriteFile("hidden/secret", "secret");
  workspace.WriteFile("hidden-file", "secret");
  TestWorld world(workspace, [&](world::LocalWorldSpec& spec) {
    spec.hidden_paths = {workspace.Path("hidden"), workspace.Path("hidden-file")};
  });
  EXPECT_EQ(world.Run("ls -A hidden").out, "");
  EXPECT_EQ(world.Run("cat hidden-file").out, "");
}

// One empty file system is behind all of them.
TEST_F(WorldContainment, HiddenFoldersStayEmptyAndNobodyCanWriteThere) {
  const TempWorkspace workspace;
  for (const char* file : {"one/secret", "two/secret", "three/secret"})
    workspace.WriteFile(file, "secret");
  TestWorld world(workspace, [&](world::LocalWorldSpec& spec) {
    spec.hidden_paths = {workspace.Path("one"), workspace.Path("two"), workspace.Path("one"),
                         workspace.Path("three")};
  });
  EXPECT_NE(world.Run("touch one/made").exit_code, 0);
  EXPECT_NE(world.Run("mount -o remount,rw one; touch one/made").exit_code, 0);
  EXPECT_EQ(world.Run("ls -A one two three").out, "one:\n\nthree:\n\ntwo:\n");
}

TEST_F(WorldContainment, ShowsExtraPathsAsTheyAre) {
  const TempWorkspace workspace;
  const std::string extra = workspace.root() + "/extra";
  MustCall(::mkdir(extra.c_str(), 0755), extra);
  const std::string file = workspace.root() + "/home/.config-file";
  MustCall(::mkdir((workspace.root() + "/home").c_str(), 0755), "home");
  std::ofstream(file) << "configuration";
  TestWorld world(workspace, [&](world::LocalWorldSpec& spec) {
    spec.extra_read_write = {extra};
    spec.extra_read_only = {file};
  });
  EXPECT_EQ(world.Run(fmt::format("echo x >{}/made", extra)).exit_code, 0);
  EXPECT_EQ(::access((extra + "/made").c_str(), F_OK), 0);
  EXPECT_EQ(world.Run("cat ~/.config-file").out, "configuration");
  EXPECT_NE(world.Run("echo x >~/.config-file").exit_code, 0);
}

TEST_F(WorldContainment, ShowsOnlyItsOwnProcesses) {
  TestWorld world;
  EXPECT_EQ(world.Run("cat /proc/1/comm").out, "sandglass-shim\n");
  EXPECT_LT(std::stoi(world.Run("ls -d /proc/[0-9]* | wc -l").out), 8);
  EXPECT_LT(std::stoi(world.Run("echo $$").out), 100);
}

TEST_F(WorldContainment, HasNoNetworkButLoopback) {
  TestWorld world;
  EXPECT_EQ(world.Run("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '").out, "lo\n");
  EXPECT_EQ(world.Run("tail -n +2 /proc/net/route").out, "");
  EXPECT_THAT(world.Run("bash -c 'echo >/dev/tcp/127.0.0.1/9'").err,
              HasSubstr("Connection refused"));
  EXPECT_THAT(world.Run("bash -c 'echo >/dev/tcp/192.0.2.1/9'").err,
              HasSubstr("Network is unreachable"));
}

TEST_F(WorldContainment, HasFewRights) {
  TestWorld world;
  const std::string status = world.Run("cat /proc/self/status").out;
  // CHOWN, DAC_OVERRIDE, FOWNER, FSETID, SETGID, SETUID.
  const std::string kept = root() ? "00000000000000db" : "0000000000000000";
  EXPECT_EQ(Field(status, "CapEff"), kept);
  EXPECT_EQ(Field(status, "CapPrm"), kept);
  EXPECT_EQ(Field(status, "CapBnd"), kept);
  EXPECT_EQ(Field(status, "CapAmb"), "0000000000000000");
  EXPECT_EQ(Field(status, "NoNewPrivs"), "1");
  EXPECT_EQ(Field(status, "Seccomp_filters"), "1");
  EXPECT_EQ(Field(status, "SigIgn"), "0000000000000000");
  EXPECT_EQ(Field(status, "SigBlk"), "0000000000000000");
}

TEST_F(WorldContainment, IsTheSameUserInside) {
  TestWorld world;
  EXPECT_EQ(world.Run("id -u").out, fmt::format("{}\n", ::geteuid()));
}

TEST_F(WorldContainment, CannotSetTheHostsKernel) {
  TestWorld world;
  const Ran ran = world.Run("echo x >/proc/sys/kernel/core_pattern");
  EXPECT_NE(ran.exit_code, 0);
  EXPECT_NE(world.Run("echo h >/proc/sysrq-trigger").exit_code, 0);
}

TEST_F(WorldContainment, KnowsNothingOfTheHostsEnvironment) {
  ::setenv("SANDGLASS_TEST_SECRET", "secret", 1);
  TestWorld world;
  const std::string environment = world.Run("env").out;
  EXPECT_THAT(environment, Not(HasSubstr("SECRET")));
  EXPECT_THAT(environment, HasSubstr("SANDGLASS=1\n"));
  EXPECT_EQ(world.Run("hostname").out, "sandglass\n");
  ::unsetenv("SANDGLASS_TEST_SECRET");
}

TEST_F(WorldContainment, HasTheUsualDevicesAndNoOthers) {
  TestWorld world;
  EXPECT_EQ(world.Run("ls /dev | tr '\\n' ' '").out,
            "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ");
  EXPECT_EQ(world.Run("echo x >/dev/null && head -c 4 /dev/urandom | wc -c").out, "4\n");
  EXPECT_NE(world.Run("chmod 600 /dev/null").exit_code, 0);
  EXPECT_NE(world.Run("mknod /tmp/device c 1 3").exit_code, 0);
}

TEST_F(WorldContainment, EndsWhenItsFirstProcessIsKilled) {
  TestWorld world;
  world.Run("sleep 100 & setsid sleep 100 &");
  EXPECT_FALSE(world.world().Wait(std::chrono::milliseconds(50)));
  ::kill(world.world().init_pid(), SIGKILL);
  EXPECT_TRUE(world.world().Wait(std::chrono::seconds(5)));
}

// How many processes of this machine have that word in their command line.
int ProcessesWith(const std::string& word) {
  const std::string command = fmt::format("pgrep -fc '[s]leep {}' >/dev/null", word);
  return std::system(command.c_str()) == 0 ? 1 : 0;
}

TEST_F(WorldContainment, LeavesNoProcess) {
  {
    TestWorld world;
    world.Run("sleep 98765 & setsid sleep 98765 &");
    EXPECT_EQ(ProcessesWith("98765"), 1);
  }
  EXPECT_EQ(ProcessesWith("98765"), 0);
}

TEST_F(WorldContainment, SH_08_EndsWithItsHost) {
  auto workspace = std::make_unique<TempWorkspace>();
  const pid_t host = MustCall(::fork(), "fork");
  if (host == 0) {
    TestWorld world(*workspace, {});
    world.Run("sleep 98764 &");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  MustCall(::waitpid(host, &status, 0), "waitpid");
  for (int i = 0; i < 100 && ProcessesWith("98764") != 0; ++i) ::usleep(20'000);
  EXPECT_EQ(ProcessesWith("98764"), 0);
}

TEST_F(WorldContainment, ADroppedCommandDoesNotExecute) {
  const TempWorkspace workspace;
  auto world = Must(world::LocalWorld::Start(SpecFor(workspace)));
  const std::string line =
      control::Encode(control::HostMessage(control::Exec{.id = StepId{7}, .command = "true"})) +
      "\n";
  Must(WriteFully(world->control_fd(), AsBytes(line)));
  Result<world::LocalWorld::CommandListener> listener = Error(Code::kBusy, "");
  for (int i = 0; i < 1000 && !listener.ok(); ++i) {
    ::usleep(2000);
    listener = world->ReceiveListener();
  }
  ASSERT_TRUE(listener.ok()) << listener.error().ToString();
  EXPECT_EQ(listener->command, StepId{7});
  EXPECT_EQ(world->Release(StepId{8}).error().code(), Code::kNotFound);
  EXPECT_TRUE(world->Release(StepId{7}).ok());
  EXPECT_EQ(world->Release(StepId{7}).error().code(), Code::kNotFound);
}

TEST_F(WorldContainment, NamesTheStepThatFailed) {
  const TempWorkspace workspace;
  world::LocalWorldSpec spec = SpecFor(workspace);
  spec.shim_path = "/etc/passwd";
  const auto no_program = world::LocalWorld::Start(spec);
  ASSERT_FALSE(no_program.ok());
  EXPECT_EQ(no_program.error().message(), "world: start the shim: Permission denied");
  spec = SpecFor(workspace);
  spec.projects = {{.path = "/"}};
  EXPECT_THAT(world::LocalWorld::Start(spec).error().message(), StartsWith("world: the root"));
  spec.projects = {{.path = "/no/such"}};
  EXPECT_THAT(world::LocalWorld::Start(spec).error().message(),
              StartsWith("world: /no/such: No such file"));
}

}  // namespace
}  // namespace sandglass::test
