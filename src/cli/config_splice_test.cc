#include "cli/config_splice.h"

#include <gmock/gmock.h>

namespace sandglass::cli {
namespace {

using ::testing::HasSubstr;

constexpr EntryName kEntry{"servers", "us"};

std::string SetJson(std::string_view text) {
  const auto done = SetJsonEntry(text, kEntry, "{\n  \"a\": 1\n}");
  return done.ok() ? *done : "refused: " + done.error().message();
}
std::string RemoveJson(std::string_view text) {
  const auto done = RemoveJsonEntry(text, kEntry);
  return done.ok() ? *done : "refused: " + done.error().message();
}
std::string SetToml(std::string_view text) {
  const auto done = SetTomlEntry(text, kEntry, "a = 1\n");
  return done.ok() ? *done : "refused: " + done.error().message();
}
std::string RemoveToml(std::string_view text) {
  const auto done = RemoveTomlEntry(text, kEntry);
  return done.ok() ? *done : "refused: " + done.error().message();
}

TEST(ConfigSplice, AJsonEntryIsAddedAndEverythingElseStays) {
  EXPECT_EQ(SetJson(""), "{\n  \"servers\": {\n    \"us\": {\n      \"a\": 1\n    }\n  }\n}\n");
  EXPECT_EQ(SetJson("{\n\t\"x\": 1.50e3,\n\t\"x\": [1, \"}\\\"\"]\n}"),
            "{\n\t\"x\": 1.50e3,\n\t\"x\": [1, \"}\\\"\"],\n\t\"servers\": {\n\t  \"us\": {\n\t    "
            "\"a\": "
            "1\n\t  }\n\t}\n}");
  EXPECT_EQ(SetJson("{\"servers\": {\"other\": {}}, \"z\": null}"),
            "{\"servers\": {\"other\": {}, \"us\": {\n  \"a\": 1\n}}, \"z\": null}");
  EXPECT_EQ(SetJson("{\n  \"servers\": {}\n}\n"),
            "{\n  \"servers\": {\n    \"us\": {\n      \"a\": 1\n    }\n  }\n}\n");
}

TEST(ConfigSplice, AJsonEntryIsReplacedInItsPlace) {
  const std::string text = "{\n  \"servers\": {\n    \"us\": [1, {}],\n    \"x\": 2\n  }\n}\n";
  const std::string set = SetJson(text);
  EXPECT_EQ(set,
            "{\n  \"servers\": {\n    \"us\": {\n      \"a\": 1\n    },\n    \"x\": 2\n  }\n}\n");
  EXPECT_EQ(SetJson(set), set);
  EXPECT_EQ(SetJson("{\"servers\":{\"\\u0075s\":0}}"),
            "{\"servers\":{\"\\u0075s\":{\n  \"a\": 1\n}}}");
}

TEST(ConfigSplice, AJsonEntryIsRemovedWithItsComma) {
  EXPECT_EQ(RemoveJson("{\"servers\": {\"us\": 1, \"x\": 2}}"), "{\"servers\": {\"x\": 2}}");
  EXPECT_EQ(RemoveJson("{\"servers\": {\"x\": 2, \"us\": 1}}"), "{\"servers\": {\"x\": 2}}");
  EXPECT_EQ(RemoveJson("{\"servers\": { \"us\": 1 }, \"y\": 3}"), "{\"servers\": {}, \"y\": 3}");
  for (const char* text : {"", "{}", "{\"servers\": {}}", "{ \"x\" : [ { \"us\" : 1 } ] }\n"})
    EXPECT_EQ(RemoveJson(text), text);
  const std::string text = "{\n  \"a\": 1,\n  \"servers\": {\n    \"b\": 2\n  }\n}\n";
  EXPECT_EQ(RemoveJson(SetJson(text)), text);
}

TEST(ConfigSplice, AnEntryIsFoundAsItIsWritten) {
  const auto json = [](std::string_view text) { return FindJsonEntry(text, kEntry).value(); };
  EXPECT_EQ(json("{\"servers\": {\"x\": 2, \"us\" : {\"env\": {}} , \"y\": 3}}"),
            "\"us\" : {\"env\": {}}");
  for (const char* text : {"", "{}", "{\"servers\": {}}", "{\"us\": 1}"}) EXPECT_EQ(json(text), "");
  EXPECT_FALSE(FindJsonEntry("{\"servers\": 1}", kEntry).ok());
  const auto toml = [](std::string_view text) { return FindTomlEntry(text, kEntry).value(); };
  EXPECT_EQ(toml("[a]\n[servers.us]\nb = 2\n\n[servers.us.env]\nc = 3 # c\n# z\n[z]\n"),
            "[servers.us]\nb = 2\n\n[servers.us.env]\nc = 3 # c\n");
  for (const char* text : {"", "us = 1", "[servers.other]\nb = 2\n"}) EXPECT_EQ(toml(text), "");
  EXPECT_FALSE(FindTomlEntry("servers = {}", kEntry).ok());
}

TEST(ConfigSplice, WhatIsNoSuchJsonIsRefused) {
  for (const char* text : {"{", "[]", "{} {}", "// c\n{}", "{\"a\": 1,}", "{\"servers\": 1}",
                           "{\"servers\": [\"us\"]}", "{\"servers\": {}, \"servers\": {}}",
                           "{\"servers\": {\"us\": 1, \"us\": 2}}", "\xff"}) {
    EXPECT_THAT(SetJson(text), HasSubstr("refused")) << text;
    EXPECT_THAT(RemoveJson(text), HasSubstr("refused")) << text;
  }
}

constexpr const char* kToml =
    "# mine\nmodel = \"x\" # [not.a.header]\nlong = \"\"\"\n[servers.us]\n\"\"\"\"\nlist = [\n  "
    "'[', # ]\n  "
    "{ a = \"]\" },\n]\n\n[servers.other]\ncommand = 'c'\n\n[[hooks]]\nx = 1\n";

TEST(ConfigSplice, ATomlEntryIsAddedReplacedAndRemoved) {
  EXPECT_EQ(SetToml(""), "[servers.us]\na = 1\n");
  const std::string set = SetToml(kToml);
  EXPECT_EQ(set, std::string(kToml) + "\n[servers.us]\na = 1\n");
  EXPECT_EQ(SetToml(set), set);
  EXPECT_EQ(RemoveToml(set), std::string(kToml) + "\n");
  EXPECT_EQ(RemoveToml(kToml), kToml);
  EXPECT_EQ(SetToml("[ servers . \"us\" ]\nb = 2\n[servers.us.env]\nc = 3\n[z]\nd = 4\n"),
            "[servers.us]\na = 1\n[z]\nd = 4\n");
  EXPECT_EQ(SetToml("a = 1\r\n[b]\r\nc = 2"), "a = 1\r\n[b]\r\nc = 2\n\n[servers.us]\na = 1\n");
}

TEST(ConfigSplice, CommentsBehindATomlEntryAreAboutWhatFollowsAndStay) {
  const std::string before = "# of us\n", after = "\n# of z\n\n[z] # z\nd = 4\n";
  const std::string ours =
      "[servers.us] # here\n# inside\nb = [\n  2, # two\n]\n\n# of env\n[servers.us.env]\nc = 3\n";
  EXPECT_EQ(SetToml(before + ours + after), before + "[servers.us]\na = 1\n" + after);
  EXPECT_EQ(RemoveToml(before + ours + after), before + after);
  EXPECT_EQ(SetToml("[servers.us]\n# last"), "[servers.us]\na = 1\n# last");
  EXPECT_EQ(RemoveToml("[servers.us]\r\nb = 2\r\n\r\n# last\r\n"), "\r\n# last\r\n");
  EXPECT_EQ(RemoveToml("[servers.us]\nb = 2\n# z\n[z]\n# env\n[servers.us.env]\nc = 3"),
            "# z\n[z]\n# env\n");
}

TEST(ConfigSplice, WhatIsNoSuchTomlIsRefused) {
  for (const char* text : {"[servers", "a", "a =", "= 1", "a = \"x", "a = \"\"\"x\"\"", "a = [1",
                           "a = 1]", "[a] b", "[[a]\n", "servers = {}", "servers.us.a = 1",
                           "[servers]\nus = {}\n", "[\"a\\u0062\"]", "\"a\nb\" = 1", "\xff"}) {
    EXPECT_THAT(SetToml(text), HasSubstr("refused")) << text;
    EXPECT_THAT(RemoveToml(text), HasSubstr("refused")) << text;
  }
}

}  // namespace
}  // namespace sandglass::cli
