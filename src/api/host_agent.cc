// The host's part that runs commands.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/command_output.h"
#include "api/host.h"

namespace sandglass::api {
namespace {

// What an event says of a step; undo.changes has the rest.
constexpr size_t kMaxPathsInEvent = 100;

std::string_view NameOf(control::Ending ending) {
  switch (ending) {
    case control::Ending::kExited:
      return "exited";
    case control::Ending::kSignalled:
      return "signalled";
    case control::Ending::kTimedOut:
      return "timed_out";
    case control::Ending::kCancelled:
      return "cancelled";
    case control::Ending::kNotStarted:
      return "not_started";
    case control::Ending::kLost:
      return "lost";
  }
  return "lost";
}

Json PathsToJson(const std::vector<undo::Change>& changes) {
  Json paths = Json::Array();
  for (size_t i = 0; i < std::min(changes.size(), kMaxPathsInEvent); ++i)
    paths.Append(BytesToJson(changes[i].path));
  return paths;
}

Json CountsToJson(const std::vector<undo::Change>& changes) {
  Json counts = Json::Object();
  for (const undo::ChangeKind kind : {undo::ChangeKind::kCreated, undo::ChangeKind::kModified,
                                      undo::ChangeKind::kDeleted, undo::ChangeKind::kRenamed})
    counts.Set(undo::ChangeName(kind), std::ranges::count(changes, kind, &undo::Change::kind));
  return counts;
}

std::vector<control::EnvEntry> EnvironmentFrom(const Json& payload) {
  std::vector<control::EnvEntry> entries;
  if (const Json* given = payload.Find("env")) {
    for (const Json& entry : *given->AsArray())
      entries.push_back(
          {*entry.Find("name")->AsString(), BytesFromJson(*entry.Find("value")).value()});
  }
  const bool has_terminal = payload.Find("pty") != nullptr;
  if (has_terminal && std::ranges::find(entries, "TERM", &control::EnvEntry::name) == entries.end())
    entries.push_back({"TERM", "xterm-256color"});
  return entries;
}

std::optional<control::TerminalSize> TerminalFrom(const Json* size) {
  if (size == nullptr) return std::nullopt;
  return control::TerminalSize{static_cast<uint16_t>(*size->Find("rows")->AsUint()),
                               static_cast<uint16_t>(*size->Find("columns")->AsUint())};
}

bool IsTrue(const Json& payload, std::string_view key) {
  const Json* flag = payload.Find(key);
  return flag != nullptr && *flag->AsBool();
}

std::string StartFolder(const Json& payload, const std::string& directory) {
  const Json* given = payload.Find("cwd");
  const std::string cwd = given != nullptr ? BytesFromJson(*given).value() : "";
  if (cwd.starts_with('/')) return cwd;
  return cwd.empty() ? directory : fmt::format("{}/{}", directory, cwd);
}

session::CommandSpec SpecFrom(const Json& payload, const std::string& directory) {
  const std::string command = BytesFromJson(*payload.Find("command")).value();
  session::CommandSpec spec{.argv = {"/bin/sh", "-c", command},
                            .cwd = StartFolder(payload, directory),
                            .env = EnvironmentFrom(payload),
                            .label = command};
  if (const Json* timeout = payload.Find("timeout_ms"))
    spec.timeout = std::chrono::milliseconds(*timeout->AsInt());
  return spec;
}

}  // namespace

void Host::Execute(Call call) {
  const auto index = DirectoryOf(call.payload);
  if (!index.ok()) return call.reply(FromError(index.error()));
  session::CommandSpec spec = SpecFrom(call.payload, request_->directories[*index].path);
  Do([this, spec = std::move(spec), call = std::move(call)] { RunCommand(spec, call); });
}

void Host::RunCommand(const session::CommandSpec& spec, const Call& call) {
  if (!held_.empty())
    return call.reply(
        ApiError(ApiCode::kBusy,
                 fmt::format("a process that an earlier command left behind is held; answer {} "
                             "first, with safeguard.confirm",
                             held_.begin()->first),
                 Json::Object({{"safeguard_id", held_.begin()->first}})));
  const auto terminal = TerminalFrom(call.payload.Find("pty"));
  const bool takes_input = terminal || IsTrue(call.payload, "input");
  auto output = CommandOutput::Make(
      *this, takes_input ? CommandOutput::TakesInput::kYes : CommandOutput::TakesInput::kNo,
      terminal);
  if (!output.ok()) return call.reply(FromError(output.error()));
  running_.emplace(Running{call.request_id, spec.label, std::move(*output)});
  denied_.reset();
  auto report = session_->Run(spec, *running_->output);
  running_->output->Finish();
  running_.reset();
  if (report.ok() && report->outcome.ending == control::Ending::kLost)
    report = Error(Code::kIo,
                   "the world ended before the command did; the next start takes back "
                   "what it had begun");
  if (!report.ok() && session_->lives()) return call.reply(FromError(report.error()));
  if (!report.ok()) {
    LoseSession(report.error());
    return call.reply(*lost_);
  }
  Json step = StepToJson(*report);
  Json told = step;
  told.Set("request_id", call.request_id).Set("command", BytesToJson(spec.label));
  outlet_.Tell("event.step_completed", std::move(told));
  TellWarnings(report->warnings, report->step, call.request_id);
  if (!denied_) return call.reply(std::move(step));
  call.reply(
      ApiError(ApiCode::kDenied,
               "a safeguard was not confirmed: the command was ended, and all that it did was "
               "taken back",
               Json::Object({{"safeguard_id", *denied_}, {"step_id", report->step.value}})));
}

Json Host::StepToJson(const session::CommandReport& report) const {
  Json directories = Json::Array(), warnings = Json::Array(), first = Json::Array();
  for (size_t i = 0; i < request_->directories.size(); ++i) {
    for (const session::ProjectStep& step : report.projects) {
      if (step.project != request_->directories[i].path) continue;
      if (i == 0) first = PathsToJson(step.changes);
      directories.Append(Json::Object({{"directory", i},
                                       {"affected_paths", PathsToJson(step.changes)},
                                       {"total_paths", step.changes.size()},
                                       {"counts", CountsToJson(step.changes)}}));
    }
  }
  for (const std::string& warning : report.warnings) warnings.Append(warning);
  const control::Outcome& outcome = report.outcome;
  return Json::Object({{"step_id", report.step.value},
                       {"affected_paths", std::move(first)},
                       {"exit_code", outcome.exit_code},
                       {"ending", NameOf(outcome.ending)},
                       {"signal", outcome.signal ? Json(*outcome.signal) : Json()},
                       {"message", outcome.error.empty() ? Json() : Json(outcome.error)},
                       {"directories", std::move(directories)},
                       {"warnings", std::move(warnings)}});
}

void Host::TellWarnings(const std::vector<std::string>& warnings, StepId step,
                        const std::string& request_id) {
  for (const std::string& warning : warnings) {
    outlet_.Tell("event.warning", Json::Object({{"code", "step"},
                                                {"message", warning},
                                                {"step_id", step.value},
                                                {"request_id", request_id}}));
  }
}

// --- The command that runs

namespace {

Answer NoCommand() { return ApiError(ApiCode::kNoCommand, "no command runs"); }

Answer AnswerFor(const Status& status) {
  if (status.ok()) return Json::Object();
  return FromError(status.error());
}

}  // namespace

void Host::Cancel(Call call) {
  if (!running_) return call.reply(NoCommand());
  session_->CancelCommand();
  call.reply(Json::Object());
}

void Host::Input(Call call) {
  if (!running_) return call.reply(NoCommand());
  CommandOutput& streams = *running_->output;
  if (const Json* data = call.payload.Find("data")) {
    const Status given = streams.Give(BytesFromJson(*data).value());
    if (!given.ok()) return call.reply(FromError(given.error()));
  }
  if (!IsTrue(call.payload, "eof")) return call.reply(Json::Object());
  call.reply(AnswerFor(streams.EndInput()));
}

void Host::Resize(Call call) {
  if (!running_) return call.reply(NoCommand());
  call.reply(AnswerFor(session_->ResizeTerminal(*TerminalFrom(&call.payload))));
}

}  // namespace sandglass::api
