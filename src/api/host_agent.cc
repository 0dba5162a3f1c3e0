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

constexpr std::string_view kPromptPlace = "{prompt}";

// Where the words have a place for it. False: they have none.
bool PutPrompt(const std::string& prompt, std::vector<std::string>& words) {
  bool put = false;
  for (std::string& word : words) {
    const size_t at = word.find(kPromptPlace);
    if (at == word.npos) continue;
    word.replace(at, kPromptPlace.size(), prompt);
    put = true;
  }
  return put;
}

// As history shows it: whole characters, and not too many.
std::string FirstLine(const std::string& prompt) {
  constexpr size_t kMost = 200;
  const std::string line = prompt.substr(0, std::min(prompt.find('\n'), kMost));
  return line.substr(0, NextPiece(line).bytes);
}

}  // namespace

void Host::Execute(Call call) {
  const auto index = DirectoryOf(call.payload);
  if (!index.ok()) return call.reply(FromError(index.error()));
  Execution execution{.spec = SpecFrom(call.payload, request_->directories[*index].path),
                      .terminal = TerminalFrom(call.payload.Find("pty"))};
  execution.takes_input = execution.terminal || IsTrue(call.payload, "input");
  const std::string& line = execution.spec.label;
  execution.command_class = policy::Classify(line, classifier_).command_class;
  execution.dangers = policy::FindDangers(line);
  Do([this, execution = std::move(execution), call = std::move(call)] {
    RunCommand(execution, call);
  });
}

void Host::Prompt(Call call) {
  if (agent_.empty())
    return call.reply(
        ApiError(ApiCode::kUnsupported,
                 "no coding agent is configured: say in the user's sandglass.toml, section "
                 "[agent], which command is to be run; or run one with agent.execute"));
  const auto index = DirectoryOf(call.payload);
  if (!index.ok()) return call.reply(FromError(index.error()));
  const std::string prompt = *call.payload.Find("prompt")->AsString();
  Execution execution{.output_event = "event.agent_output"};
  execution.spec.argv = agent_;
  const bool as_argument = PutPrompt(prompt, execution.spec.argv);
  execution.takes_input = true;
  execution.whole_input = as_argument ? "" : prompt;
  execution.spec.cwd = request_->directories[*index].path;
  execution.spec.label = fmt::format("agent: {}", FirstLine(prompt));
  if (const Json* timeout = call.payload.Find("timeout_ms"))
    execution.spec.timeout = std::chrono::milliseconds(*timeout->AsInt());
  Do([this, execution = std::move(execution), call = std::move(call)] {
    RunCommand(execution, call);
  });
}

void Host::RunCommand(const Execution& execution, const Call& call) {
  if (!held_.empty())
    return call.reply(
        ApiError(ApiCode::kBusy,
                 fmt::format("a process that an earlier command left behind is held; answer {} "
                             "first, with safeguard.confirm",
                             held_.begin()->first),
                 Json::Object({{"safeguard_id", held_.begin()->first}})));
  const session::CommandSpec& spec = execution.spec;
  auto output = CommandOutput::Make(
      *this,
      execution.takes_input ? CommandOutput::TakesInput::kYes : CommandOutput::TakesInput::kNo,
      execution.terminal);
  if (!output.ok()) return call.reply(FromError(output.error()));
  if (execution.whole_input) {
    Status given = (*output)->Give(*execution.whole_input);
    if (given.ok()) given = (*output)->EndInput();
    if (!given.ok()) return call.reply(FromError(given.error()));
  }
  running_.emplace(
      Running{call.request_id, spec.label, execution.output_event, std::move(*output)});
  denied_.reset();
  TellDangers(execution, call.request_id);
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
  if (execution.command_class)
    step.Set("command_class", policy::CommandClassName(*execution.command_class));
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
                       {"ending", control::EndingName(outcome.ending)},
                       {"signal", outcome.signal ? Json(*outcome.signal) : Json()},
                       {"message", outcome.error.empty() ? Json() : Json(outcome.error)},
                       {"directories", std::move(directories)},
                       {"warnings", std::move(warnings)}});
}

// It runs all the same: the world is the boundary.
void Host::TellDangers(const Execution& execution, const std::string& request_id) {
  for (const policy::Finding& finding : execution.dangers) {
    outlet_.Tell(
        "event.warning",
        Json::Object({{"code", fmt::format("danger.{}", policy::DangerName(finding.danger))},
                      {"message", finding.detail},
                      {"request_id", request_id}}));
  }
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
