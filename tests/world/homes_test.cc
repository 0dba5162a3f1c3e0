// What a world is shown of the host's home, and what it never is.
#include "world/local/homes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/must.h"
#include "tests/world/world_client.h"
#include "world/local/environment.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

bool Overlap(std::string_view one, std::string_view other) {
  const std::string inner = fmt::format("{}/", one.size() > other.size() ? one : other);
  const std::string outer = fmt::format("{}/", one.size() > other.size() ? other : one);
  return inner.starts_with(outer);
}

TEST(HomeTables, NothingThatIsShownHoldsASecret) {
  for (const char* shown : world::ShownOfHome())
    for (const char* secret : world::SecretsOfHome())
      EXPECT_FALSE(Overlap(shown, secret)) << shown << " and " << secret;
}

TEST(HomeOfAccount, IsTheSixthField) {
  constexpr char kPasswd[] =
      "root:x:0:0:root:/root:/bin/sh\nbroken\n\nu:x:12:12::/srv/u:/bin/sh\nv:x:123:1::/v";
  EXPECT_EQ(world::HomeOfAccount(kPasswd, 0), "/root");
  EXPECT_EQ(world::HomeOfAccount(kPasswd, 12), "/srv/u");
  EXPECT_EQ(world::HomeOfAccount(kPasswd, 123), "/v");
  EXPECT_EQ(world::HomeOfAccount(kPasswd, 1), "");
  EXPECT_EQ(world::HomeOfAccount("", 0), "");
}

TEST(HomeOfAccount, IsNotCoveredWhereTheSystemLives) {
  for (const char* home : {"/srv/u", "/data", "/var/www", "/usrlocal"})
    EXPECT_TRUE(world::CanBeCovered(home)) << home;
  for (const char* home : {"", "/", "/usr", "/usr/sbin", "/bin", "/dev", "/var", "/etc/x", "rel"})
    EXPECT_FALSE(world::CanBeCovered(home)) << home;
}

TEST(PossibleHomes, AreThoseThatLinksLeadTo) {
  const TempWorkspace space;
  space.MakeDir("homes/ada");
  space.MakeDir("data/bob");
  MustCall(::symlink("../data/bob", space.Path("homes/bob").c_str()), "symlink");
  MustCall(::symlink("homes/ada", space.Path("me").c_str()), "symlink");
  EXPECT_THAT(world::PossibleHomes(std::array{space.Path("me"), std::string("/no/such")},
                                   space.Path("homes")),
              ::testing::UnorderedElementsAre(space.Path("homes/ada"), "/no/such", "/root",
                                              space.Path("data/bob")));
}

class WorldHome : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = world::WhyNoLocalWorld(); !why.empty())
      GTEST_SKIP() << "no local world: " << why;
    (void)SpecFor(workspace_);  // makes the home, with a secret in .ssh
    home_ = workspace_.root() + "/home";
  }
  void InHome(const std::string& name, std::string_view content, mode_t mode = 0644) {
    const std::string path = home_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << content;
    MustCall(::chmod(path.c_str(), mode), path);
  }
  TempWorkspace workspace_;
  std::string home_;
};

TEST_F(WorldHome, ShowsToolsAndSettingsReadOnlyAndNoCredentials) {
  InHome(".gitconfig", "[user]\n name = Ada\n");
  InHome(".config/git/ignore", "*.o\n");
  InHome(".cargo/bin/tool", "#!/bin/sh\necho tool\n", 0755);
  for (const char* secret : {".npmrc", ".git-credentials", ".cargo/credentials.toml",
                             ".config/git/credentials", ".docker/config.json", ".pypirc"})
    InHome(secret, "a secret");
  TestWorld world(workspace_, {});
  EXPECT_THAT(world.Run("cat ~/.gitconfig").out, HasSubstr("Ada"));
  EXPECT_EQ(world.Run("cat ~/.config/git/ignore").out, "*.o\n");
  EXPECT_EQ(world.Run("~/.cargo/bin/tool").out, "tool\n");
  EXPECT_NE(world.Run("echo x >>~/.gitconfig").exit_code, 0);
  EXPECT_NE(world.Run("touch ~/.cargo/bin/new").exit_code, 0);
  EXPECT_EQ(world.Run("mkdir ~/.cargo/registry && echo own >~/.cargo/registry/x").exit_code, 0);
  EXPECT_EQ(world.Run("grep -r secret ~ 2>/dev/null").out, "");
  EXPECT_FALSE(std::filesystem::exists(home_ + "/.cargo/registry"));
}

TEST_F(WorldHome, FollowsASymlinkOfTheHostToItsSettings) {
  InHome("dotfiles/gitconfig", "[user]\n name = Ada\n");
  MustCall(::symlink("dotfiles/gitconfig", (home_ + "/.gitconfig").c_str()), "symlink");
  TestWorld world(workspace_, {});
  EXPECT_THAT(world.Run("cat ~/.gitconfig").out, HasSubstr("Ada"));
  EXPECT_NE(world.Run("ls ~/dotfiles").exit_code, 0);
}

// Commands can change links in a project, and so choose where they lead.
TEST_F(WorldHome, ShowsNothingThatALinkInAProjectLeadsTo) {
  InHome("private/notes", "a secret");
  InHome("dotfiles/real/tool", "no secret");
  const auto link = [&](const char* target, const std::string& name) {
    MustCall(::symlink(target, (home_ + "/" + name).c_str()), name);
  };
  link("dotfiles/gitconfig", ".gitconfig");
  link("../private/notes", "dotfiles/gitconfig");
  std::filesystem::create_directories(home_ + "/.local");
  link("../dotfiles/bin", ".local/bin");
  link("../private", "dotfiles/bin");
  link("dotfiles/real", "bin");
  const std::string see = "cat ~/.gitconfig ~/.local/bin/notes ~/bin/tool 2>/dev/null";
  const auto run = [&](const TestWorld::Change& change) {
    return TestWorld(workspace_, change).Run(see).out;
  };
  EXPECT_EQ(run({}), "a secreta secretno secret") << "or this test could not fail";
  const std::string dotfiles = home_ + "/dotfiles";
  using Spec = world::LocalWorldSpec;
  EXPECT_EQ(run([&](Spec& spec) { spec.projects = {{.path = dotfiles}}; }), "no secret");
  EXPECT_EQ(run([&](Spec& spec) { spec.extra_read_write = {dotfiles}; }), "no secret");
  EXPECT_EQ(run([&](Spec& spec) {
              spec.changed_by_commands = [&](const std::string& folder) {
                return folder == dotfiles;
              };
            }),
            "no secret");
}

TEST_F(WorldHome, ShowsNoSecretThatALinkLeadsTo) {
  InHome("hidden/file", "a secret");
  InHome("elsewhere", "a secret");
  const std::string temporary = "/tmp/sandglass-homes-test-" + std::to_string(::getpid());
  std::ofstream(temporary) << "a secret";
  struct Case {
    const char* name;
    std::string target;
  };
  const Case cases[] = {
      {".gitconfig", ".ssh/id_test"},
      {".gitignore", "hidden/file"},
      {".gitattributes", temporary},
      {"bin", ".ssh"},
      {"sdk", "."},
      {".nvm", "hidden"},
      {".asdf", "/"},
  };
  for (const Case& each : cases)
    MustCall(::symlink(each.target.c_str(), (home_ + "/" + each.name).c_str()), each.name);
  const auto hide = [&](world::LocalWorldSpec& spec) {
    spec.hidden_paths.push_back(home_ + "/hidden");
  };
  TestWorld world(workspace_, hide);
  for (const Case& each : cases)
    EXPECT_NE(world.Run(fmt::format("test -e ~/{}", each.name)).exit_code, 0) << each.name;
  ::unlink(temporary.c_str());
}

TEST_F(WorldHome, KeepsWhatTheWorldHasInTheWay) {
  const std::string layer = workspace_.root() + "/layer";
  MustCall(::mkdir(layer.c_str(), 0755), layer);
  const auto with_layer = [&](world::LocalWorldSpec& spec) { spec.layer = layer; };
  TestWorld(workspace_, with_layer)
      .Run("ln -s /etc/hostname ~/.gitconfig; echo own >~/go; mkdir ~/.cargo");
  InHome(".gitconfig", "of the host");
  InHome("go/bin/tool", "of the host");
  TestWorld again(workspace_, with_layer);
  EXPECT_EQ(again.Run("readlink ~/.gitconfig; cat ~/go").out, "/etc/hostname\nown\n");
}

TEST_F(WorldHome, DropsFoldersOfThePathThatAreHidden) {
  InHome(".cargo/bin/tool", "#!/bin/sh\necho tool\n", 0755);
  InHome("hidden/bin/tool", "#!/bin/sh\necho hidden\n", 0755);
  const std::string before = ::getenv("PATH");
  ::setenv(
      "PATH",
      fmt::format("{0}/hidden/bin:{0}/.cargo/bin:/no/such/folder:/usr/bin:/bin", home_).c_str(), 1);
  TestWorld world(workspace_, {});
  EXPECT_EQ(world.Run("tool").out, "tool\n");
  EXPECT_EQ(world.Run("echo $PATH").out,
            fmt::format("{}/.cargo/bin:/no/such/folder:/usr/bin:/bin\n", home_));
  ::setenv("PATH", before.c_str(), 1);
}

TEST_F(WorldHome, ThatIsShownKeepsItsSecrets) {
  for (const char* secret : {".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".npmrc",
                             ".docker/config.json", ".mozilla/firefox/key4.db", ".kube/config",
                             ".gnupg/key", ".git-credentials", ".local/share/keyrings/login"})
    InHome(secret, "a secret");
  InHome("notes", "no harm");
  InHome(".docker/contexts", "no harm");
  TestWorld world(workspace_, [&](world::LocalWorldSpec& spec) { spec.extra_read_only = {home_}; });
  EXPECT_EQ(world.Run("cat ~/notes ~/.docker/contexts").out, "no harmno harm");
  EXPECT_EQ(world.Run("grep -r secret ~ 2>/dev/null").out, "");
}

TEST_F(WorldHome, ThatIsAProjectKeepsItsSecrets) {
  InHome(".netrc", "a secret");
  InHome("notes", "no harm");
  TestWorld world(workspace_, [&](world::LocalWorldSpec& spec) {
    spec.projects = {{.path = home_}};
    spec.home = "/no/such/home";
    spec.account_home = home_;
  });
  EXPECT_EQ(world.Run("cat notes").out, "no harm");
  EXPECT_EQ(world.Run("grep -r secret . 2>/dev/null").out, "");
}

TEST_F(WorldHome, ShowsASecretThatIsNamed) {
  InHome(".netrc", "a secret");
  InHome(".aws/config", "region");
  InHome(".aws/credentials", "a secret");
  TestWorld world(workspace_, [&](world::LocalWorldSpec& spec) {
    spec.extra_read_only = {home_, home_ + "/.ssh", home_ + "/.aws/config"};
  });
  EXPECT_EQ(world.Run("cat ~/.ssh/id_test").out, "a secret");
  EXPECT_EQ(world.Run("cat ~/.aws/*").out, "region");
  EXPECT_NE(world.Run("cat ~/.netrc").exit_code, 0);
}

// A folder that every machine has and that nothing else hides.
TEST_F(WorldHome, OfTheAccountIsHiddenWhereHomeIsAnotherFolder) {
  const auto see = [&](const std::string& home_of_account) {
    TestWorld world(workspace_,
                    [&](world::LocalWorldSpec& spec) { spec.account_home = home_of_account; });
    return world.Run("ls -A /var/cache").out;
  };
  EXPECT_NE(see("/no/such"), "") << "or this test could not fail";
  EXPECT_EQ(see("/var/cache"), "");
}

TEST_F(WorldHome, KeysOfTheHostAreHidden) {
  TestWorld world(workspace_, {});
  EXPECT_EQ(world.Run("cat /etc/ssh/ssh_host_*_key 2>/dev/null").out, "");
}

}  // namespace
}  // namespace sandglass::test
