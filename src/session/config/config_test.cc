#include "session/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>

#include "tests/support/must.h"
#include "tests/support/temp_workspace.h"

namespace sandglass::session::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Mistake(std::string_view text, Origin origin = Origin::kUserFile) {
  Config config;
  std::vector<Setting> settings;
  const Status applied = ApplyText(text, origin, config, settings);
  return applied.ok() ? "" : applied.error().message();
}

Config Applied(std::string_view user, std::string_view project = "") {
  Config config;
  std::vector<Setting> settings;
  EXPECT_EQ(ApplyText(user, Origin::kUserFile, config, settings).ok(), true);
  EXPECT_EQ(ApplyText(project, Origin::kProjectFile, config, settings).ok(), true);
  return config;
}

TEST(Toml, BecomesAFlatListInTheOrderOfLines) {
  const auto settings = ParseToml("top = 1\n[b]\nx = \"t\"\n[a]\ny = [\"1\", \"2\"]\nz.w = true\n");
  ASSERT_TRUE(settings.ok());
  ASSERT_EQ(settings->size(), 4u);
  EXPECT_EQ((*settings)[0].section, "");
  EXPECT_EQ((*settings)[1].section, "b");
  EXPECT_EQ((*settings)[2].value, TomlValue(std::vector<std::string>{"1", "2"}));
  EXPECT_EQ((*settings)[3].key, "z.w");
  EXPECT_EQ((*settings)[3].line, 6u);
}

TEST(Toml, WhatIsWrongIsToldWithItsLine) {
  for (const std::string_view text : {"\n[a\n", "a = \n", "a = 1\na = 2\n"}) {
    const auto settings = ParseToml(text);
    ASSERT_FALSE(settings.ok()) << text;
    EXPECT_THAT(settings.error().message(), HasSubstr("line "));
  }
}

TEST(Toml, KnowsItsKindsOfValues) {
  const auto value = [](const std::string& text) {
    const auto settings = ParseToml("x = " + text + " # comment\r\n");
    return settings.ok() ? settings->at(0).value : TomlValue(settings.error().message());
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(value("true"), TomlValue(true));
  EXPECT_EQ(value("-1_000"), TomlValue(int64_t{-1000}));
  EXPECT_EQ(value("+7"), TomlValue(int64_t{7}));
  EXPECT_EQ(value("1.5e3"), TomlValue(1500.0));
  EXPECT_EQ(value("\"a\\\"b\\u00e4\\n\""), TomlValue(std::string("a\"b\xC3\xA4\n")));
  EXPECT_EQ(value("'a\\b'"), TomlValue(std::string("a\\b")));
  EXPECT_EQ(value("[]"), TomlValue(Texts()));
  EXPECT_EQ(value("[ # one\n \"a\",\n 'b', ]"), TomlValue(Texts{"a", "b"}));
  EXPECT_EQ(value("[1]"), TomlValue(OtherValue{"a list of other things than texts"}));
  EXPECT_EQ(value("1979-05-27"), TomlValue(OtherValue{"a date or a time"}));
  for (const char* wrong : {"", "yes", "01", "1__0", "_1", "0x1F", "\"a", "'a", "[\"a\"", "[[1]]",
                            "{a = 1}", "\"\\q\"", "\"\\ud800\"", "\"\"\"a\"\"\"", "1 2", "[1 2]"})
    EXPECT_THAT(std::get<std::string>(value(wrong)), HasSubstr("line ")) << wrong;
}

TEST(Toml, SectionsAndKeysStandOnce) {
  EXPECT_FALSE(ParseToml("[a]\n[a]\n").ok());
  EXPECT_FALSE(ParseToml("[a]\nx = 1\n\"x\" = 2\n").ok());
  EXPECT_FALSE(ParseToml("[[a]]\n").ok());
  EXPECT_FALSE(ParseToml("[ ").ok());
  EXPECT_EQ(ParseToml("[ a . 'b' ]\nx = 1")->at(0).key, "b.x");
}

TEST(Toml, WhatIsNoTextIsRefusedBeforeItIsParsed) {
  for (const std::string_view text :
       {std::string_view("[\0a]\n", 5), std::string_view("a = \"\xFF\"\n"),
        std::string_view("a\x01 = 1")})
    EXPECT_EQ(ParseToml(text).error().code(), Code::kInvalid);
}

TEST(Toml, DepthAndSizeAreBounded) {
  std::string key = "a";
  for (int i = 0; i < 50'000; ++i) key += ".a";
  EXPECT_FALSE(ParseToml(key + " = 1").ok());
  EXPECT_FALSE(ParseToml("[" + key + "]").ok());
  EXPECT_FALSE(ParseToml("a = " + std::string(100'000, '[')).ok());
  EXPECT_EQ(ParseToml(std::string(kMaxTomlBytes + 1, '\n')).error().code(), Code::kLimit);
  EXPECT_FALSE(ParseToml("a = \"\"\"x\"\"\"").ok());
}

TEST(Config, TakesWhatTheUserSays) {
  const Config config = Applied(
      "[sandbox]\nmode = \"ephemeral\"\nmemory = \"2G\"\ncpus = 1.5\npids = 100\n"
      "read_only = [\"/opt\"]\n[undo]\nmax_step_count = 7\nmax_log_size_bytes = 1000\n"
      "on_oversize = \"refuse\"\nno_undo_for = [\"*.o\"]\n[symlinks]\npolicy = \"ignore\"\n"
      "[external_modifications]\npolicy = \"warn\"\n[gitignore]\nenabled = true\n");
  EXPECT_TRUE(config.sandbox.ephemeral);
  EXPECT_EQ(config.sandbox.memory_bytes, 2ull << 30);
  EXPECT_EQ(config.sandbox.cpus, 1.5);
  EXPECT_EQ(config.sandbox.pids, 100u);
  EXPECT_THAT(config.sandbox.read_only, ElementsAre("/opt"));
  EXPECT_EQ(config.undo_limits.max_steps, 7u);
  EXPECT_EQ(config.undo_limits.max_copied_bytes, 1000u);
  EXPECT_EQ(config.on_oversize, undo::OversizePolicy::kRefuse);
  EXPECT_THAT(config.unrecorded, ElementsAre("*.o"));
  EXPECT_EQ(config.symlinks, undo::SymlinkPolicy::kIgnore);
  EXPECT_EQ(config.external, undo::ExternalPolicy::kWarn);
  EXPECT_EQ(config.gitignore, undo::GitignoreMode::kSkipIgnored);
}

TEST(Config, AnUnknownKeyIsAnErrorWithASuggestion) {
  EXPECT_THAT(
      Mistake("[undo]\nmax_step_cuont = 5\n"),
      HasSubstr("line 2: [undo] has no key 'max_step_cuont'; did you mean 'max_step_count'?"));
  EXPECT_THAT(Mistake("[sandbx]\nmode = \"x\"\n"), HasSubstr("did you mean 'sandbox'?"));
  EXPECT_THAT(Mistake("mode = 1\n"), HasSubstr("stands in no section"));
  EXPECT_THAT(Mistake("[undo.deep]\nmax_step_count = 5\n"),
              HasSubstr("no key 'deep.max_step_count'"));
}

TEST(Config, AKeyWithoutEffectIsRefused) {
  EXPECT_THAT(Mistake("[vm]\nmemory_mb = 1\n"), HasSubstr("vm.memory_mb is not supported yet"));
  EXPECT_THAT(Mistake("[claude_code]\nenabled = true\n"), HasSubstr("not supported yet"));
  EXPECT_THAT(Mistake("[file_watcher]\nrecent_write_ttl_ms = 5\n"), HasSubstr("not supported yet"));
}

TEST(Config, EveryMistakeIsTold) {
  const std::string told = Mistake("[undo]\nx = 1\n[sandbox]\ncpus = -1\nmode = \"other\"\n");
  EXPECT_THAT(told, HasSubstr("line 2: "));
  EXPECT_THAT(told, HasSubstr("line 4: sandbox.cpus must be a number above 0, and is -1"));
  EXPECT_THAT(told, HasSubstr("one of \"persistent\", \"ephemeral\""));
}

TEST(Config, ValuesOfOtherTypesAreRefused) {
  for (const std::string_view text :
       {"[sandbox]\nmemory = \"2X\"\n", "[sandbox]\nmemory = 0\n",
        "[sandbox]\nmemory = \"99999999999G\"\n", "[sandbox]\npids = 1.5\n",
        "[sandbox]\nread_only = \"x\"\n", "[sandbox]\nread_only = [1]\n",
        "[sandbox]\nread_only = [\"\"]\n", "[gitignore]\nenabled = 1\n", "[sandbox]\ncpus = nan\n",
        "[sandbox]\nmode = 1979-05-27\n"})
    EXPECT_THAT(Mistake(text), HasSubstr(" must be ")) << text;
}

TEST(Config, AProjectCannotWeakenProtection) {
  for (const std::string_view text :
       {"[sandbox]\nread_write = [\"/\"]\n", "[gitignore]\nenabled = true\n",
        "[symlinks]\npolicy = \"ignore\"\n", "[undo]\nno_undo_for = [\"*\"]\n",
        "[undo]\nmax_step_count = 1\n", "[agent]\ncommand = [\"x\"]\n",
        "[external_modifications]\npolicy = \"warn\"\n"})
    EXPECT_THAT(Mistake(text, Origin::kProjectFile), HasSubstr("the user's file only")) << text;
}

TEST(Config, TheStricterLimitCounts) {
  EXPECT_EQ(
      Applied("[sandbox]\nmemory = \"2G\"\n", "[sandbox]\nmemory = \"4G\"\n").sandbox.memory_bytes,
      2ull << 30);
  EXPECT_EQ(
      Applied("[sandbox]\nmemory = \"2G\"\n", "[sandbox]\nmemory = \"1G\"\n").sandbox.memory_bytes,
      1ull << 30);
  EXPECT_EQ(Applied("", "[sandbox]\npids = 5\n").sandbox.pids, 5u);
  EXPECT_TRUE(Applied("[sandbox]\nmode = \"persistent\"\n", "[sandbox]\nmode = \"ephemeral\"\n")
                  .sandbox.ephemeral);
  EXPECT_TRUE(Applied("[sandbox]\nmode = \"ephemeral\"\n", "[sandbox]\nmode = \"persistent\"\n")
                  .sandbox.ephemeral);
  EXPECT_TRUE(Applied("", "[sandbox]\nmode = \"ephemeral\"\n").sandbox.ephemeral);
}

TEST(Config, SafeguardsAreReadAndAProjectCanOnlyMakeThemStricter) {
  const Config said = Applied(
      "[safeguards]\ndelete_threshold = 9\noverwrite_file_size_threshold = \"2M\"\n"
      "truncate_file_size_threshold = 5\nrename_over_existing = true\ntimeout_seconds = 7\n");
  EXPECT_TRUE(said.safeguards.enabled);
  EXPECT_EQ(said.safeguards.delete_count, 9u);
  EXPECT_EQ(said.safeguards.overwrite_bytes, 2u << 20);
  EXPECT_EQ(said.safeguards.truncate_bytes, 5u);
  EXPECT_TRUE(said.safeguards.rename_over);
  EXPECT_EQ(said.safeguards.timeout, std::chrono::seconds(7));
  EXPECT_FALSE(Applied("[safeguards]\nenabled = false\n").safeguards.enabled);
  // Also against what is built in.
  EXPECT_EQ(Applied("", "[safeguards]\ndelete_threshold = 1000\n").safeguards.delete_count,
            std::nullopt);
  EXPECT_EQ(Applied("", "[safeguards]\ndelete_threshold = 10\n").safeguards.delete_count, 10u);
  EXPECT_EQ(
      Applied("[safeguards]\ndelete_threshold = 1000\n", "[safeguards]\ndelete_threshold = 100\n")
          .safeguards.delete_count,
      100u);
  EXPECT_THAT(Mistake("[safeguards]\nenabled = false\n", Origin::kProjectFile),
              HasSubstr("the user's file only"));
  EXPECT_THAT(Mistake("[safeguards]\ntimeout_seconds = 86401\n"), HasSubstr("from 1 to 86400"));
}

TEST(Config, FW_09_TheWatchersSectionIsRead) {
  const Config config = Applied(
      "[file_watcher]\nenabled = false\ndebounce_ms = 250\nexclude_patterns = [\"*.log\"]\n"
      "use_gitignore = true\n");
  EXPECT_EQ(config.watching, Watching::kOff);
  EXPECT_EQ(config.watch.debounce, std::chrono::milliseconds(250));
  EXPECT_THAT(config.watch.exclude_patterns, ElementsAre("*.log"));
  EXPECT_EQ(config.watch.gitignore, undo::GitignoreMode::kSkipIgnored);
  for (const std::string_view text :
       {"[file_watcher]\ndebounce_ms = -1\n", "[file_watcher]\ndebounce_ms = 60001\n",
        "[file_watcher]\nenabled = \"yes\"\n", "[file_watcher]\nexclude_patterns = [1]\n"})
    EXPECT_THAT(Mistake(text), HasSubstr(" must be ")) << text;
}

TEST(Config, FW_10_TheWatchersDefaultsAreSane) {
  const Config config = Applied("");
  EXPECT_EQ(config.watching, std::nullopt);
  EXPECT_EQ(config.watch.policy, WatchPolicy::kBarrier);
  EXPECT_LE(config.watch.debounce, std::chrono::seconds(1));
  EXPECT_THAT(config.watch.exclude_patterns,
              ElementsAre(".git/objects", ".git/logs", ".git/refs", "node_modules"));
}

TEST(Config, TheTableIsSound) {
  std::set<std::string> names, sections;
  for (const KeySpec& spec : AllKeys()) {
    EXPECT_TRUE(names.insert(std::string(spec.section) + "." + std::string(spec.key)).second);
    sections.emplace(spec.section);
    EXPECT_TRUE(spec.support == Support::kNotYet || spec.apply != nullptr) << spec.key;
    EXPECT_EQ(spec.type == ValueType::kChoice, !spec.choices.empty()) << spec.key;
  }
  EXPECT_THAT(sections, ElementsAre("agent", "claude_code", "command_classifier",
                                    "external_modifications", "file_watcher", "gitignore",
                                    "safeguards", "sandbox", "symlinks", "undo", "vm"));
}

TEST(LoadConfig, ReadsBothFilesAndSaysWhereEachSettingIsFrom) {
  const test::TempWorkspace workspace;
  workspace.WriteFile("home/sandglass.toml", "[sandbox]\npids = 10\n[gitignore]\nenabled = true\n");
  workspace.WriteFile("sandglass.toml", "[sandbox]\npids = 5\n");
  const auto loaded = LoadConfig(workspace.Path("home/sandglass.toml"), workspace.project());
  ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
  EXPECT_EQ(loaded->config.sandbox.pids, 5u);
  ASSERT_EQ(loaded->settings.size(), 2u);
  EXPECT_EQ(loaded->settings[0].origin, Origin::kUserFile);
  EXPECT_EQ(loaded->settings[1].origin, Origin::kProjectFile);
  EXPECT_EQ(loaded->files.size(), 2u);
}

TEST(LoadConfig, MissingFilesSayNothingAndBadOnesAreNamed) {
  const test::TempWorkspace workspace;
  EXPECT_TRUE(LoadConfig("/nonexistent/sandglass.toml", workspace.project()).ok());
  EXPECT_TRUE(LoadConfig("", "").ok());
  workspace.WriteFile("sandglass.toml", "[sandbox]\nnone = 5\n");
  const auto loaded = LoadConfig("", workspace.project());
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message(), HasSubstr(workspace.Path("sandglass.toml")));
}

TEST(LoadConfig, AProjectsFileIsNeverReadThroughALink) {
  const test::TempWorkspace workspace;
  test::MustCall(::symlink("/etc/passwd", workspace.Path("sandglass.toml").c_str()), "symlink");
  const auto loaded = LoadConfig("", workspace.project());
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code(), Code::kOutsideRoot);
}

}  // namespace
}  // namespace sandglass::session::config
