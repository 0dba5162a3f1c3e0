// Console: the three standard streams of the program, as descriptors, so that a test can hand in
// others.
//
// Output is collected and written at the end: a reader of --json gets one whole line or none. Notes
// for people go to the error stream at once. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/log.h"
#include "base/result.h"

namespace sandglass::cli {

enum class Format : uint8_t { kText, kJson };

struct StandardStreams {
  int in = 0, out = 1, err = 2;
};

class Console {
 public:
  Console(StandardStreams streams, Format format)
      : streams_(streams), format_(format), log_sink_(streams.err) {}
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool wants_json() const { return format_ == Format::kJson; }
  bool out_is_terminal() const;
  // A terminal, and no log on it.
  bool err_is_for_people() const;

  void Print(std::string_view text) { out_ += text; }
  void PrintJson(const Json& value) { out_ += WriteJson(value) + '\n'; }
  // From now on there is a log on the error stream. It must not outlive the console.
  void StartLog(LogLevel level) { log_ = Logger(log_sink_, clock_, level).With("cli"); }
  const Logger& log() const { return log_; }

  // One line for a person: "sandglass: text"; a warning where there is a log. What it cannot write is lost.
  void Note(std::string_view text, std::optional<StepId> step = std::nullopt) const;

  // Asks until the answer is yes or no; the end of input is a no.
  // kInvalid: nobody can be asked, since input or error stream is no terminal.
  Result<bool> Confirm(std::string_view question) const;

  // One of `letters`, which stand for the answers; the end of input is `otherwise`. kInvalid as above.
  Result<char> Choose(std::string_view question, std::string_view letters, char otherwise) const;
  bool can_ask() const;

  // The object that --json prints for a failure.
  Json ErrorToJson(const Error& error) const;
  // A further member of the error object that --json prints when the command fails.
  void AddErrorDetail(std::string_view key, Json value) {
    error_details_.Set(key, std::move(value));
  }
  // What was printed is an answer even if the command fails: a dry run that would be refused, say. With --json it then stands for the
  // error object too.
  void KeepOutput() { keeps_output_ = true; }
  // Says what went wrong, and drops what was printed so far unless it is to be kept.
  void Fail(const Error& error);

  // Writes what was printed.
  Status Flush();

  const StandardStreams& streams() const { return streams_; }
  // Of a program that we ran; else what the command returns decides.
  void SetExitCode(uint8_t code) { exit_code_ = code; }
  std::optional<uint8_t> exit_code() const { return exit_code_; }

 private:
  StandardStreams streams_;
  Format format_;
  SystemClock clock_;
  FdLogSink log_sink_;
  Logger log_ = Logger::Null();
  std::string out_;
  std::optional<uint8_t> exit_code_;
  Json error_details_ = Json::Object();
  bool keeps_output_ = false;
};

}  // namespace sandglass::cli
