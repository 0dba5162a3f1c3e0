// Conversation: the Model Context Protocol with one client, whatever carries it: versions, requests, batches and cancellation. What is
// offered is a Service, and where answers go is an Exchange. A request that names its version in its envelope needs no `initialize`
// before it, and changes nothing for others. One thread.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "api/mcp/messages.h"
#include "api/mcp/request.h"
#include "api/mcp/service.h"
#include "base/log.h"

namespace sandglass::api::mcp {

class Conversation {
 public:
  // The service outlives it.
  Conversation(Service& service, Logger log);
  // The client is gone: what it asked for is cancelled, and what was not taken up is answered by nothing.
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // One text of the client's: a message, or a batch of them. The exchange gets its one answer now or later.
  void Take(Line line, const std::shared_ptr<Exchange>& exchange);

  // The rest of a batch, of which every message may have to wait for the service. It goes before further texts; TakeBacklog takes one.
  bool has_backlog() const { return !backlog_.empty(); }
  void TakeBacklog();

  // Null: not initialized.
  const Version* version() const { return client_ ? &client_->version : nullptr; }
  bool has_open_requests() const;

 private:
  struct Method {
    std::string_view name;
    void (Conversation::*take)(Request& request);
  };
  static const Method kMethods[];

  // A request that was suspended may have been sent again by somebody else.
  struct OpenRequest {
    std::weak_ptr<Request> request;
    uint32_t round;
    std::shared_ptr<Request> Find() const;  // null: it is not open here
  };

  void TakeItem(Item item, const std::shared_ptr<Exchange>& exchange);
  void TakeBatch(std::vector<Item> items, const std::shared_ptr<Exchange>& exchange);
  void TakeNotification(const Message& message);
  void TakeRequest(Message message, const std::shared_ptr<Exchange>& exchange);
  void TakeStateless(Message message, const std::shared_ptr<Exchange>& exchange);
  void Resume(Message message, const std::string& name, const std::shared_ptr<Exchange>& exchange);
  void Offer(const std::shared_ptr<Request>& request);
  std::shared_ptr<Request> Make(Message message, std::shared_ptr<const ClientInfo> client,
                                const std::shared_ptr<Exchange>& exchange) const;
  void Open(const std::shared_ptr<Request>& request);
  void Refuse(Request& request, ApiError error) const;
  std::shared_ptr<Request> FindOpen(const Json& id);

  void Initialize(Request& request);
  void Ping(Request& request);
  void Discover(Request& request);

  Service& service_;
  const Logger log_;
  std::shared_ptr<const ClientInfo> client_;    // also with its requests; null: not initialized
  const std::shared_ptr<Questions> questions_;  // also with the requests
  std::vector<OpenRequest> open_;               // and some that were answered
  struct Waiting {
    Item item;
    std::shared_ptr<Exchange> exchange;
  };
  std::deque<Waiting> backlog_;
};

}  // namespace sandglass::api::mcp
