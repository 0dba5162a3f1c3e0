// sandglass serve: a session that another program drives, by JSON Lines on the standard streams.
#include <poll.h>

#include <memory>
#include <string>
#include <utility>

#include "api/stdio/server.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/project_choice.h"
#include "cli/run_options.h"

namespace sandglass::cli {
namespace {

constexpr Option kStdioOption{.name = "stdio",
                              .help = "requests on standard input, answers on standard output"};
constexpr Option kStallOption{
    .name = "stall-timeout",
    .value = ValueKind::kText,
    .value_name = "TIME",
    .help =
        "if the client reads nothing for so long, output of commands is dropped instead of waited "
        "for; default: 30s"};
constexpr Option kOptions[] = {
    kStdioOption,      kUndoDirOption, kNoUndoForOption, kWithoutLandlockOption,
    kAllowBroadOption, kStallOption,   kHelpOption};

// A reader of the log who does not read must not hold up the session, so lines that find no room are dropped.
class DroppingLogSink final : public LogSink {
 public:
  explicit DroppingLogSink(int fd) : fd_(fd), sink_(fd) {}
  void WriteLine(std::string_view line) override {
    pollfd room{fd_, POLLOUT, 0};
    // A pipe that is writable takes a whole line.
    if (::poll(&room, 1, 0) > 0 && (room.revents & POLLOUT) != 0) sink_.WriteLine(line);
  }

 private:
  const int fd_;
  FdLogSink sink_;
};

// The one that was asked for, else info.
LogLevel LevelOf(const Logger& log) {
  for (const LogLevel level :
       {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError}) {
    if (log.enabled(level)) return level;
  }
  return LogLevel::kInfo;
}

Result<session::SessionOptions> Prepare(const Arguments& arguments, const Console& console,
                                        const Logger& log, const api::StartRequest& request) {
  std::vector<session::SessionProject> projects;
  for (const api::WorkingDirectory& directory : request.directories) {
    TRY_ASSIGN(session::SessionProject project,
               ChooseProject(arguments, directory.path, directory.access));
    projects.push_back(std::move(project));
  }
  const LayerUse layer =
      request.mode == api::WorldMode::kPersistent ? LayerUse::kKept : LayerUse::kNone;
  TRY_ASSIGN(session::SessionOptions options,
             SessionOn(std::move(projects), arguments, layer, console));
  options.log = log.With("session");
  options.undo.log = log.With("undo");
  return options;
}

Status Run(const Arguments& arguments, Console& console) {
  if (!arguments.Has(kStdioOption.name))
    return Error(Code::kInvalid, "serve: say --stdio; it is the only interface yet");
  const SystemClock clock;
  DroppingLogSink sink(console.streams().err);
  const Logger log(sink, clock, LevelOf(console.log()));
  api::stdio::ServerOptions options{.in = console.streams().in, .out = console.streams().out};
  options.host.log = log.With("stdio_api");
  options.host.program_version = SANDGLASS_VERSION;
  options.host.prepare = [&](const api::StartRequest& request) {
    return Prepare(arguments, console, log, request);
  };
  if (arguments.Has(kStallOption.name)) {
    TRY_ASSIGN(options.stall_timeout, TimeOf(arguments, kStallOption));
  }
  TRY_ASSIGN(const auto server, api::stdio::Server::Open(std::move(options)));
  return server->Serve();
}

}  // namespace

constinit const Command kServeCommand{
    .name = "serve",
    .summary = "let another program drive a session",
    .description =
        "One JSON object per line: requests on standard input; responses and events on standard "
        "output, and nothing else there. The error stream has the log, JSON Lines too, from level "
        "info unless --log-level says otherwise. `sandglass api describe` lists the operations; "
        "docs/api.md explains them.\n\n"
        "At the end of input a running command comes to its end, then the session ends. If nobody "
        "reads standard output any more, and on SIGTERM, the command is ended first. What it did "
        "until then is a step like any other.",
    .options = kOptions,
    .operands = {},
    .run = Run,
};

}  // namespace sandglass::cli
