// McpFixture: the real program as `sandglass mcp`, driven by a client that checks what every client may rely on: each line is a message of
// JSON-RPC, and a structured result fits the schema that tools/list gives.
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

#include "api/mcp/tools.h"
#include "base/process_tree.h"
#include "tests/api/api_fixture.h"
#include "tests/api/line_client.h"
#include "tests/support/temp_workspace.h"
#include "world/local/local_world.h"

namespace sandglass::test {

class McpClient : public LineClient {
 public:
  explicit McpClient(const Place& place) : LineClient(place, {"mcp"}) {}
  explicit McpClient(Fd socket) : LineClient(std::move(socket)) {}

  bool IsClosedSoon() {
    while (ReadMore(10'000)) {
    }
    return !is_open();
  }

  Json Send(std::string_view method, std::string_view params = "{}") {
    const int id = ++last_id_;
    SendLine(fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"{}","params":{}}})", id, method,
                         params));
    return Json(id);
  }
  void Notify(std::string_view method, std::string_view params = "{}") {
    SendLine(fmt::format(R"({{"jsonrpc":"2.0","method":"{}","params":{}}})", method, params));
  }
  // The next message with this id; null: one that nobody could tell the id of.
  Json Answer(const Json& id) {
    return Next([&](const Json& message) {
      const Json* given = message.Find("id");
      return given != nullptr && *given == id;
    });
  }
  Json Notification(std::string_view method) {
    return Next([&](const Json& message) {
      const Json* given = message.Find("method");
      return given != nullptr && *given->AsString() == method;
    });
  }
  Json Batch() {
    return Next([](const Json& message) { return message.AsArray() != nullptr; });
  }
  Json Ask(std::string_view method, std::string_view params = "{}") {
    return Answer(Send(method, params));
  }
  // Of what must fail.
  int64_t ErrorNumber(std::string_view method, std::string_view params = "{}") {
    return NumberOf(Ask(method, params));
  }
  static int64_t NumberOf(const Json& answer) {
    const Json* error = answer.Find("error");
    return error != nullptr ? error->GetInt("code").value() : 0;
  }

  Json Initialize(std::string_view version = "2025-11-25") {
    const Json answer = Ask(
        "initialize",
        fmt::format(
            R"({{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{{"name":"test","version":"1"}}}})",
            version));
    Notify("notifications/initialized");
    return *answer.Find("result");
  }

  static std::string CallParams(std::string_view tool, const Json& arguments,
                                const std::optional<Json>& progress_token = {}) {
    Json params = Json::Object({{"name", tool}, {"arguments", arguments}});
    if (progress_token) params.Set("_meta", Json::Object({{"progressToken", *progress_token}}));
    return WriteJson(params);
  }
  // The whole result of a tool.
  Json Call(std::string_view tool, const Json& arguments = Json::Object()) {
    const Json answer = Ask("tools/call", CallParams(tool, arguments));
    const Json* result = answer.Find("result");
    if (result != nullptr) return *result;
    ADD_FAILURE() << WriteJson(answer) << "\n" << Log();
    return Json::Object();
  }
  // The structured result of one that must work.
  Json Result(std::string_view tool, const Json& arguments = Json::Object()) {
    const Json result = Call(tool, arguments);
    const Json* structured = result.Find("structuredContent");
    if (structured == nullptr || result.GetBool("isError").value()) {
      ADD_FAILURE() << tool << ": " << WriteJson(result);
      return Json::Object();
    }
    if (const auto wrong = api::mcp::FindResultMismatch(*api::mcp::FindTool(tool), *structured))
      ADD_FAILURE() << tool << ": " << wrong->path << " " << wrong->message;
    return *structured;
  }
  // The text of one that must fail.
  std::string Failure(std::string_view tool, const Json& arguments = Json::Object()) {
    const Json result = Call(tool, arguments);
    EXPECT_TRUE(result.GetBool("isError").value()) << WriteJson(result);
    EXPECT_EQ(result.Find("structuredContent"), nullptr);
    return TextOf(result);
  }
  static std::string TextOf(const Json& result) {
    return (*result.Find("content")->AsArray())[0].GetString("text").value();
  }

 private:
  template <class Fits>
  Json Next(const Fits& fits) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (true) {
      for (; looked_ < came_.size(); ++looked_) {
        if (came_[looked_].AsArray() == nullptr)
          EXPECT_EQ(came_[looked_].GetString("jsonrpc").value(), "2.0");
        waiting_.push_back(came_[looked_]);
      }
      for (size_t i = 0; i < waiting_.size(); ++i) {
        if (!fits(waiting_[i])) continue;
        Json found = waiting_[i];
        waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
        return found;
      }
      if (ReadMore(1'000)) continue;
      if (std::chrono::steady_clock::now() <= deadline && is_open()) continue;
      ADD_FAILURE() << "no answer; log:\n" << Log();
      return Json::Object({{"result", Json::Object({{"content", Json::Array()}})}});
    }
  }

  int last_id_ = 0;
  size_t looked_ = 0;
  std::deque<Json> waiting_;
};

class McpFixture : public ApiFixture {
 protected:
  void SetUp() override {
    ApiFixture::SetUp();
    if (IsSkipped()) return;
    place_.words = {"-p", workspace_.project()};
    client_.emplace(place_);
  }
  Json Execute(const std::string& command) {
    return client_->Result("execute_command", Json::Object({{"command", command}}));
  }

  std::optional<McpClient> client_;
};

}  // namespace sandglass::test
