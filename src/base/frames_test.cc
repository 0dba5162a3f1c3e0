#include "base/frames.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace sandglass {
namespace {

class FramesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    near_ = Fd(ends[0]);
    far_ = Fd(ends[1]);
  }
  Fd near_, far_;
};

TEST_F(FramesTest, ArriveOneByOneAndWhole) {
  ASSERT_TRUE(SendFrame(near_.get(), "first").ok());
  ASSERT_TRUE(SendFrame(near_.get(), "").ok());
  ASSERT_TRUE(SendFrame(near_.get(), std::string("a\0b", 3)).ok());
  EXPECT_EQ(ReceiveFrame(far_.get(), 100)->bytes, "first");
  EXPECT_EQ(ReceiveFrame(far_.get(), 100)->bytes, "");
  EXPECT_EQ(ReceiveFrame(far_.get(), 100)->bytes, std::string("a\0b", 3));
}

TEST_F(FramesTest, MayBeLargerThanTheSocketHolds) {
  const std::string large(size_t{8} << 20, 'x');
  std::thread sender([&] { EXPECT_TRUE(SendFrame(near_.get(), large).ok()); });
  const auto frame = ReceiveFrame(far_.get(), large.size());
  sender.join();
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->bytes, large);
}

TEST_F(FramesTest, CarryDescriptors) {
  const Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int fds[] = {file.get()};
  ASSERT_TRUE(SendFrame(near_.get(), "with one", fds).ok());
  ASSERT_TRUE(SendFrame(near_.get(), "without").ok());
  const auto with = ReceiveFrame(far_.get(), 100);
  ASSERT_TRUE(with.ok());
  ASSERT_EQ(with->fd_count, 1U);
  struct stat sent, received;
  ASSERT_EQ(::fstat(file.get(), &sent), 0);
  ASSERT_EQ(::fstat(with->fds[0].get(), &received), 0);
  EXPECT_EQ(sent.st_ino, received.st_ino);
  EXPECT_NE(::fcntl(with->fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(ReceiveFrame(far_.get(), 100)->fd_count, 0U);
}

TEST_F(FramesTest, ATooLongOneIsRefusedBeforeItIsHeldInMemory) {
  ASSERT_TRUE(SendFrame(near_.get(), "seven b").ok());
  EXPECT_EQ(ReceiveFrame(far_.get(), 6).error().code(), Code::kLimit);
}

TEST_F(FramesTest, AnEndThatIsGoneIsTold) {
  ASSERT_EQ(::write(near_.get(), "\xff\0\0\0half", 8), 8);
  near_.Reset();
  EXPECT_EQ(ReceiveFrame(far_.get(), 1000).error().code(), Code::kCancelled);
  EXPECT_EQ(ReceiveFrame(far_.get(), 1000).error().code(), Code::kCancelled);
  EXPECT_EQ(SendFrame(far_.get(), "nobody listens").error().code(), Code::kCancelled);
}

}  // namespace
}  // namespace sandglass
