#include "api/mcp/resource_uri.h"

#include <gtest/gtest.h>

namespace sandglass::api::mcp {
namespace {

TEST(McpResourceUri, WhatIsWrittenIsReadBack) {
  for (const std::string& path :
       {std::string("/"), std::string("/a b/c%d"), std::string("/\xff?#\n"), std::string("/grün")})
    EXPECT_EQ(ParseUri(UriOf(FileResource{path})), Resource(FileResource{path})) << path;
  for (const int64_t step : {int64_t{7}, int64_t{-3}})
    EXPECT_EQ(ParseUri(UriOf(StepResource{step})), Resource(StepResource{step}));
  EXPECT_EQ(UriOf(FileResource{"/a b"}), "file:///a%20b");
  EXPECT_EQ(ParseUri("file:///a%2fb"), Resource(FileResource{"/a/b"}));
}

TEST(McpResourceUri, OtherNamesAreNone) {
  for (const char* uri :
       {"", "file://", "file://host/a", "file:/a", "http://a", "file:///%", "file:///%1",
        "file:///%0x", "file:///a%00b", "file:///a?b", "sandglass://steps/", "sandglass://steps/1x",
        "sandglass://steps/99999999999999999999"})
    EXPECT_FALSE(ParseUri(uri)) << uri;
}

}  // namespace
}  // namespace sandglass::api::mcp
