// Request: one request of a client's on its way to its one answer, and Exchange: where that answer goes, which is the transport's
// business. A service (service.h) is handed requests and knows no more of clients than this.
//
// A client can be asked back. Where the version has that, it is sent a request of ours. Otherwise (2026-07-28) the request is suspended:
// the client is answered what is needed, and sends the request again with it, under another id and by any connection; for whoever
// works on it, it is the same Request all the time.
//
// One thread. A request is owned by whoever has to answer it and, while it is suspended, by the service's list.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/api_error.h"
#include "api/mcp/messages.h"
#include "api/mcp/questions.h"
#include "api/mcp/versions.h"
#include "base/json.h"

namespace sandglass::api::mcp {

class SuspendedRequests;

// Where what belongs to one message of a client's goes.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // What comes before the answer.
  virtual void Send(const Json& message) = 0;
  // Once. Without a message there is none: it was a notification, or the client wants none any more.
  virtual void Answer(const std::optional<Json>& message) = 0;
  // Whether the client reads fast enough for what it can do without.
  virtual bool has_room() const = 0;
  // Whether the client gets what comes before the answer.
  virtual bool can_send() const { return true; }
};

// What is known of a client.
struct ClientInfo {
  const Version& version;
  Json capabilities = Json::Object();
};

class Request : public std::enable_shared_from_this<Request> {
 public:
  // All of these are shared with the conversation, and the exchange with the transport too.
  struct Links {
    std::shared_ptr<const ClientInfo> client;
    std::shared_ptr<Questions> questions;
    std::shared_ptr<Exchange> exchange;
    std::shared_ptr<SuspendedRequests> suspended;
    std::shared_ptr<const Json> server;  // its info
  };
  Request(Message message, Links links);
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  const Json& id() const { return message_.id; }
  const std::string& method() const { return message_.method; }
  const Json& params() const { return message_.params; }
  const Version& version() const { return links_.client->version; }
  // How often it was sent again.
  uint32_t round() const { return round_; }

  // --- The answer: one of these, once.
  void Succeed(Json result);
  void Fail(ApiError error);
  void Fail(const ProtocolError& error);
  // Nothing is owed to the client of this round.
  bool is_answered() const { return state_ != State::kOpen; }

  // Until it is answered; left out where the client does not read.
  void Notify(std::string_view method, Json params);

  // What the client declared of this kind of question ("elicitation", "sampling"); null: it cannot be asked that.
  const Json* CanAsk(std::string_view capability) const;
  // Asks the client, and goes on with its answer, at most once and not any more when the request is answered. Null: there will be
  // none.
  void Ask(std::string_view method, Json params, Questions::Then then);
  // It was suspended, and is sent again.
  void Resume(Message message, std::shared_ptr<Exchange> exchange);
  // It was suspended, and nobody will send it again.
  void Abandon();

  // The client wants no answer any more. `then` is called when that happens.
  void OnCancel(std::function<void()> then) { on_cancel_ = std::move(then); }
  void Cancel();
  bool is_cancelled() const { return is_cancelled_; }

 private:
  enum class State : uint8_t { kOpen, kSuspended, kAnswered };
  // What the client was asked, or is to be asked in the next round.
  struct Question {
    std::string key, method;
    Json params;
    Questions::Then then;
  };
  // With the id of the round in which the client gets it.
  using Outcome = std::variant<Json, ProtocolError>;
  void Answer(Outcome outcome);
  void Deliver();
  void Suspend();
  Json Stamped(Json result) const;
  void WithdrawQuestions();

  Message message_;
  Links links_;
  State state_ = State::kOpen;
  uint32_t round_ = 0;
  std::optional<Outcome> outcome_;
  std::vector<std::string> asked_;  // by requests of ours, and some that were answered
  std::vector<Question> needed_;    // by suspension
  std::function<void()> on_cancel_;
  bool is_cancelled_ = false;
};

// The requests of all clients of a service that wait to be sent again, by names that nobody can guess. The oldest makes room.
class SuspendedRequests {
 public:
  // Its name, for the client.
  std::string Add(std::shared_ptr<Request> request);
  // Null: there is none of that name, or it took too long.
  std::shared_ptr<Request> Take(const std::string& name);

 private:
  struct Waiting {
    std::string name;
    std::shared_ptr<Request> request;
  };
  std::vector<Waiting> waiting_;  // oldest first
};

}  // namespace sandglass::api::mcp
