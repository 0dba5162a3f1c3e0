#include "tests/crash/plain_compare.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::crash {
namespace {

using test::Must;
using test::MustCall;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PlainCompareTest : public ::testing::Test {
 protected:
  PlainCompareTest() {
    place_.WriteFile("dir/file", "content");
    place_.WriteFile("other", "content");
    MustCall(link(At("dir/file").c_str(), At("linked").c_str()), "link");
    MustCall(symlink("target", At("symlink").c_str()), "symlink");
    MustCall(mkfifo(At("pipe").c_str(), 0600), "mkfifo");
  }

  std::string At(std::string_view rel) const { return place_.Path(rel); }
  PlainTree Read() const { return Must(ReadPlainTree(place_.project())); }

  // Does `change` to a tree and puts the times back, so that only what is asked for differs.
  std::vector<std::string> DifferencesAfter(const std::function<void()>& change) const {
    const PlainTree before = Read();
    change();
    for (const auto& [path, entry] : before) SetMtime(path, entry.mtime_ns);
    return PlainDifferences(before, Read());
  }

  void SetMtime(const std::string& rel, int64_t ns) const {
    const timespec times[2] = {{0, UTIME_OMIT}, {ns / 1'000'000'000, ns % 1'000'000'000}};
    utimensat(AT_FDCWD, At(rel).c_str(), times, AT_SYMLINK_NOFOLLOW);
  }

  test::TempWorkspace place_;
};

TEST_F(PlainCompareTest, ATreeEqualsItself) {
  EXPECT_THAT(PlainDifferences(Read(), Read()), IsEmpty());
}

TEST_F(PlainCompareTest, ContentOfTheSameSizeIsCompared) {
  const auto differences = DifferencesAfter([&] { place_.WriteFile("other", "contend"); });
  EXPECT_THAT(differences, ElementsAre(HasSubstr("other: content")));
}

TEST_F(PlainCompareTest, AllTwelveModeBitsAreCompared) {
  for (const mode_t bit :
       {04000, 02000, 01000, 0400, 0200, 0100, 0040, 0020, 0010, 0004, 0002, 0001}) {
    const mode_t old = place_.Stat("other").st_mode & 07777;
    const auto differences =
        DifferencesAfter([&] { MustCall(chmod(At("other").c_str(), old ^ bit), "chmod"); });
    EXPECT_THAT(differences, ElementsAre(HasSubstr("other: mode"))) << std::oct << bit;
  }
}

TEST_F(PlainCompareTest, OneNanosecondIsADifference) {
  const PlainTree before = Read();
  SetMtime("dir", before.at("dir").mtime_ns + 1);
  EXPECT_THAT(PlainDifferences(before, Read()), ElementsAre(HasSubstr("dir: mtime")));
  EXPECT_THAT(PlainDifferences(before, Read(), {"dir"}), IsEmpty());
  EXPECT_THAT(PathsWithOtherMtime(before, Read()), ElementsAre("dir"));
}

TEST_F(PlainCompareTest, ACopyIsNoHardLink) {
  const auto differences = DifferencesAfter([&] {
    MustCall(unlink(At("linked").c_str()), "unlink");
    place_.WriteFile("linked", "content");
  });
  EXPECT_THAT(differences, ElementsAre(HasSubstr("linked: same inode as")));
}

TEST_F(PlainCompareTest, NamesTypesAndTargetsAreCompared) {
  const auto differences = DifferencesAfter([&] {
    MustCall(unlink(At("symlink").c_str()), "unlink");
    MustCall(symlink("elsewhere", At("symlink").c_str()), "symlink");
    MustCall(unlink(At("pipe").c_str()), "unlink");
    MustCall(unlink(At("other").c_str()), "unlink");
    place_.WriteFile("more", "");
  });
  EXPECT_THAT(differences, ElementsAre("other: missing", "pipe: missing",
                                       HasSubstr("symlink: content"), "more: should not exist"));
}

TEST_F(PlainCompareTest, XattrsAreCompared) {
  if (setxattr(At("other").c_str(), "user.a", "1", 1, 0) != 0)
    GTEST_SKIP() << "no user xattrs here";
  const auto differences = DifferencesAfter(
      [&] { MustCall(setxattr(At("other").c_str(), "user.a", "2", 1, 0), "setxattr"); });
  EXPECT_THAT(differences, ElementsAre(HasSubstr("other: xattrs")));
}

TEST_F(PlainCompareTest, OwnersAreCompared) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const auto differences =
      DifferencesAfter([&] { MustCall(chown(At("other").c_str(), 1, 2), "chown"); });
  EXPECT_THAT(differences, ElementsAre(HasSubstr("other: owner")));
}

}  // namespace
}  // namespace sandglass::crash
