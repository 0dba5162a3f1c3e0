#include "api/mcp/messages.h"

#include <gtest/gtest.h>

#include <string>

#include "api/limits.h"

namespace sandglass::api::mcp {
namespace {

// "number id" of what is refused, "method id" of a request, "answer" of one.
std::string Said(const Item& item) {
  if (const auto* refused = std::get_if<Refused>(&item))
    return std::to_string(JsonRpcNumber(refused->error.code)) + " " + WriteJson(refused->id);
  if (const auto* message = std::get_if<Message>(&item))
    return message->method + " " + WriteJson(message->id);
  return "answer";
}
std::string Said(std::string_view line) {
  std::string text;
  for (const Item& item : ParseLine(line).items) text += (text.empty() ? "" : ", ") + Said(item);
  return text;
}

TEST(McpMessages, RequestsNotificationsAndAnswersAreToldApart) {
  EXPECT_EQ(Said(R"({"jsonrpc":"2.0","id":1,"method":"ping"})"), "ping 1");
  EXPECT_EQ(Said(R"({"jsonrpc":"2.0","id":"a","method":"ping","params":{}})"), "ping \"a\"");
  EXPECT_EQ(Said(R"({"jsonrpc":"2.0","method":"notifications/initialized"})"),
            "notifications/initialized null");
  EXPECT_EQ(Said(R"({"jsonrpc":"2.0","id":1,"result":{}})"), "answer");
  EXPECT_EQ(Said(R"([{"jsonrpc":"2.0","id":1,"method":"ping"},7])"), "ping 1, -32600 null");
  EXPECT_EQ(ParseLine("[1]").shape, LineShape::kBatch);
}

TEST(McpMessages, WhatIsNoMessageIsRefusedWithTheIdThatItHas) {
  EXPECT_EQ(Said("nonsense"), "-32700 null");
  EXPECT_EQ(Said(std::string(kMaxLineBytes + 1, ' ')), "-32600 null");
  EXPECT_EQ(Said(R"({"jsonrpc":"2.0","id":1,"id":2,"method":"ping"})"), "-32700 2");
  EXPECT_EQ(Said(R"({"id":1,"method":"ping"})"), "-32600 1");
  EXPECT_EQ(Said(R"({"jsonrpc":"2.0","id":1})"), "-32600 1");
  EXPECT_EQ(Said(R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})"), "-32600 null");
  EXPECT_EQ(Said(R"({"jsonrpc":"2.0","id":null,"method":"ping"})"), "-32600 null");
  EXPECT_EQ(Said(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[1]})"), "-32602 1");
  EXPECT_EQ(Said("[]"), "-32600 null");
}

TEST(McpMessages, AnswersHaveTheirShape) {
  EXPECT_EQ(WriteJson(ResultMessage(Json(1), Json::Object())),
            R"({"jsonrpc":"2.0","id":1,"result":{}})");
  EXPECT_EQ(
      WriteJson(ErrorMessage({Json("a"), {ApiCode::kConflict, "no"}})),
      R"({"jsonrpc":"2.0","id":"a","error":{"code":-32013,"message":"no","data":{"code":"conflict"}}})");
}

}  // namespace
}  // namespace sandglass::api::mcp
