#include "base/shared_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace sandglass {
namespace {

struct Ends {
  Fd read, write;
};

Ends NewPipe() {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

Ends NewSockets() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

// Until it takes nothing more; if that blocked, the test would never end.
size_t Fill(const SharedOutput& output) {
  const std::string much(size_t{1} << 20, 'x');
  size_t all = 0;
  while (true) {
    const auto taken = output.Write(much);
    EXPECT_TRUE(taken.ok());
    if (!taken.ok() || *taken == 0) return all;
    all += *taken;
  }
}

TEST(SharedOutput, APipeTakesWhatItHasRoomForAndKeepsItsFlags) {
  const Ends ends = NewPipe();
  const SharedOutput output(ends.write.get());
  EXPECT_EQ(Fill(output), static_cast<size_t>(::fcntl(ends.write.get(), F_GETPIPE_SZ)));
  EXPECT_EQ(::fcntl(ends.write.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(SharedOutput, ASocketTakesWhatItHasRoomFor) {
  const Ends ends = NewSockets();
  EXPECT_GT(Fill(SharedOutput(ends.write.get())), size_t{PIPE_BUF});
}

TEST(SharedOutput, SaysThatNobodyReads) {
  ::signal(SIGPIPE, SIG_IGN);
  for (const auto make : {NewPipe, NewSockets}) {
    Ends ends = make();
    const SharedOutput output(ends.write.get());
    ends.read.Reset();
    const auto written = output.Write("x");
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().code(), Code::kCancelled);
  }
}

TEST(SharedOutput, WorksAlsoWhereNobodyEverRead) {
  ::signal(SIGPIPE, SIG_IGN);
  Ends ends = NewPipe();
  ends.read.Reset();
  const SharedOutput output(ends.write.get());  // cannot be opened once more
  const auto written = output.Write("x");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code(), Code::kCancelled);
}

}  // namespace
}  // namespace sandglass
