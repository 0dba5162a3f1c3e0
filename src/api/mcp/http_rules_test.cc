#include "api/mcp/http_rules.h"

#include <gtest/gtest.h>

namespace sandglass::api::mcp {
namespace {

TEST(McpHttpRules, OnlyNamesOfThisMachineAreLoopback) {
  for (const char* host :
       {"localhost", "LocalHost", "127.0.0.1", "[::1]", "localhost:1", "[::1]:65535"})
    EXPECT_TRUE(IsLoopbackHost(host)) << host;
  for (const char* host : {"", "localhos", "localhost.", "localhostx", "localhost:", "localhost:1x",
                           "localhost:123456", "127.0.0.2", "::1", "a.localhost", "localhost 1"})
    EXPECT_FALSE(IsLoopbackHost(host)) << host;
  EXPECT_TRUE(IsLoopbackOrigin("https://localhost:3000"));
  for (const char* origin : {"", "null", "localhost", "http:/localhost", "http://localhost/",
                             "ftp://localhost", "http://evil.example"})
    EXPECT_FALSE(IsLoopbackOrigin(origin)) << origin;
}

TEST(McpHttpRules, ATokenIsTheWholeToken) {
  http::Request request;
  EXPECT_FALSE(HasToken(request, "secret"));
  for (const char* wrong : {"", "secret", "Basic secret", "Bearer", "Bearer secre",
                            "Bearer secrets", "Bearer secret x"}) {
    request.headers = {{"Authorization", wrong}};
    EXPECT_FALSE(HasToken(request, "secret")) << wrong;
  }
  request.headers = {{"authorization", "bearer  secret "}};
  EXPECT_TRUE(HasToken(request, "secret"));
  request.headers.push_back(request.headers.front());
  EXPECT_FALSE(HasToken(request, "secret"));
}

TEST(McpHttpRules, MediaTypesAreFoundInLists) {
  EXPECT_TRUE(HasMediaType("application/json; charset=utf-8", "application/json"));
  EXPECT_TRUE(HasMediaType("text/plain, Text/Event-Stream;q=0.5", "text/event-stream"));
  EXPECT_TRUE(HasMediaType("*/*", "text/event-stream"));
  EXPECT_FALSE(HasMediaType("application/jsonx,,", "application/json"));
  EXPECT_FALSE(HasMediaType("", "application/json"));
}

TEST(McpHttpRules, EventIdsAreReadAsTheyAreWritten) {
  const auto id = ParseEventId(ToText({12, 345}));
  ASSERT_TRUE(id);
  EXPECT_EQ(id->stream, 12u);
  EXPECT_EQ(id->event, 345u);
  for (const char* text : {"", "-", "1-", "-1", "1", "1-2-3", "x-1", "1-99999999999999999999"})
    EXPECT_FALSE(ParseEventId(text)) << text;
}

}  // namespace
}  // namespace sandglass::api::mcp
