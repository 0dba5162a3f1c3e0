#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <utility>

namespace sandglass {
namespace {

Fd OpenNull() { return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(Fd, ClosesWhatItOwns) {
  int raw = -1;
  {
    const Fd fd = OpenNull();
    raw = fd.get();
    EXPECT_TRUE(fd.valid());
    EXPECT_TRUE(IsOpen(raw));
  }
  EXPECT_FALSE(IsOpen(raw));
}

TEST(Fd, StartsWithNothing) {
  const Fd fd;
  EXPECT_FALSE(fd.valid());
  EXPECT_FALSE(static_cast<bool>(fd));
  EXPECT_EQ(fd.get(), -1);
}

TEST(Fd, MovingHandsOverTheDescriptor) {
  Fd a = OpenNull();
  const int raw = a.get();
  Fd b = std::move(a);
  EXPECT_EQ(b.get(), raw);
  EXPECT_FALSE(
      a.valid());  // NOLINT(bugprone-use-after-move): what a moved-from Fd is, is the point
}

TEST(Fd, AssigningClosesTheOldDescriptor) {
  Fd a = OpenNull();
  const int old = a.get();
  Fd b = OpenNull();
  const int kept = b.get();
  a = std::move(b);
  EXPECT_FALSE(IsOpen(old));
  EXPECT_EQ(a.get(), kept);
  EXPECT_TRUE(IsOpen(kept));
}

TEST(Fd, AssigningToItselfKeepsTheDescriptor) {
  Fd a = OpenNull();
  Fd& same = a;
  a = std::move(same);
  EXPECT_TRUE(IsOpen(a.get()));
}

TEST(Fd, ReleaseGivesUpOwnership) {
  Fd a = OpenNull();
  const int raw = a.Release();
  EXPECT_FALSE(a.valid());
  EXPECT_TRUE(IsOpen(raw));
  const Fd again(raw);
}

}  // namespace
}  // namespace sandglass
