#include "session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bridge/supervise/filter.h"
#include "session/command_run.h"
#include "session/former_world.h"
#include "session/parts.h"
#include "session/project_checks.h"

namespace sandglass::session {
namespace {

std::vector<undo::UndoPaths> WritableOf(const SessionOptions& options) {
  std::vector<undo::UndoPaths> writable;
  for (const SessionProject& project : options.projects) {
    if (project.access == world::Access::kReadWrite) writable.push_back(project.paths);
  }
  return writable;
}

std::vector<std::string> StoresOf(const std::vector<undo::UndoPaths>& projects) {
  std::vector<std::string> stores;
  for (const undo::UndoPaths& project : projects) stores.push_back(project.store);
  return stores;
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
    spec.projects.push_back(
        {project.paths.project, project.access, project.stage_upper, project.stage_work});
    // Whoever can write there can rewrite history.
    if (project.access != world::Access::kReadOnly)
      spec.hidden_paths.push_back(project.paths.store);
  }
  return spec;
}

}  // namespace

Session::Session(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<Session>> Session::Start(const SessionOptions& options) {
  TRY(CheckProjects(options));
  auto parts = std::make_unique<Parts>();
  parts->log = options.log;
  parts->writable = WritableOf(options);
  for (const undo::UndoPaths& paths : parts->writable) TRY(EndFormerWorld(paths.store));
  TRY_ASSIGN(parts->bridge, BridgeProcess::Start(parts->writable, options.undo));
  TRY_ASSIGN(parts->server, RequestServer::Open(StoresOf(parts->writable), parts->clock));
  TRY_ASSIGN(parts->world, world::LocalWorld::Start(WorldFor(options)));
  for (const undo::UndoPaths& paths : parts->writable)
    TRY(NoteWorld(paths.store, parts->world->init_pid()));
  for (const std::string& note : parts->world->notes()) parts->log.Debug(note);
  parts->log.Info("world started", {{"projects", options.projects.size()}});
  return std::unique_ptr<Session>(new Session(std::move(parts)));
}

Session::~Session() {
  parts_->world.reset();
  for (const undo::UndoPaths& paths : parts_->writable) ForgetWorld(paths.store);
}

Result<CommandReport> Session::Run(const CommandSpec& spec, HostStreams& streams) {
  return CommandRun(*parts_, streams, spec).Run();
}

const std::vector<undo::RecoveryReport>& Session::recoveries() const {
  return parts_->bridge->recoveries();
}

std::vector<std::string> Session::notes() const { return parts_->world->notes(); }

}  // namespace sandglass::session
