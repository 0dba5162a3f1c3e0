#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "base/json.h"
#include "base/thread_annotations.h"

namespace sandglass {
namespace {

class LinesSink final : public LogSink {
 public:
  void WriteLine(std::string_view line) override {
    const MutexLock lock(mutex_);
    lines_.emplace_back(line);
  }
  std::vector<std::string> lines() const {
    const MutexLock lock(mutex_);
    return lines_;
  }
  Json Only() const {
    CHECK(lines().size() == 1);
    return ParseJson(lines()[0]).value();
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::string> lines_ GUARDED_BY(mutex_);
};

class Log : public ::testing::Test {
 protected:
  LinesSink sink_;
  FakeClock clock_;
  Logger logger_{sink_, clock_};
};

TEST_F(Log, ALineIsOneJsonObjectWithAllItsContext) {
  logger_.With("undo").WithRequest("r-1").WithStep(StepId{7}).Info(
      "step closed",
      {{"paths", 3}, {"copied", size_t{1} << 40}, {"ratio", 1.5}, {"ok", true}, {"root", "src"}});
  EXPECT_EQ(sink_.lines(),
            std::vector<std::string>{
                "{\"timestamp\":\"2023-11-14T22:13:20.000000Z\",\"level\":\"info\","
                "\"component\":\"undo\",\"message\":\"step closed\",\"request_id\":\"r-1\","
                "\"step_id\":7,\"paths\":3,\"copied\":1099511627776,\"ratio\":1.5,\"ok\":true,"
                "\"root\":\"src\"}\n"});
}

TEST_F(Log, ContextThatIsNotThereIsLeftOut) {
  logger_.Info("plain");
  EXPECT_EQ(sink_.Only().Find("request_id"), nullptr);
  EXPECT_EQ(sink_.Only().Find("step_id"), nullptr);
}

TEST_F(Log, AmbientStepsHaveNegativeIds) {
  logger_.WithStep(StepId{-2}).Info("late write");
  EXPECT_EQ(sink_.Only().GetInt("step_id").value(), -2);
}

TEST_F(Log, ContextOfACopyDoesNotChangeTheOriginal) {
  (void)logger_.With("other").WithRequest("r");
  logger_.Info("x");
  EXPECT_EQ(sink_.Only().GetString("component").value(), "");
}

TEST_F(Log, LevelsBelowTheThresholdAreSilent) {
  Logger quiet(sink_, clock_, LogLevel::kWarn);
  quiet.Trace("t");
  quiet.Debug("d");
  quiet.Info("i");
  EXPECT_FALSE(quiet.enabled(LogLevel::kInfo));
  EXPECT_TRUE(sink_.lines().empty());
  quiet.Warn("w");
  quiet.Error("e");
  EXPECT_EQ(sink_.lines().size(), 2U);
}

TEST_F(Log, TraceThresholdLetsEverythingThrough) {
  Logger loud(sink_, clock_, LogLevel::kTrace);
  loud.Trace("t");
  loud.Debug("d");
  ASSERT_EQ(sink_.lines().size(), 2U);
  EXPECT_EQ(ParseJson(sink_.lines()[0])->GetString("level").value(), "trace");
}

TEST_F(Log, TheNullLoggerSaysNothing) {
  const Logger null = Logger::Null();
  EXPECT_FALSE(null.enabled(LogLevel::kError));
  null.With("x").WithStep(StepId{1}).Error("nobody hears this");
}

TEST_F(Log, TextCannotBreakTheLine) {
  logger_.With("c\"\n").Info("two\nlines \"quoted\" \xff", {{"name", "a\nb"}, {"raw", "\xff\xfe"}});
  const std::string line = sink_.lines().at(0);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(sink_.Only().GetString("message").value(), "two\nlines \"quoted\" \xEF\xBF\xBD");
  EXPECT_EQ(BytesFromJson(*sink_.Only().Find("raw")).value(), "\xff\xfe");
}

TEST_F(Log, ALineThatIsTooLongIsCutAndSaysSo) {
  logger_.WithRequest("r").Info("short message", {{"big", std::string(5000, 'x')}});
  EXPECT_EQ(sink_.Only().GetString("message").value(), "short message");
  EXPECT_EQ(sink_.Only().GetString("request_id").value(), "r");
  EXPECT_EQ(sink_.Only().GetBool("truncated").value(), true);
  EXPECT_EQ(sink_.Only().Find("big"), nullptr);
}

TEST_F(Log, EvenTheWorstLineFits) {
  const std::string worst(100'000, '\x01');
  logger_.With(worst).WithRequest(worst).WithStep(StepId{INT64_MIN}).Error(worst, {{"f", worst}});
  EXPECT_LE(sink_.lines().at(0).size(), kMaxLogLine);
  EXPECT_EQ(sink_.Only().GetBool("truncated").value(), true);
}

TEST(FdLogSink, LinesOfManyThreadsStayWhole) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Fd reader(ends[0]);
  Fd writer(ends[1]);
  const SystemClock clock;
  FdLogSink sink(writer.get());
  const Logger logger(sink, clock);
  constexpr int kThreads = 4;
  constexpr int kLines = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&logger, t] {
      for (int i = 0; i < kLines; ++i) {
        logger.Info(std::string(static_cast<size_t>(i) * 19, 'm'), {{"id", t * kLines + i}});
      }
    });
  }
  std::thread closer([&] {
    for (auto& thread : threads) thread.join();
    writer.Reset();
  });
  const auto bytes = ReadFully(reader.get(), 64 << 20);
  closer.join();
  ASSERT_TRUE(bytes.ok());
  std::set<int64_t> seen;
  for (std::string_view rest = AsText(*bytes); !rest.empty();
       rest.remove_prefix(rest.find('\n') + 1)) {
    const auto line = ParseJson(rest.substr(0, rest.find('\n')));
    ASSERT_TRUE(line.ok()) << line.error().ToString();
    seen.insert(line->GetInt("id").value());
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kThreads * kLines));
}

TEST(FdLogSink, ASinkThatCannotBeWrittenHarmsNobody) {
  const FakeClock clock;
  FdLogSink closed(-1);
  Logger(closed, clock).Error("lost");
  const Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  FdLogSink full_sink(full.get());
  Logger(full_sink, clock).Error("lost too");
}

TEST(LogLevel, NamesAndLevelsAreInverse) {
  for (const auto level :
       {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError}) {
    EXPECT_EQ(ParseLogLevel(LogLevelName(level)), level);
  }
  EXPECT_EQ(ParseLogLevel("loud"), std::nullopt);
}

TEST(FormatTimestamp, IsRfc3339InUtcWithMicroseconds) {
  EXPECT_EQ(FormatTimestamp({0}), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(FormatTimestamp({1'700'000'000'123'456'789}), "2023-11-14T22:13:20.123456Z");
  EXPECT_EQ(FormatTimestamp({951'782'400'000'000'999}), "2000-02-29T00:00:00.000000Z");
}

TEST(FormatTimestamp, TimesBefore1970RoundDown) {
  EXPECT_EQ(FormatTimestamp({-1}), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(FormatTimestamp({-1'000'000'000}), "1969-12-31T23:59:59.000000Z");
}

}  // namespace
}  // namespace sandglass
