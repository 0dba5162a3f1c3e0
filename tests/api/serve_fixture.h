// ServeFixture: the real program as `sandglass serve --stdio`, driven by a client that buffers what it reads and correlates by request
// id, as clients are told to.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/operation.h"
#include "api/schema.h"
#include "base/io.h"
#include "base/json.h"
#include "base/process_tree.h"
#include "session/bridge_process.h"
#include "tests/api/api_fixture.h"
#include "tests/api/line_client.h"
#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"
#include "world/local/local_world.h"

namespace sandglass::test {

class JsonlClient : public LineClient {
 public:
  explicit JsonlClient(const Place& place) : LineClient(place, {"serve", "--stdio"}) {}

  std::string Send(std::string_view type, std::string_view payload = "{}") {
    const std::string id = fmt::format("r{}", ++last_id_);
    SendLine(fmt::format(R"({{"type":"{}","request_id":"{}","payload":{}}})", type, id, payload));
    return id;
  }

  // The next of these in what came or comes; null after a while, and a failure.
  Json Response(const std::string& id) {
    return Next("response", [&](const Json& message) {
      const Json* given = message.Find("request_id");
      return given != nullptr && given->AsString() != nullptr && *given->AsString() == id;
    });
  }
  Json Event(std::string_view type) {
    return Next(type, [](const Json&) { return true; });
  }
  // Of those that came and were not looked at yet.
  std::optional<Json> TakeEvent(std::string_view type) {
    for (; looked_ < came_.size(); ++looked_) Keep(came_[looked_]);
    for (size_t i = 0; i < waiting_.size(); ++i) {
      if (waiting_[i].GetString("type").value() != type) continue;
      Json found = waiting_[i];
      waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
      return found;
    }
    return std::nullopt;
  }
  Json ResponseWithoutId() {
    return Next("response",
                [](const Json& message) { return message.Find("request_id")->is_null(); });
  }
  // Asks and waits for the answer.
  Json Ask(std::string_view type, std::string_view payload = "{}") {
    return Response(Send(type, payload));
  }
  // The result of what must work; it fits the table.
  Json Result(std::string_view type, std::string_view payload = "{}") {
    const Json response = Ask(type, payload);
    EXPECT_EQ(response.GetString("status").value(), "ok") << WriteJson(response);
    const Json* result = response.Find("payload");
    Json value = result != nullptr ? *result : Json::Object();
    if (const auto wrong = api::FindMismatch(*api::FindOperation(type)->result, value))
      ADD_FAILURE() << type << ": " << wrong->path << " " << wrong->message;
    return value;
  }
  // The code of the error of what must fail.
  std::string Code(std::string_view type, std::string_view payload = "{}") {
    return CodeOf(Ask(type, payload));
  }
  static std::string CodeOf(const Json& response) {
    const Json* error = response.Find("error");
    return error != nullptr ? error->GetString("code").value() : "no error: " + WriteJson(response);
  }

  bool HasEvent(std::string_view type) const {
    for (const Json& message : came_) {
      if (message.GetString("type").value() == type) return true;
    }
    return false;
  }
  // All output of the request, as text, when its response has come.
  std::string Output(const std::string& id) {
    std::string text;
    for (const Json& message : came_) {
      if (message.GetString("type").value() != "event.terminal_output") continue;
      const Json& payload = *message.Find("payload");
      if (*payload.Find("request_id")->AsString() != id) continue;
      const std::string& data = *payload.Find("data")->AsString();
      text += payload.Find("encoding") != nullptr ? Must(Base64Decode(data)) : data;
    }
    return text;
  }

 private:
  template <class Fits>
  Json Next(std::string_view type, const Fits& fits) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (true) {
      for (; looked_ < came_.size(); ++looked_) Keep(came_[looked_]);
      for (size_t i = 0; i < waiting_.size(); ++i) {
        if (waiting_[i].GetString("type").value() != type || !fits(waiting_[i])) continue;
        Json found = waiting_[i];
        waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
        return found;
      }
      if (std::chrono::steady_clock::now() > deadline || !ReadMore(1'000)) {
        if (std::chrono::steady_clock::now() <= deadline && is_open()) continue;
        ADD_FAILURE() << "no " << type << "; log:\n" << Log();
        return Json::Object({{"type", "none"}, {"status", "none"}});
      }
    }
  }
  // Events fit the table.
  void Keep(const Json& message) {
    const std::string type = message.GetString("type").value();
    if (const api::Event* event = api::FindEvent(type)) {
      if (const auto wrong = api::FindMismatch(*event->payload, *message.Find("payload")))
        ADD_FAILURE() << type << ": " << wrong->path << " " << wrong->message;
    }
    waiting_.push_back(message);
  }

  int last_id_ = 0;
  size_t looked_ = 0;
  std::deque<Json> waiting_;
};

class ServeFixture : public ApiFixture {
 protected:
  void SetUp() override {
    ApiFixture::SetUp();
    if (!IsSkipped()) client_.emplace(place_);
  }
  void Restart(std::vector<std::string> words = {}) {
    place_.words = std::move(words);
    client_.emplace(place_);
  }
  std::string StartPayload(std::string_view more = "") const {
    return fmt::format(R"({{"working_directories":[{{"path":"{}"}}]{}}})", workspace_.project(),
                       more);
  }
  Json Start(std::string_view more = "") {
    return client_->Result("session.start", StartPayload(more));
  }
  // Runs it and returns the result.
  Json Execute(const std::string& command) {
    return client_->Result("agent.execute", WriteJson(Json::Object({{"command", command}})));
  }
  std::string SendExecute(const std::string& command, std::string_view more = "") {
    std::string payload = WriteJson(Json::Object({{"command", command}}));
    payload.insert(payload.size() - 1, more);
    return client_->Send("agent.execute", payload);
  }
  pid_t Bridge() const {
    for (const pid_t child : ChildrenOf(client_->pid())) {
      const auto name =
          ReadFileAt(AT_FDCWD, ("/proc/" + std::to_string(child) + "/comm").c_str(), 64);
      if (name.ok() && *name == std::string(session::kBridgeName) + "\n") return child;
    }
    return -1;
  }
  static std::vector<std::string> Texts(const Json* list) {
    std::vector<std::string> texts;
    for (const Json& item : *list->AsArray()) texts.push_back(*item.AsString());
    return texts;
  }

  std::optional<JsonlClient> client_;
};

}  // namespace sandglass::test
