#include "session/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "bridge/supervise/filter.h"
#include "session/command_run.h"
#include "session/former_world.h"
#include "session/parts.h"
#include "session/project_checks.h"
#include "session/standstill.h"
#include "undo/place.h"

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

// Does the folder lie in a project that some session had, as far as the registry remembers?
bool IsOfKnownProject(const std::string& registry, const std::string& folder) {
  namespace fs = std::filesystem;
  for (fs::path up = folder; up != up.parent_path(); up = up.parent_path()) {
    if (::access(fmt::format("{}/{}", registry, undo::PathKey(up)).c_str(), F_OK) == 0) return true;
  }
  return false;
}

world::LocalWorldSpec WorldFor(const SessionOptions& options, const Session::Parts& parts) {
  world::LocalWorldSpec spec{.layer = options.layer,
                             .system_layer = parts.system ? parts.system->folder() : "",
                             .extra_read_only = options.extra_read_only,
                             .extra_read_write = options.extra_read_write,
                             .hidden_paths = options.hidden_paths,
                             .command_filter = bridge::BuildFilter(),
                             .shim_path = options.shim_path,
                             .limits = options.limits,
                             .without_landlock = options.without_landlock};
  if (const auto registry = undo::RegistryLocation(); registry.ok()) {
    spec.changed_by_commands = [where = *registry](const std::string& folder) {
      return IsOfKnownProject(where, folder);
    };
  }
  for (const SessionProject& project : options.projects) {
    spec.projects.push_back(
        {project.paths.project, project.access, project.stage_upper, project.stage_work});
    // Whoever can write there can rewrite history.
    if (project.access != world::Access::kReadOnly)
      spec.hidden_paths.push_back(project.paths.store);
  }
  return spec;
}

// Not for ordinary users: nothing of the system would be theirs to change. What cannot be had leaves the system read-only, which
// weakens nothing.
void TakeSystemLayer(const SessionOptions& options, Session::Parts& parts) {
  const bool kept = !options.layer.empty();
  if (::geteuid() != 0 || (!kept && options.scratch_place.empty())) return;
  auto layer = kept ? SystemLayer::Kept(options.layer + "/system")
                    : SystemLayer::Fresh(options.scratch_place);
  if (layer.ok())
    parts.system.emplace(std::move(*layer));
  else
    parts.log.Info("the system is read-only", {{"why", layer.error().message()}});
}

bool AllExist(const std::vector<std::string>& paths) {
  return std::ranges::all_of(
      paths, [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; });
}

}  // namespace

// The bridge opens the logs while the world's first process contains itself: neither needs the other, and no command runs before
// both are done. Only a store that is yet to be made must be there before a world is built that hides it.
Status Session::StartTogether(Parts& parts, const world::LocalWorldSpec& spec,
                              const undo::UndoOptions& undo) {
  TRY_ASSIGN(parts.bridge, BridgeProcess::Begin(parts.writable, undo, parts.watch, parts.asks));
  if (!AllExist(spec.hidden_paths)) TRY(parts.bridge->AwaitOpened());
  auto world = world::LocalWorld::Begin(spec);
  // Its refusal comes first: whoever cannot have the projects needs no world.
  TRY(parts.bridge->AwaitOpened());
  TRY_ASSIGN(parts.world, std::move(world));
  return Ok();
}

Session::Session(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<Session>> Session::Start(const SessionOptions& options) {
  // Before the bridge, whose own refusals would say less.
  TRY(world::CheckMachine(options.without_landlock));
  TRY(CheckProjects(options));
  auto parts = std::make_unique<Parts>();
  TRY_ASSIGN(parts->external, UndoPolicyFor(options.watch.policy));
  undo::UndoOptions undo = options.undo;
  undo.external = parts->external;
  parts->log = options.log;
  parts->on_external = options.on_external;
  parts->watch = options.watch;
  parts->writable = WritableOf(options);
  parts->asks = options.questions;
  parts->question_timeout = options.undo.safeguards.timeout;
  for (const undo::UndoPaths& paths : parts->writable) TRY(EndFormerWorld(paths.store));
  TakeSystemLayer(options, *parts);
  TRY(StartTogether(*parts, WorldFor(options, *parts), undo));
  // From here on the stores are ours, and the destructor takes the notes away.
  std::unique_ptr<Session> session(new Session(std::move(parts)));
  TRY(session->FinishStart());
  session->parts_->log.Info("world started", {{"projects", options.projects.size()}});
  return session;
}

Status Session::FinishStart() {
  TRY_ASSIGN(parts_->server, RequestServer::Open(StoresOf(parts_->writable), parts_->clock));
  for (const undo::UndoPaths& paths : parts_->writable)
    TRY(NoteWorld(paths.store, parts_->world->init_pid()));
  TRY(parts_->world->AwaitShim());
  for (const std::string& note : parts_->world->notes()) parts_->log.Debug(note);
  return Ok();
}

// The bridge keeps the stores locked until nobody needs the notes any more: the world is gone, or the kernel has told that no process
// of a command is left in it. In the second case bridge and world end together.
Session::~Session() {
  const bool is_empty = parts_->processes.empty();
  parts_->world->Kill();
  parts_->hold
      .reset();  // the dead of a standstill are buried when it is over, and the world waits for that
  if (!is_empty) parts_->world.reset();
  for (const undo::UndoPaths& paths : parts_->writable) ForgetWorld(paths.store);
  parts_->bridge->BeginEnd();
  // While the kernel takes the world apart.
  if (is_empty && parts_->system) parts_->system->RemoveUnlessKept();
  parts_->world.reset();
  for (const std::string& notice : parts_->bridge->End()) parts_->log.Warn(notice);
}

Result<CommandReport> Session::Run(const CommandSpec& spec, CommandStreams& streams) {
  auto report = CommandRun(*parts_, streams, spec).Run();
  if (report.ok())
    for (const std::string& weakness : parts_->world->weaknesses())
      report->warnings.push_back(weakness);
  return report;
}

bool Session::lives() const { return !parts_->over; }

void Session::TakeEvents() { parts_->TellEvents(); }

int Session::events_fd() const { return parts_->bridge->events_fd(); }

const std::vector<undo::RecoveryReport>& Session::recoveries() const {
  return parts_->bridge->recoveries();
}

std::vector<std::string> Session::notes() const { return parts_->world->notes(); }

}  // namespace sandglass::session
