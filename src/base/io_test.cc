#include "base/io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/test_dir.h"

namespace sandglass {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    reader = Fd(ends[0]);
    writer = Fd(ends[1]);
  }
  Fd reader;
  Fd writer;
};

Bytes Pattern(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 256);
  return bytes;
}

// Interrupts the thread that made it, every few microseconds, with a signal that does not restart
// system calls.
class Interruptions {
 public:
  Interruptions() : victim_(::pthread_self()) {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    CHECK(::sigaction(SIGUSR1, &action, &before_) == 0);
    thread_ = std::thread([this] {
      while (!stop_) {
        ::pthread_kill(victim_, SIGUSR1);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    });
  }
  ~Interruptions() {
    stop_ = true;
    thread_.join();
    ::sigaction(SIGUSR1, &before_, nullptr);
  }

 private:
  const pthread_t victim_;
  struct sigaction before_{};
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST(WriteFully, ResumesAfterShortWritesAndSignals) {
  Pipe pipe;
  const Bytes sent = Pattern(4 << 20);
  Result<Bytes> received = Bytes();
  std::thread reader([&] { received = ReadFully(pipe.reader.get(), sent.size()); });
  {
    const Interruptions interruptions;
    EXPECT_TRUE(WriteFully(pipe.writer.get(), sent).ok());
  }
  pipe.writer.Reset();
  reader.join();
  ASSERT_TRUE(received.ok()) << received.error().ToString();
  EXPECT_TRUE(*received == sent);
}

TEST(ReadFully, ResumesAfterShortReadsAndSignals) {
  Pipe pipe;
  const Bytes sent = Pattern(1 << 20);
  std::thread writer([&] {
    for (size_t at = 0; at < sent.size(); at += 4096) {
      CHECK(WriteFully(pipe.writer.get(), ByteView(sent).subspan(at, 4096)).ok());
    }
    pipe.writer.Reset();
  });
  const auto received = [&] {
    const Interruptions interruptions;
    return ReadFully(pipe.reader.get(), sent.size());
  }();
  writer.join();
  ASSERT_TRUE(received.ok()) << received.error().ToString();
  EXPECT_TRUE(*received == sent);
}

TEST(WriteFully, NoSpaceIsAnError) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(WriteFully(full.get(), AsBytes("x")).error().code(), Code::kNoSpace);
  EXPECT_EQ(PWriteFully(full.get(), AsBytes("x"), 0).error().code(), Code::kNoSpace);
  EXPECT_TRUE(WriteFully(full.get(), {}).ok());
}

TEST(WriteFully, ABadDescriptorIsAnError) {
  EXPECT_EQ(WriteFully(-1, AsBytes("x")).error().sys_errno(), EBADF);
  EXPECT_EQ(ReadFully(-1, 10).error().sys_errno(), EBADF);
}

TEST(PWriteFully, WritesAtTheOffsetAndLeavesThePosition) {
  TestDir dir;
  const Fd file(::openat(dir.fd(), "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(WriteFully(file.get(), AsBytes("0123456789")).ok());
  ASSERT_TRUE(PWriteFully(file.get(), AsBytes("abc"), 4).ok());
  ASSERT_TRUE(WriteFully(file.get(), AsBytes("!")).ok());
  EXPECT_EQ(ReadFileAt(dir.fd(), "f", 100).value(), "0123abc789!");
}

TEST(PReadFully, IsShortOnlyAtTheEnd) {
  TestDir dir;
  dir.MakeFile("f", "0123456789");
  const Fd file(::openat(dir.fd(), "f", O_RDONLY | O_CLOEXEC));
  uint8_t buffer[6];
  EXPECT_EQ(PReadFully(file.get(), buffer, 2).value(), 6U);
  EXPECT_EQ(AsText(buffer), "234567");
  EXPECT_EQ(PReadFully(file.get(), buffer, 8).value(), 2U);
  EXPECT_EQ(PReadFully(file.get(), buffer, 50).value(), 0U);
  EXPECT_EQ(PReadFully(file.get(), buffer, -1).error().code(), Code::kInvalid);
}

TEST(ReadFully, ExactlyTheLimitIsAllowedAndOneMoreIsNot) {
  TestDir dir;
  for (const size_t size : {0U, 1U, 4095U, 4096U, 4097U, 100'000U}) {
    dir.MakeFile("f", std::string(size, 'x'));
    EXPECT_EQ(ReadFileAt(dir.fd(), "f", size).value().size(), size);
    EXPECT_EQ(ReadFileAt(dir.fd(), "f", SIZE_MAX).value().size(), size);
    if (size > 0) EXPECT_EQ(ReadFileAt(dir.fd(), "f", size - 1).error().code(), Code::kLimit);
  }
}

TEST(ReadFileAt, MissingFilesAndSymlinksAreRefused) {
  TestDir dir;
  dir.MakeFile("f", "x");
  dir.MakeLink("f", "link");
  EXPECT_EQ(ReadFileAt(dir.fd(), "none", 10).error().code(), Code::kNotFound);
  EXPECT_EQ(ReadFileAt(dir.fd(), "link", 10).error().sys_errno(), ELOOP);
}

TEST(ReadFileAt, AFifoDoesNotHang) {
  TestDir dir;
  ASSERT_EQ(::mkfifoat(dir.fd(), "fifo", 0600), 0);
  EXPECT_EQ(ReadFileAt(dir.fd(), "fifo", 10).value(), "");
}

TEST(ReplaceFileAt, CreatesAndReplaces) {
  TestDir dir;
  for (const FileSync sync : {FileSync::kNone, FileSync::kPower}) {
    EXPECT_TRUE(ReplaceFileAt(dir.fd(), "state", "first", sync).ok());
    EXPECT_EQ(ReadFileAt(dir.fd(), "state", 100).value(), "first");
    EXPECT_TRUE(ReplaceFileAt(dir.fd(), "state", "2", sync).ok());
    EXPECT_EQ(ReadFileAt(dir.fd(), "state", 100).value(), "2");
    EXPECT_FALSE(dir.Has("state.tmp"));
  }
}

TEST(ReplaceFileAt, WorksThroughAPathDescriptor) {
  TestDir dir;
  const Fd handle(::openat(dir.fd(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_TRUE(ReplaceFileAt(handle.get(), "state", "x", FileSync::kPower).ok());
}

TEST(ReplaceFileAt, AReaderOfTheOldFileKeepsItsContent) {
  TestDir dir;
  dir.MakeFile("state", "old");
  const Fd old(::openat(dir.fd(), "state", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(ReplaceFileAt(dir.fd(), "state", "new").ok());
  EXPECT_EQ(AsText(ReadFully(old.get(), 100).value()), "old");
}

TEST(ReplaceFileAt, ALeftoverOfACrashIsNotWrittenThrough) {
  TestDir dir;
  dir.MakeFile("victim", "untouched");
  dir.MakeLink("victim", "state.tmp");
  ASSERT_TRUE(ReplaceFileAt(dir.fd(), "state", "new").ok());
  EXPECT_EQ(ReadFileAt(dir.fd(), "victim", 100).value(), "untouched");
  EXPECT_EQ(ReadFileAt(dir.fd(), "state", 100).value(), "new");
}

TEST(ReplaceFileAt, OnErrorTheOldStaysAndNoTempIsLeft) {
  TestDir dir;
  dir.MakeDir("state");
  dir.MakeFile("state/inside");
  EXPECT_FALSE(ReplaceFileAt(dir.fd(), "state", "new").ok());
  EXPECT_TRUE(dir.Has("state/inside"));
  EXPECT_FALSE(dir.Has("state.tmp"));
}

TEST(RemoveTreeAt, MissingIsSuccess) {
  TestDir dir;
  EXPECT_TRUE(RemoveTreeAt(dir.fd(), "none").ok());
}

TEST(RemoveTreeAt, RemovesEveryKindOfObject) {
  TestDir dir;
  dir.MakeDir("t");
  dir.MakeDir("t/empty");
  dir.MakeDir("t/full");
  dir.MakeFile("t/full/\xff\n");
  dir.MakeFile("t/file", "x");
  dir.MakeLink("nowhere", "t/dangling");
  ASSERT_EQ(::mkfifoat(dir.fd(), "t/fifo", 0600), 0);
  EXPECT_TRUE(RemoveTreeAt(dir.fd(), "t").ok());
  EXPECT_FALSE(dir.Has("t"));
  dir.MakeFile("file");
  EXPECT_TRUE(RemoveTreeAt(dir.fd(), "file").ok());
  EXPECT_FALSE(dir.Has("file"));
}

TEST(RemoveTreeAt, NeverFollowsASymlink) {
  TestDir dir;
  dir.MakeDir("kept");
  dir.MakeFile("kept/file");
  dir.MakeDir("t");
  dir.MakeLink("../kept", "t/link");
  dir.MakeLink("kept", "top");
  EXPECT_TRUE(RemoveTreeAt(dir.fd(), "t").ok());
  EXPECT_TRUE(RemoveTreeAt(dir.fd(), "top").ok());
  EXPECT_TRUE(dir.Has("kept/file"));
  EXPECT_FALSE(dir.Has("top"));
}

TEST(RemoveTreeAt, ManyEntriesAndManySubdirectories) {
  TestDir dir;
  dir.MakeDir("t");
  for (int i = 0; i < 600; ++i) {
    const std::string name = "t/" + std::string(60, 'n') + std::to_string(i);
    if (i % 3 == 0) {
      dir.MakeDir(name.c_str());
      dir.MakeFile((name + "/x").c_str());
    } else {
      dir.MakeFile(name.c_str());
    }
  }
  EXPECT_TRUE(RemoveTreeAt(dir.fd(), "t").ok());
  EXPECT_FALSE(dir.Has("t"));
}

TEST(RemoveTreeAt, DepthBeyondPathMaxNeedsOnlyAFewDescriptors) {
  TestDir dir;
  dir.MakeDir("t");
  const std::string name(100, 'd');
  Fd at(::openat(dir.fd(), "t", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0755), 0);
    if (i % 10 == 0) ASSERT_EQ(::mkdirat(at.get(), "beside", 0755), 0);
    at = Fd(::openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  EXPECT_TRUE(RunInChild([&] {
    const rlim_t few = static_cast<rlim_t>(at.get()) + 8;
    const rlimit limit{.rlim_cur = few, .rlim_max = few};
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 && RemoveTreeAt(dir.fd(), "t").ok();
  }));
  EXPECT_FALSE(dir.Has("t"));
}

TEST(RemoveTreeAt, NeverEntersAnotherMount) {
  TestDir dir;
  dir.MakeDir("kept");
  dir.MakeFile("kept/file");
  dir.MakeDir("t");
  dir.MakeDir("t/mount");
  const auto bind = [&] {
    // The working directory moves to the new mount namespace, a descriptor does not.
    return ::fchdir(dir.fd()) == 0 && ::unshare(CLONE_NEWNS) == 0 &&
           ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("kept", "t/mount", nullptr, MS_BIND, nullptr) == 0;
  };
  if (!RunInChild(bind)) GTEST_SKIP() << "may not mount here";
  EXPECT_TRUE(RunInChild(
      [&] { return bind() && RemoveTreeAt(AT_FDCWD, "t").error().code() == Code::kOutsideRoot; }));
  EXPECT_TRUE(dir.Has("kept/file"));
}

TEST(RemoveTreeAt, OpensDirectoriesOfOursThatForbidIt) {
  TestDir dir;
  ASSERT_EQ(::fchmod(dir.fd(), 0777), 0);
  EXPECT_TRUE(RunUnprivileged([&] {
    dir.MakeDir("t");
    dir.MakeDir("t/readonly");
    dir.MakeDir("t/readonly/nothing");
    dir.MakeFile("t/readonly/nothing/file");
    ::fchmodat(dir.fd(), "t/readonly/nothing", 0, 0);
    ::fchmodat(dir.fd(), "t/readonly", 0555, 0);
    ::fchmodat(dir.fd(), "t", 0, 0);
    return RemoveTreeAt(dir.fd(), "t").ok();
  }));
  EXPECT_FALSE(dir.Has("t"));
}

TEST(RemoveTreeAt, ADirectoryOfSomeoneElseIsAnError) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to make a directory of another owner";
  TestDir dir;
  ASSERT_EQ(::fchmod(dir.fd(), 0777), 0);
  dir.MakeDir("t", 0755);
  dir.MakeFile("t/file");
  EXPECT_TRUE(
      RunUnprivileged([&] { return RemoveTreeAt(dir.fd(), "t").error().code() == Code::kDenied; }));
  EXPECT_TRUE(dir.Has("t/file"));
}

TEST(RemoveTreeAt, SurvivesSomeoneWhoRemovesTheSameTree) {
  TestDir dir;
  for (int round = 0; round < 5; ++round) {
    dir.MakeDir("t");
    for (int i = 0; i < 30; ++i) {
      const std::string name = "t/" + std::to_string(i);
      dir.MakeDir(name.c_str());
      dir.MakeFile((name + "/f").c_str());
    }
    std::thread other([&] { (void)RemoveTreeAt(dir.fd(), "t"); });
    (void)RemoveTreeAt(dir.fd(), "t");
    other.join();
    EXPECT_TRUE(RemoveTreeAt(dir.fd(), "t").ok());
    EXPECT_FALSE(dir.Has("t"));
  }
}

TEST(RemoveTreeAtDeathTest, APathInsteadOfANameIsACallersBug) {
  TestDir dir;
  EXPECT_DEATH((void)RemoveTreeAt(dir.fd(), "a/b"), "CHECK failed");
  EXPECT_DEATH((void)RemoveTreeAt(dir.fd(), ".."), "CHECK failed");
}

}  // namespace
}  // namespace sandglass
