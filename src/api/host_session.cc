// The host's part that starts, ends and describes the session.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "api/command_output.h"
#include "api/host.h"
#include "base/io.h"
#include "session/config/config.h"
#include "session/open_log.h"
#include "undo/journal_format.h"
#include "undo/report_json.h"

namespace sandglass::api {
namespace {

std::string_view NameOf(world::Access access) {
  return access == world::Access::kReadOnly ? "read_only" : "read_write";
}
std::string_view NameOf(WorldMode mode) {
  return mode == WorldMode::kPersistent ? "persistent" : "ephemeral";
}

bool Is(const Json& payload, std::string_view key, std::string_view value) {
  const Json* member = payload.Find(key);
  return member != nullptr && member->AsString() != nullptr && *member->AsString() == value;
}

std::string TextOf(const Json& object, std::string_view key) {
  const Json* member = object.Find(key);
  return member != nullptr ? BytesFromJson(*member).value() : std::string();
}

StartRequest RequestFrom(const Json& payload) {
  StartRequest request;
  for (const Json& item : *payload.Find("working_directories")->AsArray()) {
    request.directories.push_back({.path = TextOf(item, "path"),
                                   .label = TextOf(item, "label"),
                                   .access = Is(item, "access", "read_only")
                                                 ? world::Access::kReadOnly
                                                 : world::Access::kReadWrite});
  }
  if (Is(payload, "vm_mode", "ephemeral")) request.mode = WorldMode::kEphemeral;
  return request;
}

// What the schema knows by name and this version cannot do.
std::optional<ApiError> NotYet(const Json& payload) {
  const Json* network = payload.Find("network_policy");
  if (network != nullptr && !Is(payload, "network_policy", "disabled"))
    return ApiError(ApiCode::kUnsupported,
                    "there is no network gateway yet; say \"network_policy\": \"disabled\"",
                    Json::Object({{"field", "network_policy"}}));
  if (Is(payload, "world", "vm"))
    return ApiError(ApiCode::kUnsupported,
                    "there are no virtual machines yet; say \"world\": \"local\"",
                    Json::Object({{"field", "world"}}));
  if (Is(payload, "external_modifications", "lock"))
    return ApiError(ApiCode::kUnsupported,
                    session::UndoPolicyFor(session::WatchPolicy::kLock).error().message(),
                    Json::Object({{"field", "external_modifications"}}));
  return std::nullopt;
}

std::string RecoveryMessage(const undo::RecoveryReport& report) {
  if (report.step)
    return fmt::format(
        "step {} was interrupted and has been rolled back: {} paths restored; "
        "undo.redo brings it again",
        report.step->value, report.rewind.changes.size());
  return "an interrupted undo was put right";
}

}  // namespace

std::string_view Host::state() const {
  if (lost_) return "error";
  if (discard_first_) return "undo_unavailable";
  if (!session_) return "stopped";
  return running_ ? "running" : "idle";
}

Json Host::StatusToJson() const {
  Json json = Json::Object({{"state", state()}});
  if (lost_) json.Set("error", ToJson(*lost_));
  if (!session_ && !discard_first_) return json;
  Json directories = Json::Array();
  for (size_t i = 0; i < request_->directories.size(); ++i) {
    const WorkingDirectory& directory = request_->directories[i];
    directories.Append(Json::Object({{"index", i},
                                     {"path", BytesToJson(directory.path)},
                                     {"guest_path", BytesToJson(directory.path)},
                                     {"mount_tag", fmt::format("working{}", i)},
                                     {"label", BytesToJson(directory.label)},
                                     {"access", NameOf(directory.access)}}));
  }
  json.Set("working_directories", std::move(directories));
  json.Set("world", "local").Set("backend", "supervise");
  json.Set("vm_mode", NameOf(request_->mode)).Set("network_policy", "disabled");
  if (!session_) return json;
  Json notes = Json::Array();
  for (const std::string& note : session_->notes()) notes.Append(note);
  json.Set("notes", std::move(notes));
  if (!running_) return json;
  const auto step = session_->running_step();
  return json.Set("command", Json::Object({{"request_id", running_->request_id},
                                           {"command", BytesToJson(running_->command)},
                                           {"step_id", step ? Json(step->value) : Json()}}));
}

void Host::ShowStatus(Call call) { call.reply(StatusToJson()); }

// --- Start

void Host::StartSession(Call call) {
  if (session_ || discard_first_)
    return call.reply(
        ApiError(ApiCode::kAlreadyStarted, "a session runs already; send session.stop first"));
  if (auto objection = NotYet(call.payload)) return call.reply(std::move(*objection));
  Do([this, call = std::move(call)] {
    StartRequest request = RequestFrom(call.payload);
    auto prepared = options_.prepare(request);
    if (!prepared.ok()) return call.reply(FromError(prepared.error()));
    session::SessionOptions* options = &prepared->session;
    if (const Json* policy = call.payload.Find("external_modifications"))
      options->watch.policy = session::ParseWatchPolicy(*policy->AsString()).value();
    options->on_external = [this](const session::ExternalModification& event) {
      TellExternal(event);
    };
    safeguards_off_ = prepared->safeguards_off;
    Configure(*options, limits_, safeguards_);
    for (size_t i = 0; i < request.directories.size(); ++i)
      request.directories[i].path = options->projects[i].paths.project;
    request_ = std::move(request);
    session_options_ = std::move(*options);
    agent_ = std::move(prepared->agent);
    classifier_ = std::move(prepared->classifier);
    lost_.reset();
    call.reply(Open());
  });
}

Answer Host::Open() {
  auto session = session::Session::Start(*session_options_);
  if (!session.ok() && session.error().code() == Code::kVersion) {
    TellVersionMismatch(session.error());
    return StatusToJson();
  }
  if (!session.ok()) return FromError(session.error());
  session_ = std::move(*session);
  session_->SetGuest(&guest_);
  options_.log.Info("session started", {{"directories", request_->directories.size()}});
  TellRecoveries();
  return StatusToJson();
}

// Which one it is says the message; here the first that cannot be read counts.
void Host::TellVersionMismatch(const Error& why) {
  discard_first_ = 0;
  for (size_t i = 0; i < session_options_->projects.size(); ++i) {
    const session::SessionProject& project = session_options_->projects[i];
    if (project.access != world::Access::kReadWrite) continue;
    const auto reader = undo::StoreReader::Open(project.paths);
    if (reader.ok() || reader.error().code() != Code::kVersion) continue;
    discard_first_ = i;
    break;
  }
  options_.log.Warn("the undo log is of another version", {{"error", why.message()}});
  outlet_.Tell("event.undo_version_mismatch",
               Json::Object({{"directory", *discard_first_},
                             {"expected_version", undo::kFormatVersion},
                             {"message", fmt::format("{}; commands are refused until undo.discard",
                                                     why.message())}}));
}

void Host::TellRecoveries() {
  size_t recovered = 0;  // the session has one report for each directory that it may write to
  for (size_t i = 0; i < request_->directories.size(); ++i) {
    if (request_->directories[i].access != world::Access::kReadWrite) continue;
    const auto& reports = session_->recoveries();
    if (recovered >= reports.size()) return;
    const undo::RecoveryReport& report = reports[recovered++];
    if (!report.recovered && !report.interrupted_rewind) continue;
    options_.log.Warn("recovered", {{"directory", i}});
    outlet_.Tell("event.recovery",
                 Json::Object({{"directory", i},
                               {"step_id", report.step ? Json(report.step->value) : Json()},
                               {"restored_paths", report.rewind.changes.size()},
                               {"interrupted_rewind", report.interrupted_rewind},
                               {"conflicts", undo::ToJson(report.rewind.conflicts)},
                               {"message", RecoveryMessage(report)}}));
  }
}

void Host::TellExternal(const session::ExternalModification& event) {
  const auto& directories = request_->directories;
  const auto found = std::ranges::find(directories, event.project, &WorkingDirectory::path);
  if (found == directories.end()) return;
  Json paths = Json::Array(), kinds = Json::Array();
  for (const std::string& path : event.affected_paths) paths.Append(BytesToJson(path));
  for (const session::ExternalKind kind :
       {session::ExternalKind::kCreated, session::ExternalKind::kContent,
        session::ExternalKind::kMetadata, session::ExternalKind::kRemoved}) {
    if (event.kinds.Has(kind)) kinds.Append(session::ExternalKindName(kind));
  }
  outlet_.Tell("event.external_modification",
               Json::Object({{"directory", found - directories.begin()},
                             {"affected_paths", std::move(paths)},
                             {"total_paths", event.affected},
                             {"whole_tree", event.extent == session::Extent::kWholeTree},
                             {"kinds", std::move(kinds)},
                             {"after_step", event.barrier ? Json(event.barrier->value) : Json()},
                             {"message", session::NoticeOf(event)}}));
}

// --- Stop and reset

// The command is ended; whatever wants that is done when it has.
void Host::EndCommandFirst() {
  if (running_) session_->CancelCommand();
}

void Host::EndSession() {
  if (session_) options_.log.Info("session stopped");
  session_.reset();
  held_.clear();
  discard_first_.reset();
}

void Host::StopSession(Call call) {
  EndCommandFirst();
  Do([this, call = std::move(call)] {
    EndSession();
    lost_.reset();
    call.reply(StatusToJson());
  });
}

// What the world kept of its own is gone afterwards; the projects and their history are not touched.
Answer Host::Reset() {
  EndSession();
  lost_.reset();
  if (!session_options_->layer.empty()) {
    const std::filesystem::path layer = session_options_->layer;
    const Fd around(::open(layer.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const Status removed = RemoveTreeAt(around.get(), layer.filename().c_str());
    if (!removed.ok())
      return FromError(removed.error().WithContext("remove the world's own files"));
    // As it was made.
    const auto prepared = options_.prepare(*request_);
    if (!prepared.ok()) return FromError(prepared.error());
  }
  return Open();
}

void Host::ResetSession(Call call) {
  EndCommandFirst();
  Do([this, call = std::move(call)] { call.reply(Reset()); });
}

void Host::LoseSession(const Error& why) {
  options_.log.Error("the session was lost", {{"error", why.message()}});
  EndSession();
  lost_ = ApiError(ApiCode::kSessionLost,
                   fmt::format("{}; send session.stop, and session.start to go on", why.message()));
  outlet_.Tell("event.error",
               Json::Object({{"code", api::NameOf(lost_->code)}, {"message", lost_->message}}));
}

void Host::BeginShutdown() {
  if (std::exchange(shutting_down_, true)) return;
  EndCommandFirst();
}

// --- Undo limits and versions, which both take another start of something

void Host::ConfigureUndo(Call call) {
  if (running_) return call.reply(RunningError());
  GivenLimits limits = limits_;
  const auto take = [&]<class Number>(std::string_view key, std::optional<Number>& limit) {
    if (const Json* given = call.payload.Find(key)) limit = static_cast<Number>(*given->AsUint());
  };
  take("max_log_size_bytes", limits.max_copied_bytes);
  take("max_step_count", limits.max_steps);
  take("max_single_step_size_bytes", limits.max_step_copied_bytes);
  ApplyConfiguration(call, limits, safeguards_);
}

void Host::Configure(session::SessionOptions& options, const GivenLimits& given,
                     const GivenSafeguards& safeguards) const {
  undo::Limits& limits = options.undo.limits;
  limits.max_copied_bytes = given.max_copied_bytes.value_or(limits.max_copied_bytes);
  limits.max_steps = given.max_steps.value_or(limits.max_steps);
  limits.max_step_copied_bytes = given.max_step_copied_bytes.value_or(limits.max_step_copied_bytes);
  if (!safeguards.configured) return;
  undo::SafeguardConfig& config = options.undo.safeguards;
  config.delete_count = safeguards.delete_count.value_or(config.delete_count);
  config.rename_over_count = safeguards.rename_over_count.value_or(config.rename_over_count);
  config.overwrite_bytes = safeguards.overwrite_bytes.value_or(config.overwrite_bytes);
  config.truncate_bytes = safeguards.overwrite_bytes.value_or(config.truncate_bytes);
  config.timeout = safeguards.timeout.value_or(config.timeout);
  if (safeguards.by_default && !safeguards_off_) {
    if (!safeguards.delete_count && !config.delete_count)
      config.delete_count = session::config::kDefaultDeletions;
    if (!safeguards.overwrite_bytes && !config.truncate_bytes)
      config.truncate_bytes = session::config::kDefaultTruncatedBytes;
  }
  options.questions = session::Questions::kGuest;
}

void Host::ApplyConfiguration(const Call& call, const GivenLimits& limits,
                              const GivenSafeguards& safeguards) {
  const auto keep = [this, limits, safeguards] {
    limits_ = limits;
    safeguards_ = safeguards;
  };
  if (!session_) {
    keep();
    return call.reply(Json::Object());
  }
  Do([this, call, limits, safeguards, keep] {
    session::SessionOptions options = *session_options_;
    Configure(options, limits, safeguards);
    const Status done = session_->Reconfigure(options.undo, options.questions);
    if (!done.ok() && done.error().code() == Code::kBusy)
      return call.reply(FromError(done.error()));
    if (!done.ok()) {
      LoseSession(done.error());
      return call.reply(*lost_);
    }
    keep();
    session_options_ = std::move(options);
    call.reply(Json::Object());
  });
}

void Host::DiscardUndo(Call call) {
  if (!discard_first_)
    return call.reply(ApiError(ApiCode::kConflict,
                               "the undo log is of this version; stop the session and use "
                               "`sandglass discard` to forget it all the same"));
  Do([this, call = std::move(call)] {
    const Status done = session::DiscardLogSoon(session_options_->projects[*discard_first_].paths);
    if (!done.ok()) return call.reply(FromError(done.error()));
    discard_first_.reset();
    call.reply(Open());
  });
}

}  // namespace sandglass::api
