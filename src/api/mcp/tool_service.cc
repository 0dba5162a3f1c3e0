#include "api/mcp/tool_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/mcp/param_checks.h"
#include "api/mcp/tool_texts.h"
#include "api/shapes.h"

namespace sandglass::api::mcp {
namespace {

constexpr std::chrono::milliseconds kProgressInterval{500};

constexpr Field kCallFields[] = {
    {"name", &kName, Need::kRequired, ""},
    {"arguments", &kObjectOfAny, Need::kOptional, ""},
    {"_meta", &kObjectOfAny, Need::kOptional, ""},
};
constexpr Schema kCall{
    .kind = SchemaKind::kObject, .fields = kCallFields, .others = OtherMembers::kAllowed};

std::string ToolNames() {
  std::string names;
  for (const Tool& tool : AllTools())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", tool.name);
  return names;
}

Json TextContent(std::string_view text) { return Json::Object({{"type", "text"}, {"text", text}}); }

// A string or a number, as the protocol has it.
std::optional<Json> ProgressTokenOf(const Json& params) {
  const Json* meta = params.Find("_meta");
  const Json* token = meta != nullptr ? meta->Find("progressToken") : nullptr;
  if (token == nullptr || (token->AsString() == nullptr && !token->AsInt())) return std::nullopt;
  return *token;
}

}  // namespace

const ToolService::Method ToolService::kMethods[] = {
    {"tools/list", &ToolService::ListTools},
    {"tools/call", &ToolService::CallTool},
    {"resources/list", &ToolService::ListResources},
    {"resources/templates/list", &ToolService::ListTemplates},
    {"resources/read", &ToolService::ReadResource},
};

ToolService::ToolService(ServerLoop& loop, std::string project, std::string program_version)
    : loop_(loop), project_(std::move(project)), program_version_(std::move(program_version)) {}

Json ToolService::Info(const Version& version) const {
  Json info = Json::Object({{"name", "sandglass"}, {"version", program_version_}});
  if (version.structured == Has::kYes) info.Set("title", "Sandglass");
  return info;
}

Json ToolService::Capabilities(const Version& /*version*/) const {
  return Json::Object({{"tools", Json::Object()}, {"resources", Json::Object()}});
}

std::string_view ToolService::Instructions() const { return mcp::Instructions(); }

Service::Taken ToolService::Take(const std::shared_ptr<Request>& request) {
  const auto* method = std::ranges::find(kMethods, request->method(), &Method::name);
  if (method == std::end(kMethods)) return Taken::kNoSuchMethod;
  (this->*method->take)(request);
  return Taken::kYes;
}

// --- Methods

void ToolService::ListTools(const std::shared_ptr<Request>& request) {
  if (request->params().Find("cursor") != nullptr)
    return request->Fail({ApiCode::kInvalidArgument, "all tools are on the first page",
                          Json::Object({{"field", "cursor"}})});
  Json tools = Json::Array();
  for (const Tool& tool : AllTools()) tools.Append(ToJson(tool, request->version()));
  request->Succeed(Json::Object({{"tools", std::move(tools)}}));
}

void ToolService::CallTool(const std::shared_ptr<Request>& request) {
  const Json& params = request->params();
  if (const auto wrong = api::FindMismatch(kCall, params))
    return request->Fail(WrongParams(*wrong, "tools/call"));
  const std::string& name = *params.Find("name")->AsString();
  const Tool* tool = FindTool(name);
  if (tool == nullptr)
    return request->Fail({ApiCode::kInvalidArgument,
                          fmt::format("there is no tool \"{}\"; there are {}", name, ToolNames()),
                          Json::Object({{"field", "name"}})});
  const Json* given = params.Find("arguments");
  const Instant now = clock_.Now();
  Call call{.request = request,
            .tool = tool,
            .arguments = given != nullptr ? *given : Json::Object(),
            .begun = now,
            .last_progress = now};
  if (const auto wrong = FindMismatch(*tool, call.arguments)) {
    ApiError error = WrongParams(*wrong, tool->name);
    if (request->version().faults_as_results == Has::kNo) return request->Fail(std::move(error));
    return request->Succeed(Failed(call, error));
  }
  const std::string key = fmt::format("mcp-{}", next_key_++);
  request->OnCancel([this, key] { EndCommand(key); });
  calls_.emplace(key, std::move(call));
  Begin(key);
}

// --- Operations

void ToolService::Do(std::string_view operation, Json payload, Then then) {
  DoAs(fmt::format("mcp-{}", next_key_++), operation, std::move(payload), std::move(then));
}

void ToolService::DoAs(const std::string& key, std::string_view operation, Json payload,
                       Then then) {
  if (loop_.host().session() == nullptr && !project_.empty()) {
    const auto again = [this, key, operation, payload = std::move(payload), then] {
      DoAs(key, operation, payload, then);
    };
    return StartSession(key, again, then);
  }
  loop_.host().Take(*FindOperation(operation), {key, std::move(payload), std::move(then)});
}

void ToolService::StartSession(const std::string& key, std::function<void()> then,
                               const Then& failed) {
  Json directory = Json::Object({{"path", BytesToJson(project_)}});
  Json payload = Json::Object({{"working_directories", Json::Array({std::move(directory)})},
                               {"network_policy", "disabled"}});
  const auto started = [this, then = std::move(then), failed](const Answer& answer) {
    const auto* error = std::get_if<ApiError>(&answer);
    // Not from here: what comes next may have to be done from within the session's loop.
    if (loop_.host().session() != nullptr) {
      backlog_.push_front(then);
      return;
    }
    // It waits for the old log to be discarded: then it is started and has no world.
    if (error == nullptr || error->code == ApiCode::kAlreadyStarted)
      return failed(
          ApiError(ApiCode::kUndoUnavailable, "the undo log was made by another version"));
    failed(*error);
  };
  loop_.host().Take(*FindOperation("session.start"), {key, std::move(payload), started});
}

// --- Calls

void ToolService::Begin(const std::string& key) {
  if (WantsSafeguards(calls_.at(key))) return TurnSafeguardsOn(key);
  Run(key);
}

void ToolService::Run(const std::string& key) {
  const Call& call = calls_.at(key);
  if (call.request->is_cancelled()) return Finish(key, Json::Object());
  const std::string_view operation = call.tool->operation;
  Json payload = WithDefaults(*call.tool, call.arguments);
  const Then finish = [this, key](const Answer& answer) { Finish(key, answer); };
  if (call.tool->needs_session == NeedsSession::kYes)
    return DoAs(key, operation, std::move(payload), finish);
  loop_.host().Take(*FindOperation(operation), {key, std::move(payload), finish});
}

void ToolService::Finish(const std::string& key, const Answer& answer) {
  const auto found = calls_.find(key);
  const Call call = std::move(found->second);
  calls_.erase(found);
  call.request->Succeed(ResultOf(call, answer));
}

Json ToolService::ResultOf(const Call& call, const Answer& answer) {
  if (const auto* error = std::get_if<ApiError>(&answer)) return Failed(call, *error);
  return Succeeded(call, std::get<Json>(answer));
}

Json ToolService::Succeeded(const Call& call, Json result) {
  if (!call.tool->more_results.empty())
    result.Set("stdout", call.out.Text())
        .Set("stderr", call.err.Text())
        .Set("left_out_bytes", call.out.left_out() + call.err.left_out());
  std::string text = call.tool->text(result);
  // The result of a plan looks like that of the deed.
  if (const Json* plan = call.arguments.Find("dry_run"); plan != nullptr && *plan->AsBool())
    text = "dry run, nothing was changed; this is what would be done:\n" + text;
  Json content = Json::Array({TextContent(text)});
  for (const std::string& notice : std::exchange(notices_, {})) content.Append(TextContent(notice));
  Json out = Json::Object({{"content", std::move(content)}, {"isError", false}});
  if (call.request->version().structured == Has::kYes)
    out.Set("structuredContent", std::move(result));
  return out;
}

Json ToolService::Failed(const Call& call, const ApiError& error) const {
  std::string text = FailureText(call.tool->operation, error);
  for (const std::string& held : call.held) text += held;
  Json details = Json::Object(
      {{"code", NameOf(error.code)}, {"number", JsonRpcNumber(error.code)}, {"data", error.data}});
  return Json::Object({{"content", Json::Array({TextContent(text)})},
                       {"isError", true},
                       {"_meta", Json::Object({{"sandglass/error", std::move(details)}})}});
}

// Who cancels wants no answer. A command is ended, and what it did until then is a step like any other.
void ToolService::EndCommand(const std::string& key) {
  if (loop_.host().runs(key))
    loop_.host().Take(*FindOperation("agent.cancel"), {key, Json::Object(), [](const Answer&) {}});
}

// --- What the host tells

ToolService::Call* ToolService::CallOf(const Json& payload) {
  const auto found = calls_.find(TextOf(payload, "request_id"));
  return found != calls_.end() ? &found->second : nullptr;
}

void ToolService::Tell(std::string_view event, const Json& payload) {
  if (event == "event.terminal_output") return GatherOutput(payload);
  if (event == "event.recovery" || event == "event.error")
    notices_.push_back("note: " + TextOf(payload, "message") + "\n");
  if (event != "event.safeguard_triggered") return;
  for (auto& [key, call] : calls_) {
    if (loop_.host().runs(key)) return TellHeld(call, payload);
  }
}

void ToolService::GatherOutput(const Json& payload) {
  Call* call = CallOf(payload);
  if (call == nullptr) return;
  CapturedOutput& output = TextOf(payload, "stream") == "stderr" ? call->err : call->out;
  if (const Json* dropped = payload.Find("dropped_bytes"))
    output.Miss(dropped->AsUint().value_or(0));
  const std::string data = TextOf(payload, "data");
  if (TextOf(payload, "encoding") != "base64") return output.Append(data);
  const auto bytes = Base64Decode(data);
  if (bytes.ok()) output.Append(*bytes);
}

// --- Progress

std::optional<Instant> ToolService::Deadline() const {
  if (!backlog_.empty() && loop_.takes_requests()) return clock_.Now();
  std::optional<Instant> first;
  for (const auto& [key, call] : calls_) {
    if (call.request->is_answered() || !ProgressTokenOf(call.request->params())) continue;
    const Instant next = call.last_progress + kProgressInterval;
    if (!first || next < *first) first = next;
  }
  return first;
}

void ToolService::Work() {
  while (!backlog_.empty() && loop_.takes_requests()) {
    const auto next = std::move(backlog_.front());
    backlog_.pop_front();
    next();
  }
  TellProgress();
}

// How long it has run, for that always grows, and the last line that it wrote.
void ToolService::TellProgress() {
  const Instant now = clock_.Now();
  for (auto& [key, call] : calls_) {
    if (now < call.last_progress + kProgressInterval) continue;
    call.last_progress = now;
    const auto token = ProgressTokenOf(call.request->params());
    if (!token) continue;
    const auto run = std::chrono::duration_cast<std::chrono::milliseconds>(now - call.begun);
    Json params = Json::Object({{"progressToken", *token}, {"progress", run.count()}});
    const std::string line = call.out.LastLine();
    params.Set("message", line.empty() ? fmt::format("{} ms", run.count()) : line);
    call.request->Notify("notifications/progress", std::move(params));
  }
}

}  // namespace sandglass::api::mcp
