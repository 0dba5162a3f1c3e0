// ToolService: what `sandglass mcp` offers, as a thin adapter: a tool is an operation of the table, and what it does is the host's
// business. The session starts with the first tool that needs one, and all clients share it.
//
// What a safeguard holds is decided by the user of the client, if the client can ask (elicitation), else outside; never by a tool.
// A command's output is gathered for its result instead of told, so it never waits for a client.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/mcp/captured_output.h"
#include "api/mcp/service.h"
#include "api/mcp/tools.h"
#include "api/server_loop.h"

namespace sandglass::api::mcp {

class ToolService final : public Service, public Participant {
 public:
  // For one project, a folder of this machine; "": whatever session somebody else starts. The loop outlives it.
  ToolService(ServerLoop& loop, std::string project, std::string program_version);

  Json Info(const Version& version) const override;
  Json Capabilities(const Version& version) const override;
  std::string_view Instructions() const override;
  Taken Take(const std::shared_ptr<Request>& request) override;
  bool takes_requests() const override { return loop_.takes_requests() && backlog_.empty(); }

  std::optional<Instant> Deadline() const override;
  void Work() override;
  void Tell(std::string_view event, const Json& payload) override;

 private:
  // A tool that was called and is not answered.
  struct Call {
    std::shared_ptr<Request> request;
    const Tool* tool = nullptr;
    Json arguments;
    CapturedOutput out, err;
    std::vector<std::string> held;  // what a person had to decide about, for the model
    Instant begun{}, last_progress{};
  };
  struct Method {
    std::string_view name;
    void (ToolService::*take)(const std::shared_ptr<Request>& request);
  };
  static const Method kMethods[];

  // --- Methods
  void ListTools(const std::shared_ptr<Request>& request);
  void CallTool(const std::shared_ptr<Request>& request);

  // --- Resources: tool_service_resources.cc
  void ListResources(const std::shared_ptr<Request>& request);
  void AddSteps(const std::shared_ptr<Request>& request, Json resources);
  void ListTemplates(const std::shared_ptr<Request>& request);
  void ReadResource(const std::shared_ptr<Request>& request);
  static void FinishRead(Request& request, const std::string& uri, const Answer& answer);

  // --- Operations
  using Then = std::function<void(const Answer& answer)>;
  // In a session, which is started first if there is none.
  void Do(std::string_view operation, Json payload, Then then);
  void DoAs(const std::string& key, std::string_view operation, Json payload, Then then);
  void StartSession(const std::string& key, std::function<void()> then, const Then& failed);

  // --- Calls, by the id that the host knows
  void Begin(const std::string& key);
  void Run(const std::string& key);
  void Finish(const std::string& key, const Answer& answer);
  Json ResultOf(const Call& call, const Answer& answer);
  Json Succeeded(const Call& call, Json result);
  Json Failed(const Call& call, const ApiError& error) const;
  void EndCommand(const std::string& key);

  // --- What a person decides: tool_service_safeguards.cc
  // Whether the user of the client can be asked, and deletions are not held yet.
  bool WantsSafeguards(const Call& call) const;
  void TurnSafeguardsOn(const std::string& key);
  void TellHeld(Call& call, const Json& payload);
  void AskUser(Call& call, const Json& payload);
  void Confirm(const std::string& safeguard, std::string_view action);

  void TellProgress();
  void GatherOutput(const Json& payload);
  Call* CallOf(const Json& payload);

  ServerLoop& loop_;
  const std::string project_;
  const std::string program_version_;
  SteadyClock clock_;
  std::map<std::string, Call> calls_;
  uint64_t next_key_ = 1;
  std::deque<std::function<void()>> backlog_;  // calls that waited for the session
  std::vector<std::string> notices_;           // for the next result
  bool has_safeguards_ = false;                // mass deletions are held
};

}  // namespace sandglass::api::mcp
