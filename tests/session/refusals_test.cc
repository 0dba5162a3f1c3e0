// Machines on which no world can be built, or only a weaker one: `sandglass run` refuses, and says what is missing and what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "tests/session/sandglass_fixture.h"
#include "tests/support/deny_call.h"

namespace sandglass::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kNotRun = 125, kRefused = 126;

void WriteSetting(const char* path, const std::string& text) {
  const Fd file(MustCall(::open(path, O_WRONLY | O_CLOEXEC), path));
  Must(WriteFully(file.get(), AsBytes(text)));
}

class SandglassRefuses : public SandglassFixture {
 protected:
  Ended RunWhere(const std::function<void()>& machine, const Words& options = {}) {
    before_start_ = machine;
    Words words = {"run"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "touch", "made"});
    Ended ended = Sandglass(words);
    before_start_ = nullptr;
    return ended;
  }
};

// Ubuntu's rule for unprivileged namespaces looks like this from inside: they can be made, and then nothing is allowed in them.
TEST_F(SandglassRefuses, WhereMountsAreRefusedAndSaysWhatToDo) {
  for (const auto& [name, number] : {std::pair<const char*, uint32_t>{"mount", SYS_mount},
                                     {"open_tree", SYS_open_tree},
                                     {"mount_setattr", SYS_mount_setattr},
                                     {"move_mount", SYS_move_mount},
                                     {"fsopen", SYS_fsopen}}) {
    const Ended ended = RunWhere([&] { DenyCall(number); });
    EXPECT_EQ(ended.exit_code, kRefused) << name;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("Operation not permitted"), HasSubstr(name),
                                 HasSubstr("let it create user namespaces")));
    EXPECT_FALSE(workspace_.Exists("made"));
  }
}

TEST_F(SandglassRefuses, WhereAnyOtherStepIsRefusedAndSaysWhatMayBeTheCause) {
  for (const uint32_t number : {SYS_pivot_root, SYS_sethostname}) {
    const Ended ended = RunWhere([&] { DenyCall(number); });
    EXPECT_EQ(ended.exit_code, kRefused) << number;
    EXPECT_THAT(ended.err, HasSubstr("seccomp")) << number;
  }
}

TEST_F(SandglassRefuses, WhereUserNamespacesAreOffAndNamesTheSetting) {
  const Ended ended = RunWhere([] {
    const std::string uid = std::to_string(::geteuid()), gid = std::to_string(::getegid());
    MustCall(::unshare(CLONE_NEWUSER), "unshare");
    WriteSetting("/proc/self/uid_map", uid + " " + uid + " 1");
    WriteSetting("/proc/self/setgroups", "deny");
    WriteSetting("/proc/self/gid_map", gid + " " + gid + " 1");
    WriteSetting("/proc/sys/user/max_user_namespaces", "0");
  });
  EXPECT_EQ(ended.exit_code, kRefused);
  EXPECT_THAT(ended.err, HasSubstr("sysctl user.max_user_namespaces=10000"));
}

TEST_F(SandglassRefuses, WhereItMayHaveTooFewFilesOpenAndSaysWhatToRaise) {
  const Ended ended = RunWhere([] {
    const rlimit few{.rlim_cur = 500, .rlim_max = 500};
    MustCall(::setrlimit(RLIMIT_NOFILE, &few), "setrlimit");
  });
  EXPECT_EQ(ended.exit_code, kRefused);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("1024"), HasSubstr("500"), HasSubstr("ulimit -Hn")));
  EXPECT_FALSE(workspace_.Exists("made"));
}

void EnterPrivateMounts() {
  MustCall(::unshare(CLONE_NEWNS), "unshare");
  MustCall(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "make mounts private");
}

void WriteNew(const std::string& path, const std::string& text) {
  const Fd file(MustCall(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644), path));
  Must(WriteFully(file.get(), AsBytes(text)));
}

// The setting is simulated, where the kernel has none: settings are files.
TEST_F(SandglassRefuses, WhereAppArmorRestrictsNamespacesAndNamesTheSetting) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to mount";
  const Ended ended = RunWhere([] {
    const std::string folder = "/proc/sys/kernel";
    const auto boot = Must(ReadFileAt(AT_FDCWD, (folder + "/random/boot_id").c_str(), 64));
    EnterPrivateMounts();
    MustCall(::mount("none", folder.c_str(), "tmpfs", 0, nullptr), "mount");
    MustCall(::mkdir((folder + "/random").c_str(), 0755), "mkdir");
    WriteNew(folder + "/random/boot_id", boot);
    WriteNew(folder + "/apparmor_restrict_unprivileged_userns", "1\n");
    DenyCall(SYS_move_mount);
  });
  EXPECT_EQ(ended.exit_code, kRefused);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("Ubuntu"),
                               HasSubstr("sysctl kernel.apparmor_restrict_unprivileged_userns=0")));
  EXPECT_FALSE(workspace_.Exists("made"));
}

TEST_F(SandglassRefuses, NothingWhereTheMachineHasNoSharedMemory) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to mount";
  const std::string devices = workspace_.root() + "/devices";
  MustCall(::mkdir(devices.c_str(), 0755), devices);
  const auto machine = [&] {
    EnterPrivateMounts();
    MustCall(::mount("none", devices.c_str(), "tmpfs", 0, "mode=755"), "mount");
    for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"}) {
      WriteNew(devices + "/" + name, "");
      MustCall(::mount((std::string("/dev/") + name).c_str(), (devices + "/" + name).c_str(),
                       nullptr, MS_BIND, nullptr),
               name);
    }
    MustCall(::mount(devices.c_str(), "/dev", nullptr, MS_MOVE, nullptr), "move");
    if (::access("/dev/shm", F_OK) == 0) ::_exit(98);
  };
  for (const Words& options : {Words{}, Words{"--ephemeral"}}) {
    const Ended ended = RunWhere(machine, options);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_TRUE(workspace_.Exists("made"));
    EXPECT_EQ(Sandglass({"undo"}).exit_code, 0);
  }
}

TEST_F(SandglassRefuses, AnUndoStoreThatCannotBeReached) {
  const std::string file = workspace_.root() + "/file";
  WriteNew(file, "no folder");
  for (const Words& where : {Words{"--store", file + "/store"}, Words{"--undo-dir", file}}) {
    const Ended ended = RunWhere([] {}, where);
    EXPECT_EQ(ended.exit_code, kNotRun);
    EXPECT_THAT(ended.err, HasSubstr(file));
  }
  const Ended homeless =
      RunWhere([&] { ::setenv("SANDGLASS_HOME", (file + "/state").c_str(), 1); });
  EXPECT_EQ(homeless.exit_code, kNotRun);
  EXPECT_THAT(homeless.err, HasSubstr(file));
  EXPECT_FALSE(workspace_.Exists("made"));
}

// Whatever a command could write there, the next one would be run by.
TEST_F(SandglassRefuses, AProjectThatHoldsWhatSandglassObeys) {
  state_ = workspace_.Path("state");
  const std::string elsewhere = workspace_.root() + "/elsewhere", outside = elsewhere + "/made";
  MustCall(::mkdir(elsewhere.c_str(), 0777), elsewhere);
  MustCall(::mkdir(state_.c_str(), 0700), state_);
  workspace_.WriteFile("state/sandglass.toml", "[sandbox]\nread_write = [\"" + elsewhere + "\"]\n");
  const Ended ended = Run({"touch", "made"});
  EXPECT_EQ(ended.exit_code, kRefused);
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("what sandglass itself obeys"), HasSubstr("--allow-broad")));
  EXPECT_FALSE(workspace_.Exists("made"));
  const Ended allowed = RunWhere([] {}, {"--allow-broad"});
  EXPECT_EQ(allowed.exit_code, 0) << allowed.err;
  Sandglass({"run", "--allow-broad", "--", "touch", outside});
  EXPECT_FALSE(std::filesystem::exists(outside)) << "the file in the project was obeyed";
}

TEST_F(SandglassRefuses, AKernelThatIsTooOld) {
  const Ended ended = RunWhere([] { MustCall(::personality(UNAME26), "personality"); });
  EXPECT_EQ(ended.exit_code, kRefused);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("Linux 2.6."), HasSubstr("is too old: 5.19 is needed")));
}

TEST_F(SandglassRefuses, AKernelWithoutUserNotification) {
  const Ended ended = RunWhere([] { DenyCall(SYS_seccomp); });
  EXPECT_EQ(ended.exit_code, kRefused);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("refuses seccomp user notification"),
                               HasSubstr("--security-opt seccomp=unconfined")));
}

TEST_F(SandglassRefuses, AKernelWithoutLandlockUnlessThatIsAccepted) {
  const auto no_landlock = [] { DenyCall(SYS_landlock_create_ruleset); };
  const Ended refused = RunWhere(no_landlock);
  EXPECT_EQ(refused.exit_code, kRefused);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("Landlock"), HasSubstr("--without-landlock")));
  EXPECT_FALSE(workspace_.Exists("made"));

  const Ended accepted = RunWhere(no_landlock, {"--without-landlock", "--json"});
  EXPECT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_TRUE(workspace_.Exists("made"));
  EXPECT_THAT(accepted.err, HasSubstr("without Landlock (--without-landlock)"));
  EXPECT_THAT(accepted.err, HasSubstr("\"warnings\":[\"without Landlock"));
}

TEST_F(SandglassRefuses, NothingForTheSakeOfLandlockThatIsThere) {
  const Ended ended = RunWhere([] {}, {"--without-landlock", "--json"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.err, Not(HasSubstr("without Landlock")));
}

}  // namespace
}  // namespace sandglass::test
