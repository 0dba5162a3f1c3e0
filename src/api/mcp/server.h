// Server: `sandglass mcp`: the Model Context Protocol on the standard streams, as a thin adapter: a tool is an operation of the table, and
// what it does is the host's business. The session starts with the first tool that needs one.
//
// A command's output is gathered for its result instead of told, so it never waits for the client. What a client that does not read can
// cause is bounded as for every LineServer; progress is left out then.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/line_server.h"
#include "api/mcp/captured_output.h"
#include "api/mcp/messages.h"
#include "api/mcp/tools.h"
#include "api/mcp/versions.h"

namespace sandglass::api::mcp {

class Server final : public LineServer {
 public:
  // For one project, a folder of this machine.
  static Result<std::unique_ptr<Server>> Open(ServerOptions options, std::string project);

  void Tell(std::string_view event, Json payload) override;
  size_t OutputRoom() const override { return kOutputQueue; }
  std::optional<Instant> Deadline() const override;
  void Work() override;

 private:
  // Where the one answer to a request goes; without a message the client wants none any more.
  using Reply = std::function<void(std::optional<Json>)>;
  struct Request {
    Message message;
    Reply reply;
  };
  // A tool that was called and is not answered.
  struct Call {
    Json id;
    const Tool* tool = nullptr;
    Json arguments;
    Reply reply;
    bool cancelled = false;
    CapturedOutput out, err;
    std::vector<std::string> held;  // what a person is asked about
    std::optional<Json> progress_token;
    Instant begun{}, last_progress{};
  };
  struct Method {
    std::string_view name;
    void (Server::*take)(const Request& request);
    bool before_initialize;
  };
  static const Method kMethods[];

  Server(ServerOptions options, std::string project);
  void TakeLine(const Result<std::string_view>& line) override;
  bool has_backlog() const override { return !backlog_.empty(); }
  void TakeBacklog() override;

  // --- Messages
  void SendMessage(const std::optional<Json>& message);
  void TakeItem(Item item, const Reply& reply);
  void TakeBatch(std::vector<Item> items);
  void TakeNotification(const Message& message);
  void TakeRequest(const Request& request);
  void Refuse(const Request& request, ApiError error) const;

  // --- Methods
  void Initialize(const Request& request);
  void Ping(const Request& request);
  void ListTools(const Request& request);
  void CallTool(const Request& request);

  // --- Calls, by the id that the host knows
  void Begin(const std::string& key);
  void StartSession(const std::string& key);
  void Finish(const std::string& key, const Answer& answer);
  Json ResultOf(const Call& call, const Answer& answer);
  Json Succeeded(const Call& call, Json result);
  Json Failed(const Call& call, const ApiError& error) const;
  void CancelCall(const Json& id);
  void TellProgress();
  void GatherOutput(const Json& payload);
  Call* CallOf(const Json& payload);

  const std::string project_;
  const std::string program_version_;
  const Version* version_ = nullptr;  // null: not initialized
  std::map<std::string, Call> calls_;
  uint64_t next_key_ = 1;
  std::deque<std::function<void()>> backlog_;
  std::vector<std::string> notices_;  // for the next result
};

}  // namespace sandglass::api::mcp
