// ConformanceService: the tools, resources and prompts that the conformance suite of the Model Context Protocol calls, by the names that
// it has for them. All the rest, from HTTP to questions to the client, is the product's. One thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "api/mcp/service.h"
#include "base/clock.h"

namespace sandglass::test {

class ConformanceService final : public api::mcp::Service {
 public:
  using Request = std::shared_ptr<api::mcp::Request>;

  Json Info(const api::mcp::Version& version) const override;
  Json Capabilities(const api::mcp::Version& version) const override;
  std::string_view Instructions() const override { return "For tests."; }
  Taken Take(const Request& request) override;

  // --- What takes time
  std::optional<Instant> Deadline() const;
  void Work();

 private:
  struct Method {
    std::string_view name;
    void (ConformanceService::*take)(const Request& request);
  };
  static const Method kMethods[];
  struct Tool {
    std::string_view name, description, schema;
    void (ConformanceService::*call)(const Request& request);
  };
  static const Tool kTools[];

  void ListTools(const Request& request);
  void CallTool(const Request& request);
  void ListResources(const Request& request);
  void ListTemplates(const Request& request);
  void ReadResource(const Request& request);
  void Acknowledge(const Request& request);
  void ListPrompts(const Request& request);
  void GetPrompt(const Request& request);
  void Complete(const Request& request);

  void SimpleText(const Request& request);
  void Image(const Request& request);
  void Audio(const Request& request);
  void EmbeddedResource(const Request& request);
  void MixedContent(const Request& request);
  void WithLogging(const Request& request);
  void WithProgress(const Request& request);
  void Failing(const Request& request);
  void Sampling(const Request& request);
  void Elicitation(const Request& request);
  void ElicitDefaults(const Request& request);
  void ElicitEnums(const Request& request);
  void Reconnection(const Request& request);
  void Elicit(const Request& request, const Json& params);

  void After(std::chrono::milliseconds time, std::function<void()> then);

  SteadyClock clock_;
  std::multimap<Instant, std::function<void()>> later_;
};

}  // namespace sandglass::test
