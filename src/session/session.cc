#include "session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bridge/supervise/filter.h"
#include "session/command_run.h"
#include "session/parts.h"

namespace sandglass::session {
namespace {

constexpr size_t kMaxProjects = 8;

Status CheckProjects(const std::vector<SessionProject>& projects) {
  if (projects.empty() || projects.size() > kMaxProjects)
    return Error(Code::kInvalid, fmt::format("a session has 1 to {} projects", kMaxProjects));
  return Ok();
}

Result<std::vector<ProjectLog>> OpenLogs(const SessionOptions& options, Notices& notices) {
  undo::UndoOptions undo = options.undo;
  undo.observer = &notices;
  std::vector<ProjectLog> logs;
  for (const SessionProject& project : options.projects) {
    if (project.access == world::Access::kReadOnly) continue;
    TRY_ASSIGN(auto log, undo::UndoLog::Open(project.paths, undo));
    logs.push_back({.path = project.paths.project, .log = std::move(log)});
  }
  return logs;
}

std::vector<std::string> StoresOf(const SessionOptions& options) {
  std::vector<std::string> stores;
  for (const SessionProject& project : options.projects) {
    if (project.access == world::Access::kReadWrite) stores.push_back(project.paths.store);
  }
  return stores;
}

Result<std::unique_ptr<bridge::Supervisor>> MakeSupervisor(std::vector<ProjectLog>& logs) {
  std::vector<bridge::ProjectSpec> specs;
  for (ProjectLog& project : logs) specs.push_back({project.path, &project.log->interceptor()});
  return bridge::Supervisor::Create(specs);
}

world::LocalWorldSpec WorldFor(const SessionOptions& options) {
  world::LocalWorldSpec spec{.layer = options.layer,
                             .extra_read_only = options.extra_read_only,
                             .extra_read_write = options.extra_read_write,
                             .hidden_paths = options.hidden_paths,
                             .command_filter = bridge::BuildFilter(),
                             .shim_path = options.shim_path,
                             .limits = options.limits};
  for (const SessionProject& project : options.projects) {
    spec.projects.push_back({project.paths.project, project.access});
    // Whoever can write there can rewrite history.
    if (project.access == world::Access::kReadWrite)
      spec.hidden_paths.push_back(project.paths.store);
  }
  return spec;
}

}  // namespace

void Session::WatchLiveWriters(Parts& parts) {
  for (size_t i = 0; i < parts.logs.size(); ++i) {
    parts.logs[i].log->SetLiveWriterSource(
        [supervisor = parts.supervisor.get(), i] { return supervisor->LiveWriters(i); });
  }
}

Session::Session(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<Session>> Session::Start(const SessionOptions& options) {
  TRY(CheckProjects(options.projects));
  auto parts = std::make_unique<Parts>();
  TRY_ASSIGN(parts->logs, OpenLogs(options, parts->notices));
  TRY_ASSIGN(parts->server, RequestServer::Open(StoresOf(options), parts->clock));
  TRY_ASSIGN(parts->supervisor, MakeSupervisor(parts->logs));
  WatchLiveWriters(*parts);
  TRY_ASSIGN(parts->world, world::LocalWorld::Start(WorldFor(options)));
  return std::unique_ptr<Session>(new Session(std::move(parts)));
}

Session::~Session() {
  parts_->world.reset();
  parts_->processes.clear();
  // Left open, the next open of the log closes it.
  for (ProjectLog& project : parts_->logs) (void)project.log->CloseAmbientStep();
}

Result<CommandReport> Session::Run(const CommandSpec& spec, HostStreams& streams) {
  return CommandRun(*parts_, streams, spec).Run();
}

std::vector<undo::RecoveryReport> Session::recoveries() const {
  std::vector<undo::RecoveryReport> reports;
  for (const ProjectLog& project : parts_->logs) reports.push_back(project.log->recovery());
  return reports;
}

std::vector<std::string> Session::notes() const { return parts_->world->notes(); }

}  // namespace sandglass::session
