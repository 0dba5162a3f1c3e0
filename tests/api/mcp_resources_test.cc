// Files and steps as resources.
#include <gmock/gmock.h>

#include "tests/api/mcp_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;

class McpResources : public McpFixture {
 protected:
  void SetUp() override {
    McpFixture::SetUp();
    if (!IsSkipped()) client_->Initialize();
  }
  std::string Uri(const std::string& path) {
    return fmt::format("file://{}/{}", workspace_.project(), path);
  }
  Json Read(const std::string& uri) {
    return client_->Ask("resources/read", WriteJson(Json::Object({{"uri", uri}})));
  }
  Json Content(const std::string& uri) {
    const Json answer = Read(uri);
    if (answer.Find("result") == nullptr) {
      ADD_FAILURE() << WriteJson(answer);
      return Json::Object();
    }
    return answer.Find("result")->Find("contents")->AsArray()->front();
  }
  // The names on a page, and where the next begins.
  std::string Listed(const std::string& cursor, std::vector<std::string>& names) {
    const Json answer = client_->Ask(
        "resources/list", cursor.empty() ? "{}" : fmt::format(R"({{"cursor":"{}"}})", cursor));
    const Json& result = *answer.Find("result");
    for (const Json& resource : *result.Find("resources")->AsArray()) {
      names.push_back(resource.GetString("name").value());
      uris_[names.back()] = resource.GetString("uri").value();
    }
    const Json* next = result.Find("nextCursor");
    return next != nullptr ? *next->AsString() : "";
  }

  std::map<std::string, std::string> uris_;
};

TEST_F(McpResources, FilesAndStepsAreListedAndRead) {
  Execute("echo more >> keep.txt");
  std::vector<std::string> names;
  EXPECT_EQ(Listed("", names), "");
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("keep.txt", "src/main.c", "step 1"));
  EXPECT_EQ(uris_["keep.txt"], Uri("keep.txt"));
  EXPECT_EQ(Content(uris_["keep.txt"]).GetString("text").value(), "kept\nmore\n");
  EXPECT_THAT(Content(uris_["step 1"]).GetString("text").value(), HasSubstr("+more"));
  const Json templates = client_->Ask("resources/templates/list");
  EXPECT_EQ(templates.Find("result")->Find("resourceTemplates")->AsArray()->size(), 2u);
}

TEST_F(McpResources, LongListsHavePages) {
  for (int i = 0; i < 300; ++i) workspace_.WriteFile(fmt::format("many/{}", i), "x");
  std::vector<std::string> names;
  const std::string next = Listed("", names);
  EXPECT_EQ(names.size(), 250u);
  EXPECT_EQ(Listed(next, names), "");
  EXPECT_EQ(names.size(), 302u);
  for (const char* cursor : {"x", "-1", "0", "99999999999999999999"})
    EXPECT_EQ(client_->ErrorNumber("resources/list", fmt::format(R"({{"cursor":"{}"}})", cursor)),
              -32602)
        << cursor;
}

TEST_F(McpResources, NamesAndContentsAreAnyBytes) {
  workspace_.WriteFile("a b%?#\xff", std::string("\0\xff", 2));
  std::vector<std::string> names;
  Listed("", names);
  const std::string uri = Uri("a%20b%25%3F%23%FF");
  EXPECT_THAT(uris_, ::testing::Contains(::testing::Pair(::testing::_, uri)));
  EXPECT_EQ(Content(uri).GetString("blob").value(), "AP8=");
}

TEST_F(McpResources, WhatIsNoResourceOfTheProjectIsNone) {
  workspace_.WriteFile("large", std::string(600 << 10, 'x'));
  for (const std::string& uri : {Uri("missing"), Uri("../x"), std::string("file:///etc/passwd"),
                                 std::string("http://x"), std::string("sandglass://steps/99")}) {
    const Json answer = Read(uri);
    EXPECT_EQ(McpClient::NumberOf(answer), -32602) << uri;
    EXPECT_EQ(WriteJson(*answer.Find("error")->Find("data")),
              WriteJson(Json::Object({{"uri", uri}})));
  }
  EXPECT_EQ(McpClient::NumberOf(Read(Uri("large"))), -32603);
  EXPECT_EQ(client_->ErrorNumber("resources/read"), -32602);
}

}  // namespace
}  // namespace sandglass::test
