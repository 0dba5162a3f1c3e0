#include "cli/console.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"
#include "base/io.h"
#include "cli/exit_code.h"

namespace sandglass::cli {
namespace {

// A console whose streams are files in memory.
class ConsoleTest : public ::testing::Test {
 protected:
  static std::string Content(const Fd& file) {
    const auto bytes = ::lseek(file.get(), 0, SEEK_SET) == 0 ? ReadFully(file.get(), 1 << 20)
                                                             : Result<Bytes>(Bytes());
    return bytes.ok() ? std::string(AsText(*bytes)) : bytes.error().ToString();
  }
  StandardStreams Streams() const { return {in_.get(), out_.get(), err_.get()}; }

  Fd in_{::memfd_create("in", MFD_CLOEXEC)}, out_{::memfd_create("out", MFD_CLOEXEC)},
      err_{::memfd_create("err", MFD_CLOEXEC)};
};

TEST_F(ConsoleTest, OutputAppearsOnlyWhenFlushed) {
  Console console(Streams(), Format::kText);
  console.Print("one\n");
  EXPECT_EQ(Content(out_), "");
  EXPECT_TRUE(console.Flush().ok());
  EXPECT_TRUE(console.Flush().ok());
  EXPECT_EQ(Content(out_), "one\n");
}

TEST_F(ConsoleTest, AFailureDropsWhatWasPrintedAndSpeaksOnTheErrorStream) {
  Console console(Streams(), Format::kText);
  console.Print("half");
  console.Fail(Error(Code::kIo, "no luck with \033[1m"));
  EXPECT_TRUE(console.Flush().ok());
  EXPECT_EQ(Content(out_), "");
  EXPECT_EQ(Content(err_), "sandglass: no luck with \\x1b[1m\n");
}

TEST_F(ConsoleTest, WithJsonAFailureIsAnObjectWithItsDetails) {
  Console console(Streams(), Format::kJson);
  console.AddErrorDetail("conflicts", Json::Array({1}));
  console.Fail(Error(Code::kConflict, "why"));
  EXPECT_TRUE(console.Flush().ok());
  EXPECT_EQ(Content(out_),
            "{\"error\":{\"code\":\"conflict\",\"message\":\"why\",\"conflicts\":[1]}}\n");
  EXPECT_EQ(Content(err_), "sandglass: why\n");
}

TEST_F(ConsoleTest, NobodyCanBeAskedWithoutATerminal) {
  const auto answer = Console(Streams(), Format::kText).Confirm("Sure?");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kInvalid);
}

TEST_F(ConsoleTest, OutputThatCannotBeWrittenIsAnError) {
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Console console({in_.get(), full.get(), err_.get()}, Format::kText);
  console.Print("x");
  const auto flushed = console.Flush();
  ASSERT_FALSE(flushed.ok());
  EXPECT_EQ(flushed.error().code(), Code::kNoSpace);
}

TEST(ExitCodes, AreWhatTheManualSays) {
  EXPECT_EQ(ExitCodeFor(Code::kInvalid), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeFor(Code::kConflict), ExitCode::kConflict);
  EXPECT_EQ(ExitCodeFor(Code::kForeign), ExitCode::kFailed);
  EXPECT_EQ(ExitCodeFor(Code::kNotFound), ExitCode::kFailed);
  EXPECT_EQ(ExitCodeFor(Code::kLocked), ExitCode::kFailed);
}

}  // namespace
}  // namespace sandglass::cli
