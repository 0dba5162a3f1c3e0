#include "cli/served_session.h"

#include <poll.h>

#include <utility>
#include <vector>

#include "cli/project_choice.h"
#include "cli/run_options.h"

namespace sandglass::cli {
namespace {

// The one that was asked for, else info.
LogLevel LevelOf(const Logger& log) {
  for (const LogLevel level :
       {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError}) {
    if (log.enabled(level)) return level;
  }
  return LogLevel::kInfo;
}

Result<api::Prepared> Prepare(const Arguments& arguments, const Console& console, const Logger& log,
                              session::Watching watching, const api::StartRequest& request) {
  std::vector<session::SessionProject> projects;
  for (const api::WorkingDirectory& directory : request.directories) {
    TRY_ASSIGN(session::SessionProject project,
               ChooseProject(arguments, directory.path, directory.access));
    projects.push_back(std::move(project));
  }
  const SessionUse use{
      .layer = request.mode == api::WorldMode::kPersistent ? LayerUse::kKept : LayerUse::kNone,
      .watching = watching};
  TRY_ASSIGN(ConfiguredSession session, SessionOn(std::move(projects), arguments, use, console));
  session.options.log = log.With("session");
  session.options.undo.log = log.With("undo");
  return api::Prepared{.session = std::move(session.options),
                       .agent = std::move(session.config.agent),
                       .classifier = std::move(session.config.classifier),
                       .safeguards_off = !session.config.safeguards.enabled};
}

}  // namespace

void DroppingLogSink::WriteLine(std::string_view line) {
  pollfd room{fd_, POLLOUT, 0};
  // A pipe that is writable takes a whole line.
  if (::poll(&room, 1, 0) > 0 && (room.revents & POLLOUT) != 0) sink_.WriteLine(line);
}

ServedLog::ServedLog(const Console& console)
    : sink_(console.streams().err), logger_(sink_, clock_, LevelOf(console.log())) {}

api::ServerOptions ServerOptionsFor(const Arguments& arguments, const Console& console,
                                    const Logger& log, std::string_view component,
                                    session::Watching watching) {
  api::ServerOptions options{.in = console.streams().in, .out = console.streams().out};
  options.host.log = log.With(component);
  options.host.program_version = SANDGLASS_VERSION;
  options.host.prepare = [&, watching](const api::StartRequest& request) {
    return Prepare(arguments, console, log, watching, request);
  };
  return options;
}

}  // namespace sandglass::cli
