// What commands of root change in the system: kept for the project's next session, or not; never on the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/session/sandglass_fixture.h"
#include "world/local/system_folders.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;

class SystemChanges : public SandglassFixture {
 protected:
  void SetUp() override {
    SandglassFixture::SetUp();
    if (IsSkipped() || ::geteuid() != 0) return;
    for (const world::SystemFolder& folder : world::SystemFolders())
      if (!folder.why_read_only.empty())
        GTEST_SKIP() << folder.path << ": " << folder.why_read_only;
  }
};

TEST_F(SystemChanges, AreKeptForTheProjectsNextSessionUnlessTheyAreEphemeral) {
  const Ended made = Shell("touch /usr/sandglass-kept");
  if (::geteuid() != 0) {
    EXPECT_NE(made.exit_code, 0);
    EXPECT_THAT(made.err, HasSubstr("Read-only file system"));
    return;
  }
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(::access("/usr/sandglass-kept", F_OK), 0);
  EXPECT_EQ(Shell("test -e /usr/sandglass-kept").exit_code, 0);
  const Ended ephemeral = Sandglass(
      {"run", "--ephemeral", "--", "sh", "-c",
       "test ! -e /usr/sandglass-kept && touch /usr/sandglass-gone && ls /usr/sandglass*"});
  EXPECT_EQ(ephemeral.out, "/usr/sandglass-gone\n") << ephemeral.err;
  EXPECT_EQ(Shell("test -e /usr/sandglass-gone").exit_code, 1);
  // Only the project's own layer is left.
  const std::filesystem::directory_iterator worlds(state_ + "/worlds"), end;
  EXPECT_EQ(std::distance(worlds, end), 1);
}

TEST_F(SystemChanges, AnotherSessionOfTheProjectHasTheSystemReadOnlyMeanwhile) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has a layer of the system";
  const Started first = Begin({"run", "--", "sh", "-c", "touch began; sleep 30; touch /usr/x"});
  WaitUntilExists("began");
  const Ended second = Sandglass({"run", "--project", workspace_.project() + ":ro", "--", "sh",
                                  "-c", "touch /usr/sandglass-x; true"});
  EXPECT_THAT(second.err, HasSubstr("Read-only file system"));
  ::kill(first.pid, SIGTERM);
  Finish(first);
}

TEST_F(SystemChanges, APackageIsInstalledInTheWorldAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root installs packages";
  if (::access("/usr/bin/dpkg-deb", X_OK) != 0) GTEST_SKIP() << "this machine has no dpkg";
  workspace_.WriteFile("package/DEBIAN/control",
                       "Package: sandglass-sample\nVersion: 1\nArchitecture: all\n"
                       "Maintainer: nobody <nobody@localhost>\nDescription: sample\n");
  workspace_.WriteFile("package/usr/bin/sandglass-sample", "#!/bin/sh\necho it works\n");
  workspace_.WriteFile("package/etc/sandglass-sample/settings", "x\n");
  const Ended installed = Shell(
      "chmod -R u=rwX,go=rX package && chmod 755 package/usr/bin/*; "
      "dpkg-deb --build package sample.deb >/dev/null && dpkg -i sample.deb >&2");
  EXPECT_EQ(installed.exit_code, 0) << installed.err;
  EXPECT_EQ(Run({"sandglass-sample"}).out, "it works\n");
  EXPECT_NE(::access("/usr/bin/sandglass-sample", F_OK), 0);
  EXPECT_EQ(Shell("dpkg -r sandglass-sample >&2").exit_code, 0);
  EXPECT_EQ(Run({"sandglass-sample"}).exit_code, 127);
}

}  // namespace
}  // namespace sandglass::test
