#include "api/host.h"

#include <fmt/format.h>

#include <utility>

#include "api/command_output.h"

namespace sandglass::api {

Host::Host(HostOptions options, Outlet& outlet, session::LoopGuest& guest)
    : options_(std::move(options)), outlet_(outlet), guest_(guest) {}

Host::~Host() = default;

void Host::Take(const Operation& operation, Call call) {
  const Logger log = options_.log.WithRequest(call.request_id);
  log.Info("request received", {{"operation", operation.name}});
  call.reply = [log, reply = std::move(call.reply)](Answer answer) {
    if (const auto* error = std::get_if<ApiError>(&answer))
      log.Warn("request refused", {{"code", NameOf(error->code)}, {"error", error->message}});
    else
      log.Info("response sent");
    reply(std::move(answer));
  };
  if (const auto wrong = FindMismatch(*operation.request, call.payload)) {
    const std::string where = wrong->path.empty() ? "payload" : wrong->path;
    return call.reply(ApiError(ApiCode::kInvalidArgument,
                               fmt::format("{}: \"{}\" {}", operation.name, where, wrong->message),
                               Json::Object({{"field", where}})));
  }
  if (auto objection = Objection(operation)) return call.reply(std::move(*objection));
  operation.handle(*this, std::move(call));
}

std::optional<ApiError> Host::Objection(const Operation& operation) const {
  if (shutting_down_) return ApiError(ApiCode::kShuttingDown, "the program is about to end");
  if (operation.handle == nullptr)
    return ApiError(ApiCode::kUnsupported,
                    fmt::format("{} cannot be done yet: {}", operation.name, operation.missing));
  if (operation.when == When::kAlways) return std::nullopt;
  if (lost_) return lost_;
  if (!session_ && !discard_first_)
    return ApiError(ApiCode::kNotStarted, "there is no session; send session.start first");
  if (operation.when == When::kStarted) return std::nullopt;
  if (discard_first_)
    return ApiError(
        ApiCode::kUndoUnavailable,
        "the undo log was made by another version; send undo.discard to begin a new one",
        Json::Object({{"directory", *discard_first_}}));
  if (operation.when != When::kIdle || !running_) return std::nullopt;
  return RunningError();
}

ApiError Host::RunningError() const {
  const auto step = session_->running_step();
  return ApiError(
      ApiCode::kCommandRunning,
      fmt::format("a command runs: {}; wait for its end, or send agent.cancel", running_->command),
      Json::Object(
          {{"step_id", step ? Json(step->value) : Json()}, {"request_id", running_->request_id}}));
}

void Host::Do(std::function<void()> deed) {
  CHECK(deed_ == nullptr);
  deed_ = std::move(deed);
}

void Host::DoDeed() {
  const auto deed = std::exchange(deed_, nullptr);
  deed();
}

void Host::Negotiate(Call call) {
  Json supported = Json::Array({kProtocolVersion});
  for (const Json& version : *call.payload.Find("versions")->AsArray()) {
    if (version.AsInt() != kProtocolVersion) continue;
    Json operations = Json::Array();
    for (const Operation& operation : AllOperations()) {
      if (operation.handle != nullptr) operations.Append(operation.name);
    }
    return call.reply(Json::Object({{"version", kProtocolVersion},
                                    {"supported", std::move(supported)},
                                    {"program", "sandglass"},
                                    {"program_version", options_.program_version},
                                    {"operations", std::move(operations)}}));
  }
  call.reply(ApiError(ApiCode::kUnsupportedProtocol,
                      fmt::format("this program speaks version {} of the protocol; update the "
                                  "client or the program",
                                  kProtocolVersion),
                      Json::Object({{"supported", std::move(supported)}})));
}

// --- Which working directory

Result<size_t> Host::DirectoryOf(const Json& payload) const {
  const Json* given = payload.Find("directory");
  if (given == nullptr) return size_t{0};
  const auto& directories = request_->directories;
  if (const auto index = given->AsUint()) {
    if (*index < directories.size()) return static_cast<size_t>(*index);
    return Error(Code::kNotFound,
                 fmt::format("the session has {} working directories; \"directory\" "
                             "counts them from 0",
                             directories.size()));
  }
  TRY_ASSIGN(const std::string path, BytesFromJson(*given));
  for (size_t i = 0; i < directories.size(); ++i) {
    if (directories[i].path == path || directories[i].label == path) return i;
  }
  return Error(Code::kNotFound, fmt::format("{} is no working directory of this session", path));
}

Result<undo::UndoPaths> Host::WritableOf(const Json& payload) const {
  TRY_ASSIGN(const size_t index, DirectoryOf(payload));
  if (request_->directories[index].access == world::Access::kReadOnly)
    return Error(Code::kDenied, fmt::format("{} is read-only in this session and has no history",
                                            request_->directories[index].path));
  return session_options_->projects[index].paths;
}

}  // namespace sandglass::api
