#include "base/beneath.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <string>
#include <thread>

#include "base/io.h"
#include "base/test_dir.h"

namespace sandglass {
namespace {

using std::string_view_literals::operator""sv;

std::string ContentOf(int root_fd, std::string_view path) {
  auto file = OpenBeneath(root_fd, path, O_RDONLY);
  if (!file.ok()) return file.error().ToString();
  auto bytes = ReadFully(file->get(), 1 << 20);
  return bytes.ok() ? std::string(AsText(*bytes)) : bytes.error().ToString();
}

Error ErrorOf(int root_fd, std::string_view path, int flags = O_RDONLY) {
  auto file = OpenBeneath(root_fd, path, flags);
  CHECK(!file.ok());
  return file.error();
}

// The project "root" with a file inside, next to "secret", which nothing may reach.
class Beneath : public ::testing::Test {
 protected:
  Beneath() {
    dir_.MakeFile("secret", "secret");
    dir_.MakeDir("root");
    dir_.MakeDir("root/sub");
    dir_.MakeFile("root/sub/file", "content");
    root_ = Fd(::openat(dir_.fd(), "root", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  int root() const { return root_.get(); }

  TestDir dir_;
  Fd root_;
};

TEST_F(Beneath, OpensWhatIsInside) {
  EXPECT_EQ(ContentOf(root(), "sub/file"), "content");
  EXPECT_EQ(ContentOf(root(), "./sub//file"), "content");
}

TEST_F(Beneath, TheEmptyPathIsTheRoot) {
  auto again = OpenBeneath(root(), "", O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(again.ok()) << again.error().ToString();
  struct stat a{};
  struct stat b{};
  ASSERT_EQ(::fstat(root(), &a), 0);
  ASSERT_EQ(::fstat(again->get(), &b), 0);
  EXPECT_EQ(a.st_ino, b.st_ino);
}

TEST_F(Beneath, EveryDescriptorIsClosedOnExec) {
  auto file = OpenBeneath(root(), "sub/file", O_RDONLY);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(::fcntl(file->get(), F_GETFD), FD_CLOEXEC);
}

TEST_F(Beneath, CreatesWithTheGivenModeAndIgnoresAModeThatIsNotUsed) {
  auto file = OpenBeneath(root(), "sub/new", O_WRONLY | O_CREAT | O_EXCL, 0600);
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  struct stat stat{};
  ASSERT_EQ(::fstat(file->get(), &stat), 0);
  EXPECT_EQ(stat.st_mode & 07777, 0600U);
  EXPECT_TRUE(OpenBeneath(root(), "sub/new", O_RDONLY, 0600).ok());
  EXPECT_EQ(OpenBeneath(root(), "sub/new", O_WRONLY | O_CREAT | O_EXCL, 0600).error().code(),
            Code::kExists);
}

TEST_F(Beneath, WhatIsMissingIsNotFound) {
  EXPECT_EQ(ErrorOf(root(), "sub/none").code(), Code::kNotFound);
  EXPECT_EQ(ErrorOf(root(), "sub/file/below").code(), Code::kNotFound);
}

TEST_F(Beneath, NoPathLeadsOut) {
  for (const auto path : {"../secret", "sub/../../secret", "..", "/etc/passwd", "//etc"}) {
    const Error error = ErrorOf(root(), path);
    EXPECT_EQ(error.code(), Code::kOutsideRoot) << path;
    EXPECT_EQ(error.sys_errno(), EXDEV) << path;
  }
}

TEST_F(Beneath, NoSymlinkIsFollowedEvenInside) {
  dir_.MakeLink("../secret", "root/out");
  dir_.MakeLink("sub", "root/in");
  for (const auto path : {"out", "in/file"}) {
    const Error error = ErrorOf(root(), path);
    EXPECT_EQ(error.code(), Code::kOutsideRoot) << path;
    EXPECT_EQ(error.sys_errno(), ELOOP) << path;
    EXPECT_NE(error.message().find("symbolic link"), std::string::npos);
  }
}

TEST_F(Beneath, ASymlinkInLastPlaceOpensAsAnObject) {
  dir_.MakeLink("nowhere", "root/link");
  auto link = OpenBeneath(root(), "link", O_PATH | O_NOFOLLOW);
  ASSERT_TRUE(link.ok()) << link.error().ToString();
  char target[64] = {};
  EXPECT_EQ(::readlinkat(link->get(), "", target, sizeof(target)), 7);
  EXPECT_STREQ(target, "nowhere");
}

TEST(BeneathProc, MagicLinksAreRefused) {
  const Fd self(::open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!self) GTEST_SKIP() << "no /proc here";
  EXPECT_EQ(ErrorOf(self.get(), "cwd/x").code(), Code::kOutsideRoot);
  EXPECT_EQ(ErrorOf(self.get(), "fd/0").code(), Code::kOutsideRoot);
}

TEST(BeneathProc, AnotherMountIsNotEntered) {
  const Fd slash(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat root{};
  struct stat proc{};
  ASSERT_EQ(::stat("/", &root), 0);
  if (::stat("/proc", &proc) != 0 || proc.st_dev == root.st_dev)
    GTEST_SKIP() << "/proc is no mount";
  const Error error = ErrorOf(slash.get(), "proc/version");
  EXPECT_EQ(error.code(), Code::kOutsideRoot);
  EXPECT_NE(error.message().find("mount"), std::string::npos);
}

TEST_F(Beneath, BadNamesAreInvalid) {
  EXPECT_EQ(ErrorOf(root(), "sub\0x"sv).code(), Code::kInvalid);
  EXPECT_EQ(ErrorOf(root(), std::string(256, 'n')).code(), Code::kInvalid);
  const Error endless = ErrorOf(root(), std::string(3 * PATH_MAX, 'n'));
  EXPECT_EQ(endless.code(), Code::kInvalid);
  EXPECT_EQ(endless.sys_errno(), ENAMETOOLONG);
  EXPECT_LT(endless.message().size(), 400U);
}

TEST_F(Beneath, OpenDirWantsADirectory) {
  EXPECT_TRUE(OpenDirBeneath(root(), "sub").ok());
  EXPECT_TRUE(OpenDirBeneath(root(), "").ok());
  EXPECT_EQ(OpenDirBeneath(root(), "sub/file").error().code(), Code::kNotFound);
}

// Makes `levels` directories with names of 200 bytes inside each other and returns the path of the
// deepest.
std::string MakeDeep(int root_fd, int levels) {
  const std::string name(200, 'd');
  std::string path;
  Fd at(::openat(root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < levels; ++i) {
    CHECK(::mkdirat(at.get(), name.c_str(), 0755) == 0);
    at = Fd(::openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    path += (i == 0 ? "" : "/") + name;
  }
  return path;
}

TEST_F(Beneath, PathsLongerThanPathMaxWork) {
  const std::string deep = MakeDeep(root(), 150);
  ASSERT_GT(deep.size(), 7U * PATH_MAX);
  auto file = OpenBeneath(root(), deep + "/leaf", O_WRONLY | O_CREAT, 0644);
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  ASSERT_TRUE(WriteFully(file->get(), AsBytes("deep")).ok());
  EXPECT_EQ(ContentOf(root(), deep + "/leaf"), "deep");
  EXPECT_TRUE(OpenDirBeneath(root(), deep).ok());
  EXPECT_EQ(ErrorOf(root(), deep + "/none").code(), Code::kNotFound);
}

TEST_F(Beneath, WhereALongPathIsCutDoesNotMatter) {
  const std::string deep = MakeDeep(root(), 30);
  ASSERT_TRUE(OpenBeneath(root(), deep + "/leaf", O_WRONLY | O_CREAT, 0644).ok());
  // Shifts every component across the places where the path is cut.
  for (size_t slashes = 1; slashes <= 300; ++slashes) {
    const std::string path = "." + std::string(slashes, '/') + deep + "/leaf";
    EXPECT_TRUE(OpenBeneath(root(), path, O_RDONLY).ok()) << slashes;
  }
  EXPECT_TRUE(OpenDirBeneath(root(), "sub" + std::string(3 * PATH_MAX, '/')).ok());
  EXPECT_FALSE(OpenBeneath(root(), "sub/file" + std::string(3 * PATH_MAX, '/'), O_RDONLY).ok());
}

TEST_F(Beneath, ALongPathHasNoWayOutEither) {
  const std::string deep = MakeDeep(root(), 30);
  std::string up;
  for (int i = 0; i <= 30; ++i) up += "/..";
  EXPECT_EQ(ErrorOf(root(), deep + up + "/secret").code(), Code::kOutsideRoot);
  dir_.MakeLink(".", "root/loop");
  EXPECT_EQ(ErrorOf(root(), "loop/" + deep).code(), Code::kOutsideRoot);
}

TEST_F(Beneath, ADirectorySwappedForASymlinkNeverLeadsOut) {
  dir_.MakeDir("outside");
  dir_.MakeFile("outside/file", "secret");
  dir_.MakeLink("../outside", "root/swap");
  std::atomic<bool> stop = false;
  std::thread swapper([&] {
    while (!stop) ::renameat2(root(), "sub", root(), "swap", RENAME_EXCHANGE);
  });
  for (int i = 0; i < 3000; ++i) {
    auto file = OpenBeneath(root(), "sub/file", O_RDONLY);
    if (!file.ok()) {
      EXPECT_EQ(file.error().code(), Code::kOutsideRoot) << file.error().ToString();
      continue;
    }
    auto bytes = ReadFully(file->get(), 100);
    EXPECT_TRUE(bytes.ok() && AsText(*bytes) == "content");
  }
  stop = true;
  swapper.join();
}

}  // namespace
}  // namespace sandglass
