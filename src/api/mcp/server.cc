#include "api/mcp/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/mcp/tool_texts.h"
#include "api/shapes.h"

namespace sandglass::api::mcp {
namespace {

constexpr std::chrono::milliseconds kProgressInterval{500};

constexpr Schema kObjectOfAny{.kind = SchemaKind::kObject, .others = OtherMembers::kAllowed};
constexpr Schema kName{.kind = SchemaKind::kString, .min = 1, .max = 128};
constexpr Field kInitializeFields[] = {
    {"protocolVersion", &kName, Need::kRequired, ""},
    {"capabilities", &kObjectOfAny, Need::kOptional, ""},
    {"clientInfo", &kObjectOfAny, Need::kOptional, ""},
};
constexpr Schema kInitialize{
    .kind = SchemaKind::kObject, .fields = kInitializeFields, .others = OtherMembers::kAllowed};
constexpr Field kCallFields[] = {
    {"name", &kName, Need::kRequired, ""},
    {"arguments", &kObjectOfAny, Need::kOptional, ""},
    {"_meta", &kObjectOfAny, Need::kOptional, ""},
};
constexpr Schema kCall{
    .kind = SchemaKind::kObject, .fields = kCallFields, .others = OtherMembers::kAllowed};

ApiError WrongParams(const Mismatch& wrong, std::string_view of) {
  const std::string where = wrong.path.empty() ? "params" : wrong.path;
  return {ApiCode::kInvalidArgument, fmt::format("{}: \"{}\" {}", of, where, wrong.message),
          Json::Object({{"field", where}})};
}

ApiError UnknownMethod(const std::string& method) {
  return {ApiCode::kUnknownOperation, fmt::format("there is no method \"{}\"", method),
          Json::Object({{"method", method}})};
}

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

std::string TextOf(const Json& payload, std::string_view key) {
  const Json* member = payload.Find(key);
  return member != nullptr && member->AsString() != nullptr ? *member->AsString() : "";
}

// What the answers to a batch have in common.
struct Batch {
  Json answers = Json::Array();
  size_t open = 0;
};

}  // namespace

const Server::Method Server::kMethods[] = {
    {"initialize", &Server::Initialize, true},
    {"ping", &Server::Ping, true},
    {"tools/list", &Server::ListTools, false},
    {"tools/call", &Server::CallTool, false},
};

Server::Server(ServerOptions options, std::string project)
    : LineServer(options),
      project_(std::move(project)),
      program_version_(options.host.program_version) {}

Result<std::unique_ptr<Server>> Server::Open(ServerOptions options, std::string project) {
  std::unique_ptr<Server> server(new Server(std::move(options), std::move(project)));
  TRY(server->TakeSignalsOver());
  return server;
}

// --- Messages

void Server::SendMessage(const std::optional<Json>& message) {
  if (message) Send(WriteJson(*message) + '\n');
}

void Server::TakeLine(const Result<std::string_view>& line) {
  if (!line.ok())
    return SendMessage(ErrorMessage({Json(),
                                     {ApiCode::kTooLong, line.error().message(),
                                      Json::Object({{"max_bytes", kMaxLineBytes}})}}));
  Line parsed = ParseLine(*line);
  if (parsed.shape == LineShape::kBatch) return TakeBatch(std::move(parsed.items));
  TakeItem(std::move(parsed.items.front()),
           [this](const std::optional<Json>& message) { SendMessage(message); });
}

// One after the other, by way of the backlog, because each may have to wait for a deed.
void Server::TakeBatch(std::vector<Item> items) {
  if (version_ == nullptr || version_->batches == Has::kNo)
    return SendMessage(
        ErrorMessage({Json(),
                      {ApiCode::kInvalidRequest,
                       "this version of the protocol has no batches; send one message per line"}}));
  // Owned by the replies to its requests: the last one sends it.
  const auto batch = std::make_shared<Batch>();
  const Reply reply = [this, batch](const std::optional<Json>& message) {
    if (message) batch->answers.Append(*message);
    if (--batch->open == 0 && !batch->answers.AsArray()->empty()) SendMessage(batch->answers);
  };
  for (Item& item : items) {
    const auto* message = std::get_if<Message>(&item);
    const bool is_answered =
        std::holds_alternative<Refused>(item) || (message != nullptr && !message->id.is_null());
    if (is_answered) ++batch->open;
    backlog_.emplace_back([this, item = std::move(item), reply] { TakeItem(item, reply); });
  }
}

void Server::TakeBacklog() {
  const auto next = std::move(backlog_.front());
  backlog_.pop_front();
  next();
}

void Server::TakeItem(Item item, const Reply& reply) {
  if (const auto* refused = std::get_if<Refused>(&item)) {
    log().Warn("malformed message", {{"code", NameOf(refused->error.code)}});
    return reply(ErrorMessage(*refused));
  }
  auto* message = std::get_if<Message>(&item);
  if (message == nullptr) return;
  if (message->id.is_null()) return TakeNotification(*message);
  TakeRequest({std::move(*message), reply});
}

void Server::TakeNotification(const Message& message) {
  if (message.method != "notifications/cancelled") return;
  if (const Json* id = message.params.Find("requestId")) CancelCall(*id);
}

void Server::TakeRequest(const Request& request) {
  const auto* method = std::ranges::find(kMethods, request.message.method, &Method::name);
  if (method == std::end(kMethods)) return Refuse(request, UnknownMethod(request.message.method));
  if (version_ == nullptr && !method->before_initialize)
    return Refuse(request, {ApiCode::kInvalidRequest, "send \"initialize\" first"});
  (this->*method->take)(request);
}

void Server::Refuse(const Request& request, ApiError error) const {
  log().Warn("request refused", {{"code", NameOf(error.code)}, {"error", error.message}});
  request.reply(ErrorMessage({request.message.id, std::move(error)}));
}

// --- Methods

void Server::Initialize(const Request& request) {
  if (version_ != nullptr)
    return Refuse(request, {ApiCode::kInvalidRequest, "\"initialize\" was sent before"});
  const Json& params = request.message.params;
  if (const auto wrong = api::FindMismatch(kInitialize, params))
    return Refuse(request, WrongParams(*wrong, "initialize"));
  version_ = &Negotiated(*params.Find("protocolVersion")->AsString());
  log().Info("initialized", {{"version", version_->name}});
  Json server = Json::Object({{"name", "sandglass"}, {"version", program_version_}});
  if (version_->structured == Has::kYes) server.Set("title", "Sandglass");
  request.reply(ResultMessage(
      request.message.id, Json::Object({{"protocolVersion", version_->name},
                                        {"capabilities", Json::Object({{"tools", Json::Object()}})},
                                        {"serverInfo", std::move(server)},
                                        {"instructions", Instructions()}})));
}

void Server::Ping(const Request& request) {
  request.reply(ResultMessage(request.message.id, Json::Object()));
}

void Server::ListTools(const Request& request) {
  if (request.message.params.Find("cursor") != nullptr)
    return Refuse(request, {ApiCode::kInvalidArgument, "all tools are on the first page",
                            Json::Object({{"field", "cursor"}})});
  Json tools = Json::Array();
  for (const Tool& tool : AllTools()) tools.Append(ToJson(tool, *version_));
  request.reply(ResultMessage(request.message.id, Json::Object({{"tools", std::move(tools)}})));
}

void Server::CallTool(const Request& request) {
  const Json& params = request.message.params;
  if (const auto wrong = api::FindMismatch(kCall, params))
    return Refuse(request, WrongParams(*wrong, "tools/call"));
  const std::string& name = *params.Find("name")->AsString();
  const Tool* tool = FindTool(name);
  if (tool == nullptr)
    return Refuse(request, {ApiCode::kInvalidArgument,
                            fmt::format("there is no tool \"{}\"; there are {}", name, ToolNames()),
                            Json::Object({{"field", "name"}})});
  for (const auto& [key, other] : calls_) {
    if (other.id == request.message.id)
      return Refuse(request, {ApiCode::kInvalidRequest, "a request with this id is under way",
                              Json::Object({{"field", "id"}})});
  }
  const Json* given = params.Find("arguments");
  const Instant now = Now();
  Call call{.id = request.message.id,
            .tool = tool,
            .arguments = given != nullptr ? *given : Json::Object(),
            .reply = request.reply,
            .progress_token = ProgressTokenOf(params),
            .begun = now,
            .last_progress = now};
  if (const auto wrong = FindMismatch(*tool, call.arguments)) {
    ApiError error = WrongParams(*wrong, tool->name);
    if (version_->faults_as_results == Has::kNo) return Refuse(request, std::move(error));
    return request.reply(ResultMessage(call.id, Failed(call, error)));
  }
  const std::string key = fmt::format("mcp-{}", next_key_++);
  calls_.emplace(key, std::move(call));
  Begin(key);
}

// --- Calls

void Server::Begin(const std::string& key) {
  Call& call = calls_.at(key);
  if (call.cancelled) return Finish(key, Json::Object());
  if (call.tool->needs_session == NeedsSession::kYes && host().session() == nullptr)
    return StartSession(key);
  host().Take(*FindOperation(call.tool->operation),
              {key, WithDefaults(*call.tool, call.arguments),
               [this, key](const Answer& answer) { Finish(key, answer); }});
}

void Server::StartSession(const std::string& key) {
  Json directory = Json::Object({{"path", BytesToJson(project_)}});
  Json payload = Json::Object({{"working_directories", Json::Array({std::move(directory)})},
                               {"network_policy", "disabled"}});
  host().Take(*FindOperation("session.start"),
              {key, std::move(payload), [this, key](const Answer& answer) {
                 const auto* error = std::get_if<ApiError>(&answer);
                 // Not from here: what a tool does may have to be done from within the session's loop.
                 if (host().session() != nullptr) {
                   backlog_.emplace_front([this, key] { Begin(key); });
                   return;
                 }
                 // It waits for the old log to be discarded: then it is started and has no world.
                 if (error == nullptr || error->code == ApiCode::kAlreadyStarted)
                   return Finish(key, ApiError(ApiCode::kUndoUnavailable,
                                               "the undo log was made by another version"));
                 Finish(key, *error);
               }});
}

void Server::Finish(const std::string& key, const Answer& answer) {
  const auto found = calls_.find(key);
  const Call call = std::move(found->second);
  calls_.erase(found);
  if (call.cancelled) return call.reply(std::nullopt);
  call.reply(ResultMessage(call.id, ResultOf(call, answer)));
}

Json Server::ResultOf(const Call& call, const Answer& answer) {
  if (const auto* error = std::get_if<ApiError>(&answer)) return Failed(call, *error);
  return Succeeded(call, std::get<Json>(answer));
}

Json Server::Succeeded(const Call& call, Json result) {
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
  if (version_->structured == Has::kYes) out.Set("structuredContent", std::move(result));
  return out;
}

Json Server::Failed(const Call& call, const ApiError& error) const {
  std::string text = FailureText(call.tool->operation, error);
  for (const std::string& held : call.held)
    text += fmt::format(
        "held: {}\nOnly a person can allow that, outside of this conversation; no tool can.\n",
        held);
  Json details = Json::Object(
      {{"code", NameOf(error.code)}, {"number", JsonRpcNumber(error.code)}, {"data", error.data}});
  return Json::Object({{"content", Json::Array({TextContent(text)})},
                       {"isError", true},
                       {"_meta", Json::Object({{"sandglass/error", std::move(details)}})}});
}

// Who cancels wants no answer. A command is ended, and what it did until then is a step like any other.
void Server::CancelCall(const Json& id) {
  for (auto& [key, call] : calls_) {
    if (call.id != id || call.cancelled) continue;
    call.cancelled = true;
    if (call.tool->operation == "agent.execute" && host().is_running())
      host().Take(*FindOperation("agent.cancel"), {key, Json::Object(), [](const Answer&) {}});
    return;
  }
}

// --- What the host tells

Server::Call* Server::CallOf(const Json& payload) {
  const auto found = calls_.find(TextOf(payload, "request_id"));
  return found != calls_.end() ? &found->second : nullptr;
}

void Server::Tell(std::string_view event, Json payload) {
  if (event == "event.terminal_output") return GatherOutput(payload);
  if (event == "event.recovery" || event == "event.error")
    notices_.push_back("note: " + TextOf(payload, "message") + "\n");
  if (event != "event.safeguard_triggered") return;
  for (auto& [key, call] : calls_) {
    if (call.tool->operation == "agent.execute") call.held.push_back(TextOf(payload, "message"));
  }
}

void Server::GatherOutput(const Json& payload) {
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

std::optional<Instant> Server::Deadline() const {
  std::optional<Instant> first = LineServer::Deadline();
  for (const auto& [key, call] : calls_) {
    if (!call.progress_token || call.cancelled) continue;
    const Instant next = call.last_progress + kProgressInterval;
    if (!first || next < *first) first = next;
  }
  return first;
}

void Server::Work() {
  LineServer::Work();
  TellProgress();
}

// How long it has run, for that always grows, and the last line that it wrote.
void Server::TellProgress() {
  const Instant now = Now();
  for (auto& [key, call] : calls_) {
    if (!call.progress_token || call.cancelled || now < call.last_progress + kProgressInterval)
      continue;
    call.last_progress = now;
    if (LineServer::OutputRoom() == 0) continue;
    const auto run = std::chrono::duration_cast<std::chrono::milliseconds>(now - call.begun);
    Json params =
        Json::Object({{"progressToken", *call.progress_token}, {"progress", run.count()}});
    const std::string line = call.out.LastLine();
    params.Set("message", line.empty() ? fmt::format("{} ms", run.count()) : line);
    SendMessage(NotificationMessage("notifications/progress", std::move(params)));
  }
}

}  // namespace sandglass::api::mcp
