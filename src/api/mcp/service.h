// Service: what a server of the protocol offers: methods beyond those that every server has. The conversation (conversation.h) and the
// transports know nothing else of it, so they are the same for every service. One thread.
#pragma once

#include <memory>
#include <string_view>

#include "api/mcp/request.h"
#include "api/mcp/versions.h"
#include "base/json.h"

namespace sandglass::api::mcp {

class Service {
 public:
  virtual ~Service() = default;
  // {"name", "version", ...}
  virtual Json Info(const Version& version) const = 0;
  virtual Json Capabilities(const Version& version) const = 0;
  // For the model, once.
  virtual std::string_view Instructions() const = 0;

  enum class Taken : uint8_t { kYes, kNoSuchMethod };
  // Answers it, now or later.
  virtual Taken Take(const std::shared_ptr<Request>& request) = 0;
  // Whether Take may be called now; otherwise requests wait with the transport, so that they take effect in their order.
  virtual bool takes_requests() const { return true; }

  // Of all clients. Also with the requests.
  const std::shared_ptr<SuspendedRequests>& suspended() const { return suspended_; }

 private:
  const std::shared_ptr<SuspendedRequests> suspended_ = std::make_shared<SuspendedRequests>();
};

}  // namespace sandglass::api::mcp
