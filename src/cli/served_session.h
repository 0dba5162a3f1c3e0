// What `serve` and `mcp` share: a session that another program drives. Its log goes to the error stream, and what a client asks to start
// becomes what a session needs, by the words of the command line.
#pragma once

#include <string_view>

#include "api/server_loop.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/arguments.h"
#include "cli/console.h"
#include "session/watch/watch_options.h"

namespace sandglass::cli {

// A reader of the log who does not read must not hold up the session, so lines that find no room are dropped.
class DroppingLogSink final : public LogSink {
 public:
  explicit DroppingLogSink(int fd) : fd_(fd), sink_(fd) {}
  void WriteLine(std::string_view line) override;

 private:
  const int fd_;
  FdLogSink sink_;
};

// JSON Lines from the level that was asked for, else from info on.
class ServedLog {
 public:
  explicit ServedLog(const Console& console);
  const Logger& logger() const { return logger_; }

 private:
  SystemClock clock_;
  DroppingLogSink sink_;
  Logger logger_;
};

// On the standard streams. All arguments outlive the server. `watching`: whether it is watched what others do to the projects, where no
// file says it.
api::ServerOptions ServerOptionsFor(const Arguments& arguments, const Console& console,
                                    const Logger& log, std::string_view component,
                                    session::Watching watching = session::Watching::kOff);

}  // namespace sandglass::cli
