#include "api/mcp/envelope.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sandglass::api::mcp {
namespace {

constexpr std::string_view kGood =
    R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}})";

Json Parsed(std::string_view text) { return ParseJson(text).value(); }

// The number of what is wrong, or 0.
int NumberOf(std::string_view params) {
  const auto envelope = ParseEnvelope(Parsed(params));
  const auto* wrong = std::get_if<ProtocolError>(&envelope);
  return wrong != nullptr ? wrong->number : 0;
}

TEST(McpEnvelope, ItSaysWhatTheClientCan) {
  ASSERT_TRUE(HasEnvelope(Parsed(kGood)));
  const auto envelope = ParseEnvelope(Parsed(kGood));
  EXPECT_NE(std::get<Envelope>(envelope).capabilities.Find("elicitation"), nullptr);
  EXPECT_FALSE(HasEnvelope(Parsed("{}")));
  EXPECT_FALSE(HasEnvelope(Parsed(R"({"_meta":[]})")));
}

TEST(McpEnvelope, WhatIsWrongWithItHasItsNumber) {
  EXPECT_EQ(NumberOf("{}"), -32602);
  EXPECT_EQ(NumberOf(R"({"_meta":{"io.modelcontextprotocol/protocolVersion":1}})"), -32602);
  EXPECT_EQ(NumberOf(R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}})"),
            -32602);
  EXPECT_EQ(
      NumberOf(
          R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}})"),
      -32602);
  EXPECT_EQ(
      NumberOf(
          R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":1}})"),
      -32602);
  for (const char* version : {"2025-11-25", "2099-01-01", ""})
    EXPECT_EQ(
        NumberOf(fmt::format(
            R"({{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{}","io.modelcontextprotocol/clientCapabilities":{{}}}}}})",
            version)),
        -32022);
}

TEST(McpEnvelope, HeadersRepeatWhatTheMessageSays) {
  Message message{.id = Json(1), .method = "tools/call", .params = Parsed(kGood)};
  message.params.Set("name", "grün");
  const http::Headers good = {{"MCP-Protocol-Version", "2026-07-28"},
                              {"Mcp-Method", "tools/call"},
                              {"Mcp-Name", "=?base64?Z3LDvG4=?="}};
  http::Request request;
  request.headers = good;
  EXPECT_FALSE(FindHeaderMismatch(request, message));
  for (size_t i = 0; i < good.size(); ++i) {
    request.headers = good;
    request.headers.erase(request.headers.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_EQ(FindHeaderMismatch(request, message).value().number, -32020) << good[i].first;
    for (const char* other : {"other", "=?base64?!?=", "=?base64?/w==?=", "=?base64?=", ""}) {
      request.headers = good;
      request.headers[i].second = other;
      EXPECT_EQ(FindHeaderMismatch(request, message).value().number, -32020) << other;
    }
  }
  message.method = "tools/list";
  request.headers = {{"mcp-protocol-version", "2026-07-28"}, {"mcp-method", "tools/list"}};
  EXPECT_FALSE(FindHeaderMismatch(request, message));
  message.id = Json();
  request.headers.pop_back();
  EXPECT_FALSE(FindHeaderMismatch(request, message));
}

}  // namespace
}  // namespace sandglass::api::mcp
