// The log of a session: JSON Lines on the error stream, asked for by --log-level.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "tests/session/sandglass_fixture.h"

namespace sandglass::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct LogLine {
  std::string level, component, message;
  std::optional<int64_t> step;
};

class SessionLog : public SandglassFixture {
 protected:
  Ended RunWith(const std::string& level, const std::string& script) {
    return Sandglass({"--log-level=" + level, "run", "--summary", "--", "sh", "-c", script});
  }

  static std::string Text(const Json& object, std::string_view key) {
    const Json* value = object.Find(key);
    const std::string* text = value == nullptr ? nullptr : value->AsString();
    EXPECT_NE(text, nullptr) << key << " is missing in " << WriteJson(object);
    return text == nullptr ? "" : *text;
  }
  // Each line must be an object with what every line has.
  static std::vector<LogLine> Parse(const std::string& text) {
    std::vector<LogLine> lines;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      EXPECT_NE(end, std::string::npos) << "a line has no end";
      const auto object = ParseJson(text.substr(at, end - at));
      EXPECT_TRUE(object.ok()) << text.substr(at, end - at);
      if (!object.ok() || end == std::string::npos) break;
      EXPECT_THAT(Text(*object, "timestamp"), HasSubstr("T"));
      const Json* step = object->Find("step_id");
      lines.push_back({Text(*object, "level"), Text(*object, "component"), Text(*object, "message"),
                       step == nullptr ? std::nullopt : step->AsInt()});
      at = end + 1;
    }
    return lines;
  }
};

TEST_F(SessionLog, OB_01_LinesAreJsonWithTheRequiredFields) {
  const Ended ran = RunWith("trace", "touch made");
  EXPECT_EQ(ran.exit_code, 0);
  const auto lines = Parse(ran.err);
  EXPECT_GE(lines.size(), 4u) << ran.err;
  for (const LogLine& line : lines) EXPECT_NE(line.component, "") << line.message;
}

TEST_F(SessionLog, OB_01_NotesAndFailuresAreLinesToo) {
  const Ended failed = Sandglass({"--log-level", "info", "run", "--no-such-option", "--", "true"});
  EXPECT_EQ(failed.exit_code, 125);
  const auto lines = Parse(failed.err);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].level, "error");
  EXPECT_THAT(Parse(RunWith("info", "exit 3").err), Not(IsEmpty()));
}

TEST_F(SessionLog, OB_03_LinesOfAStepCarryItsId) {
  for (const int64_t step : {1, 2}) {
    size_t of_step = 0;
    for (const LogLine& line : Parse(RunWith("info", "touch made" + std::to_string(step)).err)) {
      if (line.message == "world started") continue;
      EXPECT_EQ(line.step, step) << line.message;
      ++of_step;
    }
    EXPECT_EQ(of_step, 4u) << "opened, ended, closed, and the summary";
  }
}

TEST_F(SessionLog, OB_04_NoMessageOfTheChannelReachesIt) {
  const Ended ran = RunWith("trace", "echo secret output; read line; echo more");
  EXPECT_EQ(ran.out, "secret output\nmore\n");
  for (const char* of_protocol : {"step_started", "step_completed", "\"type\"", "\"data\"",
                                  "\\\"type", "secret output\\n", "base64"})
    EXPECT_THAT(ran.err, Not(HasSubstr(of_protocol)));
}

TEST_F(SessionLog, OB_05_TheLevelFilters) {
  const auto levels_at = [&](const std::string& level) {
    std::vector<std::string> levels;
    for (const LogLine& line : Parse(RunWith(level, "touch made; rm made").err))
      levels.push_back(line.level);
    return levels;
  };
  using ::testing::Contains;
  using ::testing::Each;
  EXPECT_THAT(levels_at("debug"), Contains("debug"));
  EXPECT_THAT(levels_at("info"), ::testing::AllOf(Contains("info"), Not(Contains("debug"))));
  EXPECT_THAT(levels_at("warn"), Each("warn"));
  EXPECT_THAT(levels_at("error"), IsEmpty());
  const Ended wrong = RunWith("loud", "touch wrong");
  EXPECT_EQ(wrong.exit_code, 125);
  EXPECT_THAT(wrong.err, HasSubstr("trace, debug, info, warn or error"));
  EXPECT_FALSE(workspace_.Exists("wrong"));
}

TEST_F(SessionLog, WithoutTheOptionThereIsNone) { EXPECT_EQ(Shell("touch made").err, ""); }

}  // namespace
}  // namespace sandglass::test
