#include "api/mcp/tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/mcp/captured_output.h"
#include "api/mcp/tool_texts.h"

namespace sandglass::api::mcp {
namespace {

using ::testing::HasSubstr;

TEST(McpTools, EveryToolIsAnOperationThatWorks) {
  for (const Tool& tool : AllTools()) {
    const Operation* operation = FindOperation(tool.operation);
    ASSERT_NE(operation, nullptr) << tool.name;
    EXPECT_NE(operation->handle, nullptr) << tool.name;
    EXPECT_NE(tool.text, nullptr) << tool.name;
    for (const DefaultArgument& argument : tool.defaults)
      EXPECT_NE(std::ranges::find(tool.arguments, argument.name), tool.arguments.end());
    EXPECT_EQ(
        ToJson(tool, kVersions[3]).Find("inputSchema")->Find("properties")->AsObject()->size(),
        tool.arguments.size());
  }
}

// What a person must decide has no tool, and no argument of one.
TEST(McpTools, NoToolConfirmsForcesOrEndsAnything) {
  for (const Tool& tool : AllTools()) {
    EXPECT_FALSE(tool.operation.starts_with("safeguard.")) << tool.name;
    for (const std::string_view argument : tool.arguments) {
      EXPECT_NE(argument, "force");
      EXPECT_NE(argument, "stop_processes");
    }
  }
  const auto wrong = FindMismatch(*FindTool("undo"), Json::Object({{"force", true}}));
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->path, "force");
}

TEST(McpTools, FailuresSayWhatToDo) {
  EXPECT_THAT(FailureText("undo.rollback", {ApiCode::kConflict, "no"}), HasSubstr("Tell the user"));
  EXPECT_THAT(FailureText("fs.edit", {ApiCode::kConflict, "no"}), HasSubstr("replace_all"));
  for (const ApiCode code : AllApiCodes())
    EXPECT_THAT(FailureText("fs.read", {code, "why"}), HasSubstr("why"));
}

TEST(CapturedOutput, KeepsBothEndsOfWhatIsLong) {
  CapturedOutput output;
  for (int i = 0; i < 100; ++i) output.Append("0123456789");
  EXPECT_EQ(output.Text().size(), 1000u);
  EXPECT_EQ(output.left_out(), 0u);
  output.Append(std::string(10 * kKeptOfEachEnd, 'x'));
  output.Append("\nlast line\n");
  EXPECT_EQ(output.LastLine(), "last line");
  EXPECT_EQ(output.left_out(), 1000 + 10 * kKeptOfEachEnd + 11 - 2 * kKeptOfEachEnd);
  EXPECT_TRUE(output.Text().starts_with("0123"));
  EXPECT_TRUE(output.Text().ends_with("last line\n"));
  output.Miss(5);
  EXPECT_THAT(output.Text(), HasSubstr("bytes left out]"));
}

}  // namespace
}  // namespace sandglass::api::mcp
