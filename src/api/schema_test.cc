#include "api/schema.h"

#include <gtest/gtest.h>

#include "api/operation.h"
#include "api/shapes.h"
#include "tests/support/must.h"

namespace sandglass::api {
namespace {

using test::Must;

// "path: message" of the first mismatch, or "".
std::string Wrong(const Schema& schema, std::string_view json) {
  const auto wrong = FindMismatch(schema, Must(ParseJson(json)));
  return wrong ? wrong->path + ": " + wrong->message : "";
}

constexpr std::string_view kColours[] = {"red", "blue"};
constexpr Schema kColour{.kind = SchemaKind::kString, .choices = kColours};
constexpr Schema kSmall{.kind = SchemaKind::kInteger, .min = 1, .max = 9};
constexpr Field kItemFields[] = {
    {"colour", &kColour, Need::kRequired, "of the item"},
    {"size", &kSmall, Need::kOptional, ""},
};
constexpr Schema kItem{.kind = SchemaKind::kObject, .fields = kItemFields};
constexpr Schema kItems{.kind = SchemaKind::kArray, .min = 1, .max = 2, .items = &kItem};
constexpr Field kBoxFields[] = {{"items", &kItems, Need::kRequired, ""}};
constexpr Schema kBox{.kind = SchemaKind::kObject, .fields = kBoxFields};

TEST(ApiSchema, TheMessageNamesThePlace) {
  EXPECT_EQ(Wrong(kBox, R"({"items":[{"colour":"red","size":3}]})"), "");
  EXPECT_EQ(Wrong(kBox, R"({})"), "items: is missing");
  EXPECT_EQ(Wrong(kBox, R"({"items":[]})"), "items: should not be empty");
  EXPECT_EQ(Wrong(kBox, R"({"items":[{"colour":"red"},{"colour":"green"}]})"),
            R"(items[1].colour: should be one of "red", "blue", and is "green")");
  EXPECT_EQ(Wrong(kBox, R"({"items":[{"colour":"red","size":10}]})"),
            "items[0].size: should be between 1 and 9");
  EXPECT_EQ(Wrong(kBox, R"({"items":[{"colour":"red","size":1.5}]})"),
            "items[0].size: should be a whole number");
  EXPECT_EQ(Wrong(kBox, R"({"items":[{"colour":"red","weight":1}]})"),
            "items[0].weight: is not known; known: colour, size");
  EXPECT_EQ(Wrong(kBox, R"({"items":"red"})"), "items: should be an array");
  EXPECT_EQ(Wrong(kBox, R"([])"), ": should be an object");
  EXPECT_EQ(Wrong(kBox, R"({"items":[{"colour":"red"},{"colour":"red"},{"colour":"red"}]})"),
            "items: should have between 1 and 2 items, and has 3");
}

TEST(ApiSchema, NamesHaveNoNulAndMayBeAnyOtherBytes) {
  EXPECT_EQ(Wrong(kNamedPath, R"("a\u0000b")"), ": holds a NUL character");
  EXPECT_EQ(Wrong(kNamedPath, R"({"base64":"/w=="})"), "");
  EXPECT_EQ(Wrong(kNamedPath, R"({"base64":"AA=="})"), ": holds a NUL character");
  EXPECT_EQ(Wrong(kNamedPath, R"({"base64":"?"})"),
            ": should be a string, or {\"base64\": \"...\"}");
  EXPECT_EQ(Wrong(kNamedPath, R"("")"), ": should not be empty");
  EXPECT_EQ(Wrong(kWords, R"("a\u0000b")"), "");
}

TEST(ApiSchema, OneOfSeveralForms) {
  EXPECT_EQ(Wrong(kDirectory, "0"), "");
  EXPECT_EQ(Wrong(kDirectory, R"("/home/me/app")"), "");
  EXPECT_EQ(Wrong(kDirectory, "true"), ": should be a string, or {\"base64\": \"...\"}");
}

TEST(ApiSchema, PrintsAsJsonSchema) {
  EXPECT_EQ(WriteJson(ToJsonSchema(kItem)),
            R"({"type":"object","properties":{"colour":{"type":"string","enum":["red","blue"],)"
            R"("description":"of the item"},"size":{"type":"integer","minimum":1,"maximum":9}},)"
            R"("required":["colour"],"additionalProperties":false})");
}

TEST(ApiTable, EveryEntryIsComplete) {
  for (const Operation& operation : AllOperations()) {
    EXPECT_EQ(FindOperation(operation.name), &operation) << operation.name;
    EXPECT_TRUE(operation.summary.ends_with('.')) << operation.name;
    EXPECT_EQ(operation.request->kind, SchemaKind::kObject) << operation.name;
    EXPECT_EQ(operation.result->kind, SchemaKind::kObject) << operation.name;
    EXPECT_NE(operation.handle == nullptr, operation.missing.empty()) << operation.name;
  }
  for (const Event& event : AllEvents()) EXPECT_EQ(FindEvent(event.name), &event) << event.name;
  EXPECT_EQ(FindOperation("session"), nullptr);
}

TEST(ApiTable, HasEveryOperationAndEventOfThePlan) {
  for (const char* name :
       {"session.start", "session.stop", "session.reset", "session.status", "undo.rollback",
        "undo.history", "undo.configure", "undo.discard", "agent.execute", "agent.prompt",
        "fs.list", "fs.read", "fs.status", "safeguard.configure", "safeguard.confirm"})
    EXPECT_NE(FindOperation(name), nullptr) << name;
  for (const char* name :
       {"event.step_completed", "event.agent_output", "event.terminal_output", "event.warning",
        "event.error", "event.safeguard_triggered", "event.external_modification", "event.recovery",
        "event.undo_version_mismatch"})
    EXPECT_NE(FindEvent(name), nullptr) << name;
}

}  // namespace
}  // namespace sandglass::api
