#include "api/mcp/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "api/mcp/envelope.h"
#include "api/mcp/random_name.h"

namespace sandglass::api::mcp {
namespace {

constexpr size_t kMaxConnections = 64;
constexpr size_t kMaxSessions = 16;
// Of one session, that are not answered or were just answered.
constexpr size_t kMaxStreams = 32;
constexpr std::chrono::hours kSessionIdle{4};
// Shorter than the time after which clients give up a connection that says nothing.
constexpr std::chrono::seconds kAliveInterval{30};
constexpr int kBacklog = 64;
constexpr std::string_view kPath = "/mcp";
constexpr std::string_view kSessionHeader = "Mcp-Session-Id";
constexpr std::string_view kVersionHeader = "MCP-Protocol-Version";

bool IsInitialize(const Line& line) {
  if (line.shape == LineShape::kBatch) return false;
  const auto* message = std::get_if<Message>(&line.items.front());
  return message != nullptr && message->method == "initialize" && !message->id.is_null();
}

// The message of a client that names its version in every request; null: it is one of a session.
const Message* StatelessIn(const Line& line, const http::Request& request) {
  if (line.shape == LineShape::kBatch) return nullptr;
  const auto* message = std::get_if<Message>(&line.items.front());
  const bool by_header = request.Header(kVersionHeader) == kStateless.name;
  return message != nullptr && (by_header || HasEnvelope(message->params)) ? message : nullptr;
}

bool IsRefused(const Line& line) {
  return line.shape == LineShape::kOne && std::holds_alternative<Refused>(line.items.front());
}

}  // namespace

HttpServer::HttpServer(Service& service, HttpOptions options, Logger log)
    : service_(service), options_(std::move(options)), log_(std::move(log)) {
  CHECK(options_.open || !options_.token.empty());
}

HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(Service& service, HttpOptions options,
                                                       Logger log) {
  std::unique_ptr<HttpServer> server(new HttpServer(service, std::move(options), std::move(log)));
  TRY(server->Bind());
  return server;
}

Status HttpServer::Bind() {
  listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_) return Error::FromErrno(errno, "socket");
  const int on = 1;
  (void)::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(options_.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.get(), generic, sizeof(address)) != 0) {
    if (errno == EADDRINUSE)
      return Error(Code::kConflict,
                   fmt::format("port {} is taken; give another one, or none", options_.port));
    return Error::FromErrno(errno, fmt::format("bind port {}", options_.port));
  }
  socklen_t size = sizeof(address);
  if (::listen(listener_.get(), kBacklog) != 0 ||
      ::getsockname(listener_.get(), generic, &size) != 0)
    return Error::FromErrno(errno, "listen");
  port_ = ntohs(address.sin_port);
  return Ok();
}

std::string HttpServer::url() const { return fmt::format("http://127.0.0.1:{}{}", port_, kPath); }

// --- The loop

void HttpServer::AddTo(std::vector<pollfd>& fds) const {
  fds.push_back({clients_.size() < kMaxConnections ? listener_.get() : -1, POLLIN, 0});
  for (const Client& client : clients_) fds.push_back(client.connection.Poll());
}

std::optional<Instant> HttpServer::Deadline() const {
  std::optional<Instant> first;
  const auto add = [&](std::optional<Instant> at) {
    if (at && (!first || *at < *first)) first = at;
  };
  for (const Client& client : clients_) {
    add(client.connection.Deadline());
    if (client.connection.has_request() && service_.takes_requests()) add(clock_.Now());
    if (client.stream) add(client.last_alive + kAliveInterval);
  }
  for (const auto& [name, session] : sessions_) {
    if (session->conversation.has_backlog() && service_.takes_requests()) add(clock_.Now());
  }
  return first;
}

void HttpServer::Work() {
  Accept();
  TakeBacklogs();
  for (Client& client : clients_) Serve(client);
  KeepAlive();
  DropClosed();
  ForgetOldSessions();
}

bool HttpServer::has_unsent() const {
  return std::ranges::any_of(
      clients_, [](const Client& client) { return client.connection.unsent_bytes() > 0; });
}

void HttpServer::Flush() {
  for (Client& client : clients_) client.connection.Work();
}

void HttpServer::Accept() {
  while (clients_.size() < kMaxConnections) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    const int on = 1;
    (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    clients_.emplace_back(std::move(socket), options_.limits, clock_);
  }
}

void HttpServer::Serve(Client& client) {
  client.connection.Work();
  // At once: the client may be back already, with another connection.
  if (client.connection.is_closed()) return Detach(client);
  while (service_.takes_requests()) {
    const auto request = client.connection.TakeRequest();
    if (!request) break;
    Handle(client, *request);
    // What takes longer than this turn may take long.
    if (client.stream && !client.stream->is_answered()) client.stream->Open();
    if (client.stream && client.stream->is_answered()) Forget(client);
  }
  client.connection.Work();
}

void HttpServer::TakeBacklogs() {
  for (const auto& [name, session] : sessions_) {
    Conversation& conversation = session->conversation;
    while (conversation.has_backlog() && service_.takes_requests()) conversation.TakeBacklog();
  }
}

void HttpServer::KeepAlive() {
  const Instant now = clock_.Now();
  for (Client& client : clients_) {
    if (client.stream && client.stream->is_answered()) Forget(client);
    if (!client.stream || now < client.last_alive + kAliveInterval) continue;
    client.last_alive = now;
    client.stream->KeepAlive();
  }
}

// Its stream goes on without it.
void HttpServer::Detach(Client& client) {
  if (client.stream) client.stream->Detach();
  Forget(client);
}

void HttpServer::Forget(Client& client) {
  client.stream.reset();
  client.conversation.reset();
}

void HttpServer::DropClosed() {
  for (auto client = clients_.begin(); client != clients_.end();) {
    if (!client->connection.is_closed()) {
      ++client;
      continue;
    }
    Detach(*client);
    client = clients_.erase(client);
  }
}

void HttpServer::ForgetOldSessions() {
  const Instant now = clock_.Now();
  std::erase_if(sessions_, [&](const auto& entry) {
    const Session& session = *entry.second;
    const bool is_heard = session.listening && session.listening->is_attached();
    if (session.conversation.has_open_requests() || is_heard) return false;
    return now >= session.last_used + kSessionIdle;
  });
}

// --- Requests

std::optional<HttpServer::Refusal> HttpServer::FindObjection(const http::Request& request) const {
  const auto host = request.Header("Host");
  if (!host || !IsLoopbackHost(*host))
    return Refusal{403, {ApiCode::kDenied, "this server answers as localhost only"}};
  if (request.Count("Origin") > 0 && !IsLoopbackOrigin(request.Header("Origin").value_or("")))
    return Refusal{403, {ApiCode::kDenied, "pages of other origins are not served"}};
  if (request.target.substr(0, request.target.find('?')) != kPath)
    return Refusal{404, {ApiCode::kNotFound, fmt::format("there is only {}", kPath)}};
  if (!options_.open && !HasToken(request, options_.token))
    return Refusal{401,
                   {ApiCode::kDenied, "send the token as \"Authorization: Bearer ...\""},
                   {{"WWW-Authenticate", "Bearer realm=\"sandglass\""}}};
  return std::nullopt;
}

void HttpServer::Refuse(Client& client, const Refusal& refusal) {
  log_.Warn("request refused", {{"status", refusal.status}, {"error", refusal.error.message}});
  http::Headers headers = refusal.headers;
  headers.emplace_back("Content-Type", "application/json");
  client.connection.Respond(refusal.status, std::move(headers),
                            WriteJson(ErrorMessage({Json(), refusal.error})));
}

// Of a session; those of others are looked at with their message.
bool HttpServer::RefusesVersion(Client& client, const http::Request& request) {
  const auto version = request.Header(kVersionHeader);
  if (!version || FindVersion(*version) != nullptr) return false;
  Refuse(
      client,
      {400, {ApiCode::kUnsupportedProtocol, fmt::format("{} is not spoken here", kVersionHeader)}});
  return true;
}

void HttpServer::Handle(Client& client, const http::Request& request) {
  if (const auto objection = FindObjection(request)) return Refuse(client, *objection);
  if (request.method == "POST") return Post(client, request);
  if (request.method == "GET") return Get(client, request);
  if (request.method == "DELETE") return Delete(client, request);
  Refuse(client, {405,
                  {ApiCode::kUnknownOperation, "there are POST, GET and DELETE"},
                  {{"Allow", "POST, GET, DELETE"}}});
}

void HttpServer::Post(Client& client, const http::Request& request) {
  if (!HasMediaType(request.Header("Content-Type").value_or(""), "application/json"))
    return Refuse(client, {415, {ApiCode::kInvalidRequest, "messages are application/json"}});
  const std::string_view accept = request.Header("Accept").value_or("*/*");
  if (!HasMediaType(accept, "application/json"))
    return Refuse(
        client, {406, {ApiCode::kInvalidRequest, "accept application/json and text/event-stream"}});
  Line line = ParseLine(request.body);
  if (const Message* message = StatelessIn(line, request))
    return PostStateless(client, request, *message, std::move(line));
  if (RefusesVersion(client, request)) return;
  const bool names_session = request.Count(kSessionHeader) > 0;
  if (!names_session && IsInitialize(line)) return BeginSession(client, request, std::move(line));
  if (IsRefused(line))
    return client.connection.Respond(
        400, {{"Content-Type", "application/json"}},
        WriteJson(ErrorMessage(std::get<Refused>(line.items.front()))));
  PostInSession(client, request, std::move(line));
}

// Its connection is all that such a client has: when that is lost, so is what it asked for.
void HttpServer::PostStateless(Client& client, const http::Request& request, const Message& message,
                               Line line) {
  std::optional<ProtocolError> wrong;
  const auto envelope = ParseEnvelope(message.params);
  const auto* bad = std::get_if<ProtocolError>(&envelope);
  if (bad != nullptr && bad->number == kInvalidParams && !message.id.is_null()) wrong = *bad;
  if (!wrong) wrong = FindHeaderMismatch(request, message);
  if (wrong) {
    log_.Warn("request refused", {{"code", wrong->number}, {"error", wrong->message}});
    return client.connection.Respond(400, {{"Content-Type", "application/json"}},
                                     WriteJson(ErrorMessage(message.id, *wrong)));
  }
  const std::string_view accept = request.Header("Accept").value_or("*/*");
  client.stream = std::make_shared<HttpStream>(
      client.connection,
      HttpStream::Options{.accepts_events = HasMediaType(accept, "text/event-stream"),
                          .maps_errors = true});
  client.last_alive = clock_.Now();
  client.conversation = std::make_unique<Conversation>(service_, log_);
  client.conversation->Take(std::move(line), client.stream);
}

HttpServer::Session* HttpServer::SessionOf(Client& client, const http::Request& request) {
  const auto name = request.Header(kSessionHeader);
  if (!name) {
    Refuse(client,
           {400,
            {ApiCode::kInvalidRequest,
             fmt::format("send \"initialize\" first, then the {} that it gave", kSessionHeader)}});
    return nullptr;
  }
  const auto found = sessions_.find(*name);
  if (found == sessions_.end()) {
    Refuse(client, {404, {ApiCode::kNotFound, "there is no such session; send \"initialize\""}});
    return nullptr;
  }
  found->second->last_used = clock_.Now();
  return found->second.get();
}

std::shared_ptr<HttpStream> HttpServer::StreamIn(Session& session, Client& client,
                                                 const http::Request& request,
                                                 http::Headers headers) {
  const Version* version = session.conversation.version();
  const uint64_t number = session.next_stream++;
  // The oldest that nobody waits for makes room.
  std::erase_if(session.streams, [](const auto& entry) {
    return entry.second->is_answered() && !entry.second->can_be_resumed();
  });
  for (auto old = session.streams.begin();
       old != session.streams.end() && session.streams.size() >= kMaxStreams;)
    old = old->second->is_answered() ? session.streams.erase(old) : std::next(old);
  const std::string_view accept = request.Header("Accept").value_or("*/*");
  auto stream = std::make_shared<HttpStream>(
      client.connection,
      HttpStream::Options{.number = number,
                          .primes = version != nullptr && version->primed_streams == Has::kYes,
                          .accepts_events = HasMediaType(accept, "text/event-stream"),
                          .headers = std::move(headers)});
  client.stream = stream;
  client.last_alive = clock_.Now();
  return stream;
}

std::shared_ptr<HttpStream> HttpServer::Session::Kept(uint64_t number) const {
  std::shared_ptr<HttpStream> kept;
  if (listening && listening->number() == number)
    kept = listening;
  else if (const auto found = streams.find(number); found != streams.end())
    kept = found->second;
  return kept && kept->can_be_resumed() ? kept : nullptr;
}

void HttpServer::PostInSession(Client& client, const http::Request& request, Line line) {
  Session* session = SessionOf(client, request);
  if (session == nullptr) return;
  const auto is_open = [](const auto& entry) { return !entry.second->is_answered(); };
  if (std::ranges::count_if(session->streams, is_open) >= static_cast<int>(kMaxStreams))
    return Refuse(client, {503, {ApiCode::kLimit, "too many requests are under way"}});
  TakeIn(*session, std::move(line), StreamIn(*session, client, request, {}));
}

void HttpServer::TakeIn(Session& session, Line line, const std::shared_ptr<HttpStream>& stream) {
  session.streams.emplace(stream->number(), stream);
  session.conversation.Take(std::move(line), stream);
  while (session.conversation.has_backlog() && service_.takes_requests())
    session.conversation.TakeBacklog();
}

void HttpServer::BeginSession(Client& client, const http::Request& request, Line line) {
  if (sessions_.size() >= kMaxSessions) {
    const auto oldest = std::ranges::min_element(
        sessions_, {}, [](const auto& entry) { return entry.second->last_used; });
    if (oldest->second->conversation.has_open_requests())
      return Refuse(client, {503, {ApiCode::kLimit, "there are too many sessions"}});
    sessions_.erase(oldest);
  }
  const std::string name = RandomName();
  auto session = std::make_unique<Session>(service_, log_);
  session->last_used = clock_.Now();
  Session& begun = *session;
  sessions_.emplace(name, std::move(session));
  TakeIn(begun, std::move(line),
         StreamIn(begun, client, request, {{std::string(kSessionHeader), name}}));
  if (begun.conversation.version() == nullptr) sessions_.erase(name);
}

void HttpServer::Get(Client& client, const http::Request& request) {
  if (!HasMediaType(request.Header("Accept").value_or(""), "text/event-stream"))
    return Refuse(client, {406, {ApiCode::kInvalidRequest, "accept text/event-stream"}});
  if (RefusesVersion(client, request)) return;
  Session* session = SessionOf(client, request);
  if (session == nullptr) return;
  const auto last = ParseEventId(request.Header("Last-Event-ID").value_or(""));
  if (last) {
    const auto kept = session->Kept(last->stream);
    if (!kept)
      return Refuse(client, {404, {ApiCode::kNotFound, "that stream is not kept any more"}});
    if (kept->is_attached())
      return Refuse(client, {409, {ApiCode::kConflict, "that stream has a connection"}});
    client.stream = kept;
    client.last_alive = clock_.Now();
    return client.stream->Resume(client.connection, last->event);
  }
  if (session->listening && session->listening->is_attached())
    return Refuse(client, {409, {ApiCode::kConflict, "this session has such a stream"}});
  session->listening = StreamIn(*session, client, request, {});
  session->listening->Open();
}

void HttpServer::Delete(Client& client, const http::Request& request) {
  if (RefusesVersion(client, request)) return;
  Session* session = SessionOf(client, request);
  if (session == nullptr) return;
  if (session->listening && session->listening->is_attached())
    session->listening->Answer(std::nullopt);
  sessions_.erase(sessions_.find(*request.Header(kSessionHeader)));
  client.connection.Respond(204, {}, "");
}

}  // namespace sandglass::api::mcp
