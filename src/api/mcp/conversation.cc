#include "api/mcp/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/mcp/envelope.h"
#include "api/mcp/param_checks.h"

namespace sandglass::api::mcp {
namespace {

constexpr Field kInitializeFields[] = {
    {"protocolVersion", &kName, Need::kRequired, ""},
    {"capabilities", &kObjectOfAny, Need::kOptional, ""},
    {"clientInfo", &kObjectOfAny, Need::kOptional, ""},
};
constexpr Schema kInitialize{
    .kind = SchemaKind::kObject, .fields = kInitializeFields, .others = OtherMembers::kAllowed};

constexpr std::string_view kDiscover = "server/discover";
// Methods that clients without a session do not have.
constexpr std::string_view kOnlyInSessions[] = {"initialize", "ping", "logging/setLevel",
                                                "resources/subscribe", "resources/unsubscribe"};

ApiError UnknownMethod(const std::string& method) {
  return {ApiCode::kUnknownOperation, fmt::format("there is no method \"{}\"", method),
          Json::Object({{"method", method}})};
}

// Gathers the answers to the messages of a batch; the last one sends them.
class BatchExchange final : public Exchange {
 public:
  BatchExchange(std::shared_ptr<Exchange> whole, size_t messages)
      : whole_(std::move(whole)), open_(messages) {}
  void Send(const Json& message) override { whole_->Send(message); }
  void Answer(const std::optional<Json>& message) override {
    if (message) answers_.Append(*message);
    if (--open_ > 0) return;
    const bool is_empty = answers_.AsArray()->empty();
    whole_->Answer(is_empty ? std::nullopt : std::optional(std::move(answers_)));
  }
  bool has_room() const override { return whole_->has_room(); }
  bool can_send() const override { return whole_->can_send(); }

 private:
  const std::shared_ptr<Exchange> whole_;
  Json answers_ = Json::Array();
  size_t open_;
};

}  // namespace

const Conversation::Method Conversation::kMethods[] = {
    {"initialize", &Conversation::Initialize},
    {"ping", &Conversation::Ping},
};

Conversation::Conversation(Service& service, Logger log)
    : service_(service), log_(std::move(log)), questions_(std::make_shared<Questions>()) {}

Conversation::~Conversation() {
  for (const OpenRequest& open : open_) {
    if (const auto request = open.Find()) request->Cancel();
  }
  for (const Waiting& waiting : backlog_) waiting.exchange->Answer(std::nullopt);
}

std::shared_ptr<Request> Conversation::OpenRequest::Find() const {
  auto held = request.lock();
  return held && !held->is_answered() && held->round() == round ? held : nullptr;
}

void Conversation::Take(Line line, const std::shared_ptr<Exchange>& exchange) {
  if (line.shape == LineShape::kBatch) return TakeBatch(std::move(line.items), exchange);
  TakeItem(std::move(line.items.front()), exchange);
}

void Conversation::TakeBatch(std::vector<Item> items, const std::shared_ptr<Exchange>& exchange) {
  if (version() == nullptr || version()->batches == Has::kNo)
    return exchange->Answer(
        ErrorMessage({Json(),
                      {ApiCode::kInvalidRequest,
                       "this version of the protocol has no batches; send one message"}}));
  const auto batch = std::make_shared<BatchExchange>(exchange, items.size());
  for (Item& item : items) backlog_.push_back({std::move(item), batch});
}

void Conversation::TakeBacklog() {
  Waiting next = std::move(backlog_.front());
  backlog_.pop_front();
  TakeItem(std::move(next.item), next.exchange);
}

void Conversation::TakeItem(Item item, const std::shared_ptr<Exchange>& exchange) {
  if (const auto* refused = std::get_if<Refused>(&item)) {
    log_.Warn("malformed message", {{"code", NameOf(refused->error.code)}});
    return exchange->Answer(ErrorMessage(*refused));
  }
  auto* message = std::get_if<Message>(&item);
  if (message != nullptr && !message->id.is_null())
    return TakeRequest(std::move(*message), exchange);
  if (message != nullptr) TakeNotification(*message);
  if (const auto* answer = std::get_if<ClientAnswer>(&item))
    questions_->Answer(answer->id, answer->result ? &*answer->result : nullptr);
  exchange->Answer(std::nullopt);
}

void Conversation::TakeNotification(const Message& message) {
  if (message.method != "notifications/cancelled") return;
  const Json* id = message.params.Find("requestId");
  if (id == nullptr) return;
  if (const auto request = FindOpen(*id)) request->Cancel();
}

std::shared_ptr<Request> Conversation::FindOpen(const Json& id) {
  for (const OpenRequest& open : open_) {
    auto request = open.Find();
    if (request && request->id() == id) return request;
  }
  return nullptr;
}

bool Conversation::has_open_requests() const {
  return std::ranges::any_of(open_, [](const OpenRequest& open) { return open.Find() != nullptr; });
}

std::shared_ptr<Request> Conversation::Make(Message message,
                                            std::shared_ptr<const ClientInfo> client,
                                            const std::shared_ptr<Exchange>& exchange) const {
  const auto server = std::make_shared<const Json>(service_.Info(client->version));
  return std::make_shared<Request>(
      std::move(message),
      Request::Links{std::move(client), questions_, exchange, service_.suspended(), server});
}

void Conversation::Open(const std::shared_ptr<Request>& request) {
  std::erase_if(open_, [](const OpenRequest& open) { return open.Find() == nullptr; });
  open_.push_back({request, request->round()});
}

void Conversation::TakeRequest(Message message, const std::shared_ptr<Exchange>& exchange) {
  if (FindOpen(message.id) != nullptr)
    return exchange->Answer(
        ErrorMessage({message.id,
                      {ApiCode::kInvalidRequest, "a request with this id is under way",
                       Json::Object({{"field", "id"}})}}));
  if (HasEnvelope(message.params)) return TakeStateless(std::move(message), exchange);
  const auto client = client_ ? client_ : std::make_shared<const ClientInfo>(kNewest);
  const auto request = Make(std::move(message), client, exchange);
  const auto* method = std::ranges::find(kMethods, request->method(), &Method::name);
  if (method != std::end(kMethods)) return (this->*method->take)(*request);
  if (!client_ && request->method() != kDiscover)
    return Refuse(*request, {ApiCode::kInvalidRequest, "send \"initialize\" first"});
  Offer(request);
}

void Conversation::Offer(const std::shared_ptr<Request>& request) {
  Open(request);
  if (service_.Take(request) == Service::Taken::kNoSuchMethod)
    Refuse(*request, UnknownMethod(request->method()));
}

void Conversation::TakeStateless(Message message, const std::shared_ptr<Exchange>& exchange) {
  auto envelope = ParseEnvelope(message.params);
  if (const auto* wrong = std::get_if<ProtocolError>(&envelope)) {
    log_.Warn("request refused", {{"code", wrong->number}, {"error", wrong->message}});
    return exchange->Answer(ErrorMessage(message.id, *wrong));
  }
  if (const Json* state = message.params.Find("requestState");
      state != nullptr && state->AsString() != nullptr)
    return Resume(message, *state->AsString(), exchange);
  auto client = std::make_shared<const ClientInfo>(
      kStateless, std::move(std::get<Envelope>(envelope).capabilities));
  const auto request = Make(std::move(message), std::move(client), exchange);
  if (request->method() == kDiscover) return Discover(*request);
  const bool is_gone =
      std::ranges::find(kOnlyInSessions, request->method()) != std::end(kOnlyInSessions);
  if (is_gone) return Refuse(*request, UnknownMethod(request->method()));
  Offer(request);
}

void Conversation::Resume(Message message, const std::string& name,
                          const std::shared_ptr<Exchange>& exchange) {
  const auto request = service_.suspended()->Take(name);
  if (!request)
    return exchange->Answer(
        ErrorMessage(message.id, {kInvalidParams,
                                  "nothing waits with this requestState; it took too long, or "
                                  "was sent before",
                                  Json::Object({{"field", "requestState"}})}));
  open_.push_back({request, request->round() + 1});
  request->Resume(std::move(message), exchange);
}

void Conversation::Refuse(Request& request, ApiError error) const {
  log_.Warn("request refused", {{"code", NameOf(error.code)}, {"error", error.message}});
  request.Fail(std::move(error));
}

// --- Methods that every server has

void Conversation::Initialize(Request& request) {
  if (client_) return Refuse(request, {ApiCode::kInvalidRequest, "\"initialize\" was sent before"});
  if (const auto wrong = FindMismatch(kInitialize, request.params()))
    return Refuse(request, WrongParams(*wrong, "initialize"));
  const Version& version = Negotiated(*request.params().Find("protocolVersion")->AsString());
  const Json* capabilities = request.params().Find("capabilities");
  client_ = std::make_shared<const ClientInfo>(
      version, capabilities != nullptr ? *capabilities : Json::Object());
  log_.Info("initialized", {{"version", version.name}});
  request.Succeed(Json::Object({{"protocolVersion", version.name},
                                {"capabilities", service_.Capabilities(version)},
                                {"serverInfo", service_.Info(version)},
                                {"instructions", service_.Instructions()}}));
}

void Conversation::Discover(Request& request) {
  request.Succeed(Json::Object({{"supportedVersions", Json::Array({kStateless.name})},
                                {"capabilities", service_.Capabilities(kStateless)},
                                {"instructions", service_.Instructions()}}));
}

void Conversation::Ping(Request& request) { request.Succeed(Json::Object()); }

}  // namespace sandglass::api::mcp
