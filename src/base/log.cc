#include "base/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <iterator>

#include "base/json.h"

namespace sandglass {
namespace {

// What a shortened line keeps. Escaping can make six bytes of one, and with these the worst case
// still fits into
// kMaxLogLine: 6 * (512 + 48 + 48) bytes of text and under 300 around it.
constexpr size_t kShortMessageBytes = 512;
constexpr size_t kShortContextBytes = 48;

struct LevelName {
  LogLevel level;
  std::string_view name;
};
constexpr std::array kLevels = {
    LevelName{LogLevel::kTrace, "trace"}, LevelName{LogLevel::kDebug, "debug"},
    LevelName{LogLevel::kInfo, "info"},   LevelName{LogLevel::kWarn, "warn"},
    LevelName{LogLevel::kError, "error"},
};

void AppendKey(std::string& line, std::string_view key) {
  if (line.back() != '{') line += ',';
  AppendJsonString(line, key);
  line += ':';
}

void AppendText(std::string& line, std::string_view key, std::string_view text) {
  AppendKey(line, key);
  AppendJsonString(line, text);
}

void AppendField(std::string& line, const LogField& field) {
  AppendKey(line, field.key());
  line += std::visit(
      [](auto value) {
        if constexpr (std::same_as<decltype(value), std::string_view>) {
          return WriteJson(BytesToJson(value));
        } else {
          return WriteJson(value);
        }
      },
      field.value());
}

// The first `max` bytes; a character that this splits is written as U+FFFD.
std::string_view Shorten(std::string_view text, size_t max) { return text.substr(0, max); }

}  // namespace

std::string_view LogLevelName(LogLevel level) { return kLevels[static_cast<size_t>(level)].name; }

std::optional<LogLevel> ParseLogLevel(std::string_view name) {
  const auto* found = std::ranges::find(kLevels, name, &LevelName::name);
  if (found == kLevels.end()) return std::nullopt;
  return found->level;
}

void FdLogSink::WriteLine(std::string_view line) {
  // One call per line and no lock: up to PIPE_BUF bytes a pipe keeps the line whole, and a file
  // keeps any line whole. Whatever else goes wrong (a full disk, a closed pipe) has nobody left to
  // be told.
  while (::write(fd_, line.data(), line.size()) < 0 && errno == EINTR) {
  }
}

Logger Logger::With(std::string_view component) const {
  Logger logger = *this;
  logger.component_ = component;
  return logger;
}

Logger Logger::WithRequest(std::string_view request_id) const {
  Logger logger = *this;
  logger.request_id_ = request_id;
  return logger;
}

Logger Logger::WithStep(StepId step_id) const {
  Logger logger = *this;
  logger.step_id_ = step_id;
  return logger;
}

void Logger::Log(LogLevel level, std::string_view message, Fields fields) const {
  if (!enabled(level)) return;
  std::string line = Line(level, message, fields);
  if (line.size() > kMaxLogLine) line = ShortLine(level, message);
  sink_->WriteLine(line);
}

std::string Logger::Line(LogLevel level, std::string_view message, Fields fields) const {
  std::string line = "{";
  AppendHead(line, level, message);
  for (const LogField& field : fields) AppendField(line, field);
  line += "}\n";
  return line;
}

std::string Logger::ShortLine(LogLevel level, std::string_view message) const {
  Logger brief = *this;
  brief.component_ = Shorten(component_, kShortContextBytes);
  brief.request_id_ = Shorten(request_id_, kShortContextBytes);
  return brief.Line(level, Shorten(message, kShortMessageBytes), {{"truncated", true}});
}

void Logger::AppendHead(std::string& line, LogLevel level, std::string_view message) const {
  AppendText(line, "timestamp", FormatTimestamp(clock_->Now()));
  AppendText(line, "level", LogLevelName(level));
  AppendText(line, "component", component_);
  AppendText(line, "message", message);
  if (!request_id_.empty()) AppendText(line, "request_id", request_id_);
  if (step_id_) AppendField(line, LogField("step_id", step_id_->value));
}

std::string FormatTimestamp(Instant at) {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  // Rounded down, also before 1970, so that the fraction is never negative.
  const int64_t fraction_ns = (at.ns % kNsPerSecond + kNsPerSecond) % kNsPerSecond;
  const time_t seconds = (at.ns - fraction_ns) / kNsPerSecond;
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     fraction_ns / 1000);
}

}  // namespace sandglass
