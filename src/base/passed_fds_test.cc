#include "base/passed_fds.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>

namespace sandglass {
namespace {

class PassedFds : public ::testing::Test {
 protected:
  PassedFds() {
    int ends[2];
    CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    sender_ = Fd(ends[0]);
    receiver_ = Fd(ends[1]);
  }
  Result<ReceivedMessage> Receive() { return ReceiveWithFds(receiver_.get(), buffer_); }

  Fd sender_;
  Fd receiver_;
  std::array<uint8_t, 8> buffer_{};
};

TEST_F(PassedFds, ArriveInOrderAndCloseOnExec) {
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int fds[] = {null.get(), sender_.get()};
  ASSERT_TRUE(SendWithFds(sender_.get(), AsBytes("hello"), fds).ok());
  const auto received = Receive();
  ASSERT_TRUE(received.ok());
  EXPECT_EQ(received->size, 5u);
  ASSERT_EQ(received->fd_count, 2u);
  EXPECT_EQ(::fcntl(received->fds[0].get(), F_GETFD), FD_CLOEXEC);
  struct stat first{};
  struct stat second{};
  ::fstat(received->fds[0].get(), &first);
  ::fstat(received->fds[1].get(), &second);
  EXPECT_TRUE(S_ISCHR(first.st_mode));
  EXPECT_TRUE(S_ISSOCK(second.st_mode));
}

TEST_F(PassedFds, NoMessageIsBusyAndNoSenderIsTheEnd) {
  EXPECT_EQ(Receive().error().code(), Code::kBusy);
  sender_.Reset();
  const auto end = Receive();
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->size, 0u);
}

TEST_F(PassedFds, AMessageThatIsTooLargeIsRefusedAsAWhole) {
  const int fds[] = {sender_.get()};
  ASSERT_TRUE(SendWithFds(sender_.get(), AsBytes("nine bytes"), fds).ok());
  EXPECT_EQ(Receive().error().code(), Code::kInvalid);
  EXPECT_EQ(Receive().error().code(), Code::kBusy);
}

TEST_F(PassedFds, AMessageWithoutDescriptorsHasNone) {
  ASSERT_EQ(::send(sender_.get(), "x", 1, 0), 1);
  const auto received = Receive();
  ASSERT_TRUE(received.ok());
  EXPECT_EQ(received->fd_count, 0u);
}

}  // namespace
}  // namespace sandglass
