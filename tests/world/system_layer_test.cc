// Worlds of root that may change the system, in a layer of their own.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/must.h"
#include "tests/world/world_client.h"
#include "world/local/system_folders.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;

constexpr char kMounts[] =
    "20 1 8:1 / / rw - ext4 /dev/sda rw\n"
    "21 20 0:5 / /etcetera rw - tmpfs none rw\n"
    "22 20 8:2 / /usr rw - ext4 /dev/sdb rw\n"
    "23 20 8:1 /x /etc/hosts rw shared:1 - ext4 /dev/sda rw\n"
    "nonsense\n\n"
    "24 20 0:6 / /var/lib/a\\040b rw - tmpfs none rw";

TEST(MountBelowFolder, IsToldAndTheFolderItselfIsNone) {
  EXPECT_EQ(world::MountBelowFolder(kMounts, "/etc"), "/etc/hosts");
  EXPECT_EQ(world::MountBelowFolder(kMounts, "/usr"), "");
  EXPECT_EQ(world::MountBelowFolder(kMounts, "/var"), "/var/lib/a\\040b");
  EXPECT_EQ(world::MountBelowFolder("", "/var"), "");
}

class SystemLayer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = world::WhyNoLocalWorld(); !why.empty())
      GTEST_SKIP() << "no local world: " << why;
    if (::geteuid() != 0) GTEST_SKIP() << "only worlds of root have one";
    if (::setxattr(workspace_.root().c_str(), "user.overlay.probe", "y", 1, 0) != 0)
      GTEST_SKIP() << "tests do not run where an overlay can keep its changes";
    const auto folders = world::SystemFolders();
    if (!std::ranges::all_of(folders, [](const auto& one) { return one.why_read_only.empty(); }))
      GTEST_SKIP() << "something is mounted in folders of the system";
    host_ = fmt::format("/var/lib/sandglass-test-{}", ::getpid());
    MustCall(::mkdir(host_.c_str(), 0755), host_);
  }
  void TearDown() override {
    std::error_code ignored;
    if (!host_.empty()) std::filesystem::remove_all(host_, ignored);
  }

  auto With(const std::string& layer) const {
    return [this, layer](world::LocalWorldSpec& spec) {
      spec.system_layer = workspace_.root() + "/" + layer;
      spec.hidden_paths = hidden_;
    };
  }
  static bool HostHas(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

  TempWorkspace workspace_;
  std::string host_;  // a folder in one of the system's
  std::vector<std::string> hidden_;
};

TEST_F(SystemLayer, TakesWhatIsChangedAndTheHostStaysAsItIs) {
  std::ofstream(host_ + "/old") << "old";
  const std::string script = fmt::format(
      "cd {} && echo new >old && chmod 600 old && mkdir -p made && mv made moved && "
      "touch /usr/sandglass-x /etc/sandglass-x /opt/sandglass-x && chown 5:5 /etc/sandglass-x && "
      "rm /etc/passwd",
      host_);
  const Ran changed = TestWorld(workspace_, With("one")).Run(script);
  ASSERT_EQ(changed.exit_code, 0) << changed.err;
  EXPECT_FALSE(HostHas("/usr/sandglass-x") || HostHas("/etc/sandglass-x") ||
               HostHas("/opt/sandglass-x") || HostHas(host_ + "/moved"));
  EXPECT_TRUE(HostHas("/etc/passwd"));
  struct stat status{};
  ASSERT_EQ(::stat((host_ + "/old").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 3);
  EXPECT_EQ(status.st_mode & 0777, 0644u);

  // Kept for the next world with that layer, and not seen by one with another.
  const std::string look = fmt::format(
      "cat {0}/old; stat -c %u /etc/sandglass-x; ls -d {0}/moved /etc/passwd 2>/dev/null", host_);
  EXPECT_EQ(TestWorld(workspace_, With("one")).Run(look).out,
            fmt::format("new\n5\n{}/moved\n", host_));
  EXPECT_EQ(TestWorld(workspace_, With("two")).Run(look).out, "old/etc/passwd\n");
}

TEST_F(SystemLayer, LooksAsTheSystemDoes) {
  struct stat status{};
  for (const world::SystemFolder& folder : world::SystemFolders()) {
    ASSERT_EQ(::stat(folder.path.c_str(), &status), 0);
    TestWorld world(workspace_, With("one"));
    EXPECT_EQ(world.Run("stat -c '%a %u %g' " + folder.path).out,
              fmt::format("{:o} {} {}\n", status.st_mode & 07777, status.st_uid, status.st_gid));
  }
}

// What hides secrets lies on top of the overlay, and cannot be moved out of the way; neither in this world nor for the next one.
TEST_F(SystemLayer, SecretsStayHidden) {
  MustCall(::mkdir((host_ + "/deep").c_str(), 0755), "mkdir");
  MustCall(::mkdir((host_ + "/deep/folder").c_str(), 0755), "mkdir");
  for (const char* file : {"/deep/folder/secret", "/deep/file"})
    std::ofstream(host_ + file) << "secret";
  hidden_ = {host_ + "/deep/folder", host_ + "/deep/file"};
  const std::string find = fmt::format(
      "cat {0}/deep/folder/secret {0}/deep/file {0}/moved/folder/secret {0}/moved/file {0}/link "
      "/etc/shadow /etc/moved /etc/link; true",
      host_);
  for (int round = 0; round < 2; ++round) {
    TestWorld world(workspace_, With("one"));
    EXPECT_EQ(world.Run(find).out, "");
    const Ran moved = world.Run(fmt::format(
        "cd {}; mv deep moved; ln deep/file link; rm -rf deep; cp -r deep again; umount deep/file; "
        "mv /etc/shadow /etc/moved; ln /etc/shadow /etc/link; rm -f /etc/shadow; ls "
        "/etc/ssl/private",
        host_));
    EXPECT_EQ(moved.out, "");
    EXPECT_EQ(world.Run(find).out, "");
  }
}

TEST_F(SystemLayer, SocketsAndFifosOfTheHostLeadNowhere) {
  const std::string path = host_ + "/socket", fifo = host_ + "/fifo";
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const Fd socket(MustCall(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  MustCall(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), path);
  MustCall(::listen(socket.get(), 4), path);
  MustCall(::mkfifo(fifo.c_str(), 0666), fifo);
  const Fd reader(MustCall(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC), fifo));
  const std::string connect =
      "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"" + path + "\")'";
  const std::string write =
      "python3 -c 'import os; os.open(\"" + fifo + "\", os.O_WRONLY | os.O_NONBLOCK)'";
  ASSERT_EQ(std::system(connect.c_str()), 0);
  ASSERT_EQ(std::system(write.c_str()), 0);
  TestWorld world(workspace_, With("one"));
  EXPECT_THAT(world.Run(connect).err, HasSubstr("Connection refused"));
  EXPECT_THAT(world.Run(write).err, HasSubstr("No such device or address"));
}

TEST_F(SystemLayer, ProjectsAndOwnPlacesLieOnTopOfIt) {
  TestWorld world(workspace_, [&](world::LocalWorldSpec& spec) {
    With("one")(spec);
    spec.projects.push_back({.path = host_});
  });
  EXPECT_THAT(world.Run(fmt::format("touch {}/x", host_)).err, HasSubstr("Read-only file system"));
  EXPECT_EQ(world.Run("touch /var/tmp/x && ls -A /var/tmp").out, "x\n");
  EXPECT_FALSE(HostHas("/var/tmp/x"));
}

TEST_F(SystemLayer, AFolderWithAMountInItStaysReadOnly) {
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) {
    MustCall(::unshare(CLONE_NEWNS), "unshare");
    MustCall(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "private");
    MustCall(::mount("none", host_.c_str(), "tmpfs", 0, nullptr), host_);
    TestWorld world(workspace_, With("one"));
    const bool held = world.Run("touch /var/lib/x").exit_code != 0;
    const bool others = world.Run("touch /usr/x").exit_code == 0;
    ::_exit(held && others ? 0 : 1);
  }
  int status = 0;
  MustCall(::waitpid(child, &status, 0), "waitpid");
  EXPECT_EQ(status, 0);
}

// A kernel that refuses the overlay: the world has the system as ordinary users have it.
TEST_F(SystemLayer, WhereTheKernelRefusesTheSystemIsReadOnly) {
  // An upper folder on an overlay is refused.
  const std::string base = workspace_.root();
  for (const char* name : {"/lower", "/upper", "/work", "/merged"})
    MustCall(::mkdir((base + name).c_str(), 0755), name);
  const pid_t child = MustCall(::fork(), "fork");
  if (child == 0) {
    MustCall(::unshare(CLONE_NEWNS), "unshare");
    MustCall(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "private");
    const std::string options =
        fmt::format("lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work", base);
    MustCall(::mount("none", (base + "/merged").c_str(), "overlay", 0, options.c_str()), "overlay");
    TestWorld world(workspace_, With("merged/system"));
    const Ran ran = world.Run("touch /usr/x");
    ::_exit(ran.err.find("Read-only file system") != ran.err.npos ? 0 : 1);
  }
  int status = 0;
  MustCall(::waitpid(child, &status, 0), "waitpid");
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace sandglass::test
