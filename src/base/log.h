// Logger: JSON Lines for programs and people, one object per line:
//   {"timestamp":"2023-11-14T22:13:20.000000Z","level":"info","component":"undo",
//    "message":"step closed","step_id":7}
//
// There is no global logger: main() makes a sink and a Logger and hands references down; With*()
// adds context. Logging never fails and never blocks longer than the sink's write. A line is at
// most kMaxLogLine bytes, so that one write(2) puts it whole into a pipe that others write to as
// well; what does not fit is cut and the line says "truncated":true. Logger is a small value; sink
// and clock must outlive it. Thread-safe.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"

namespace sandglass {

enum class LogLevel : uint8_t { kTrace, kDebug, kInfo, kWarn, kError };

// The spelling in the log, e.g. "info".
std::string_view LogLevelName(LogLevel level);
// The level of that name, e.g. from a configuration.
std::optional<LogLevel> ParseLogLevel(std::string_view name);

inline constexpr size_t kMaxLogLine =
    4096;  // PIPE_BUF: writes up to this size are atomic on a pipe

// Where lines go. Implementations are thread-safe.
class LogSink {
 public:
  virtual ~LogSink() = default;
  // `line` ends with its newline.
  virtual void WriteLine(std::string_view line) = 0;
};

// Writes to a descriptor that it does not own, e.g. STDERR_FILENO. A line that cannot be written is
// dropped.
class FdLogSink final : public LogSink {
 public:
  explicit FdLogSink(int fd) : fd_(fd) {}
  void WriteLine(std::string_view line) override;

 private:
  const int fd_;
};

// An extra key and value. Text that is not UTF-8 appears as {"base64": "..."}. Borrows its text:
// build it in the call.
class LogField {
 public:
  using Value = std::variant<bool, int64_t, uint64_t, double, std::string_view>;

  template <std::same_as<bool> T>
  LogField(std::string_view key, T value) : key_(key), value_(value) {}
  template <std::signed_integral T>
  LogField(std::string_view key, T value) : key_(key), value_(static_cast<int64_t>(value)) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  LogField(std::string_view key, T value) : key_(key), value_(static_cast<uint64_t>(value)) {}
  LogField(std::string_view key, double value) : key_(key), value_(value) {}
  LogField(std::string_view key, std::string_view value) : key_(key), value_(value) {}
  LogField(std::string_view key, const char* value) : key_(key), value_(std::string_view(value)) {}
  LogField(std::string_view key, const std::string& value)
      : key_(key), value_(std::string_view(value)) {}

  std::string_view key() const { return key_; }
  const Value& value() const { return value_; }

 private:
  std::string_view key_;
  Value value_;
};

class Logger {
 public:
  using Fields = std::initializer_list<LogField>;

  Logger(LogSink& sink, const Clock& clock, LogLevel threshold = LogLevel::kInfo)
      : sink_(&sink), clock_(&clock), threshold_(threshold) {}

  // Says nothing to nobody.
  static Logger Null() { return Logger(); }

  // The same logger with one part of the context replaced.
  Logger With(std::string_view component) const;
  Logger WithRequest(std::string_view request_id) const;
  Logger WithStep(StepId step_id) const;

  bool enabled(LogLevel level) const { return sink_ != nullptr && level >= threshold_; }

  void Log(LogLevel level, std::string_view message, Fields fields = {}) const;
  void Trace(std::string_view message, Fields fields = {}) const {
    Log(LogLevel::kTrace, message, fields);
  }
  void Debug(std::string_view message, Fields fields = {}) const {
    Log(LogLevel::kDebug, message, fields);
  }
  void Info(std::string_view message, Fields fields = {}) const {
    Log(LogLevel::kInfo, message, fields);
  }
  void Warn(std::string_view message, Fields fields = {}) const {
    Log(LogLevel::kWarn, message, fields);
  }
  void Error(std::string_view message, Fields fields = {}) const {
    Log(LogLevel::kError, message, fields);
  }

 private:
  Logger() = default;
  std::string Line(LogLevel level, std::string_view message, Fields fields) const;
  std::string ShortLine(LogLevel level, std::string_view message) const;
  void AppendHead(std::string& line, LogLevel level, std::string_view message) const;

  LogSink* sink_ = nullptr;       // null: the null logger
  const Clock* clock_ = nullptr;  // null only together with sink_
  LogLevel threshold_ = LogLevel::kInfo;
  std::string component_;
  std::string request_id_;  // empty: none
  std::optional<StepId> step_id_;
};

// RFC 3339 in UTC with microseconds: "2023-11-14T22:13:20.000000Z".
std::string FormatTimestamp(Instant at);

}  // namespace sandglass
