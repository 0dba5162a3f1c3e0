#include "api/mcp/conversation.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

namespace sandglass::api::mcp {
namespace {

class NoService final : public Service {
 public:
  Json Info(const Version&) const override { return Json::Object({{"name", "none"}}); }
  Json Capabilities(const Version&) const override { return Json::Object(); }
  std::string_view Instructions() const override { return ""; }
  Taken Take(const std::shared_ptr<Request>&) override { return Taken::kNoSuchMethod; }
};

class KeptAnswer final : public Exchange {
 public:
  void Send(const Json&) override {}
  void Answer(const std::optional<Json>& message) override {
    ++answers;
    last = message;
  }
  bool has_room() const override { return true; }

  int answers = 0;
  std::optional<Json> last;
};

// Whoever waits for a batch must not wait for ever when its session is deleted.
TEST(Conversation, ABatchThatWasNotTakenUpIsAnsweredAtTheEnd) {
  NoService service;
  const auto batch = std::make_shared<KeptAnswer>();
  {
    Conversation conversation(service, Logger::Null());
    const auto begun = std::make_shared<KeptAnswer>();
    conversation.Take(ParseLine(R"({"jsonrpc":"2.0","id":1,"method":"initialize",)"
                                R"("params":{"protocolVersion":"2025-03-26"}})"),
                      begun);
    ASSERT_EQ(begun->answers, 1);
    conversation.Take(ParseLine(R"([{"jsonrpc":"2.0","id":2,"method":"ping"},)"
                                R"({"jsonrpc":"2.0","id":3,"method":"ping"}])"),
                      batch);
    ASSERT_TRUE(conversation.has_backlog());
    conversation.TakeBacklog();
    EXPECT_EQ(batch->answers, 0);
  }
  ASSERT_EQ(batch->answers, 1);
  ASSERT_TRUE(batch->last.has_value());
  EXPECT_EQ(batch->last->AsArray()->size(), 1u);  // what was done is told
}

}  // namespace
}  // namespace sandglass::api::mcp
