#include "cli/arguments.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"

namespace sandglass::cli {
namespace {

constexpr Option kLoud{.name = "loud", .letter = 'l', .help = "say it loud"};
constexpr Option kOptions[] = {kLoud, kProjectOption, kHelpOption};
constexpr Operand kOneThenMany[] = {{"STEP", ValueKind::kStep, Arity::kOne, ""},
                                    {"PATH", ValueKind::kPath, Arity::kOneOrMore, ""}};
constexpr Operand kMaybeCount[] = {{"N", ValueKind::kCount, Arity::kOptional, ""}};
constexpr Operand kShell[] = {{"SHELL", ValueKind::kShell, Arity::kOne, ""}};

Command With(std::span<const Operand> operands) {
  return {.name = "try",
          .summary = "",
          .description = "",
          .options = kOptions,
          .operands = operands,
          .run = nullptr};
}
const Command kPlain = With({}), kRestoreLike = With(kOneThenMany), kUndoLike = With(kMaybeCount),
              kShellLike = With(kShell);

Result<Arguments> Parse(const Command& command, const std::vector<std::string_view>& words) {
  return Arguments::Parse(command, words);
}

std::string Refusal(const Command& command, const std::vector<std::string_view>& words) {
  const auto parsed = Parse(command, words);
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.error().code(), Code::kInvalid);
  return parsed.error().message();
}

using Words = std::vector<std::string>;

TEST(Arguments, OptionsAndOperandsMayMix) {
  const auto parsed = Parse(kRestoreLike, {"3", "--loud", "a", "-p", "dir", "b"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->operands(), (Words{"3", "a", "b"}));
  EXPECT_EQ(parsed->Step(0), StepId{3});
  EXPECT_TRUE(parsed->Has("loud"));
  EXPECT_EQ(parsed->Value("project"), "dir");
  EXPECT_FALSE(parsed->Has("help"));
  EXPECT_EQ(parsed->Value("help"), "");
}

TEST(Arguments, AValueMayStandBehindASpaceAnEqualsSignOrTheLetter) {
  for (const std::vector<std::string_view>& words :
       {std::vector<std::string_view>{"--project", "x=y"},
        {"--project=x=y"},
        {"-p", "x=y"},
        {"-px=y"}}) {
    const auto parsed = Parse(kPlain, words);
    ASSERT_TRUE(parsed.ok()) << words.front();
    EXPECT_EQ(parsed->Value("project"), "x=y");
  }
}

TEST(Arguments, TheLastValueCounts) {
  EXPECT_EQ(Parse(kPlain, {"-pa", "-pb"})->Value("project"), "b");
}

TEST(Arguments, NegativeNumbersAreOperands) {
  const auto parsed = Parse(kRestoreLike, {"-12", "a"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->Step(0), StepId{-12});
}

TEST(Arguments, BehindTwoDashesAllAreOperands) {
  const auto parsed = Parse(kRestoreLike, {"1", "--", "--loud", "--", "-x"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->operands(), (Words{"1", "--loud", "--", "-x"}));
  EXPECT_FALSE(parsed->Has("loud"));
}

TEST(Arguments, ALoneDashIsAnOperand) {
  EXPECT_EQ(Parse(kRestoreLike, {"1", "-"})->operands().back(), "-");
}

TEST(Arguments, AMissingCountIsTheDefault) {
  EXPECT_EQ(Parse(kUndoLike, {})->Count(0, 7), 7u);
  EXPECT_EQ(Parse(kUndoLike, {"3"})->Count(0, 7), 3u);
}

TEST(Arguments, WrongOptionsAreNamed) {
  EXPECT_EQ(Refusal(kPlain, {"--quiet"}), "unknown option --quiet; see `sandglass help try`");
  EXPECT_EQ(Refusal(kPlain, {"--quiet=1"}), "unknown option --quiet; see `sandglass help try`");
  EXPECT_EQ(Refusal(kPlain, {"-q"}), "unknown option -q; see `sandglass help try`");
  EXPECT_EQ(Refusal(kPlain, {"--lou"}),
            "unknown option --lou (did you mean --loud?); see `sandglass help try`");
  EXPECT_EQ(Refusal(kPlain, {"--loud=yes"}), "--loud takes no value; see `sandglass help try`");
  EXPECT_EQ(Refusal(kPlain, {"-lp"}), "--loud takes no value; see `sandglass help try`");
  EXPECT_EQ(Refusal(kPlain, {"--project"}),
            "--project needs a value: DIR; see `sandglass help try`");
  EXPECT_EQ(Refusal(kRestoreLike, {"--project", "--", "1", "x"}),
            "--project needs a value: DIR; see `sandglass help try`");
  EXPECT_EQ(Refusal(kPlain, {"--project=--"}), "");
  EXPECT_EQ(Refusal(kPlain, {"--project="}),
            "the value of --project must not be empty; see `sandglass help try`");
}

TEST(Arguments, WrongOperandsAreNamed) {
  EXPECT_EQ(Refusal(kPlain, {"x"}), "unexpected argument 'x'; see `sandglass help try`");
  EXPECT_EQ(Refusal(kUndoLike, {"1", "2"}), "unexpected argument '2'; see `sandglass help try`");
  EXPECT_EQ(Refusal(kRestoreLike, {}), "STEP is missing; see `sandglass help try`");
  EXPECT_EQ(Refusal(kRestoreLike, {"1"}), "PATH is missing; see `sandglass help try`");
  EXPECT_EQ(Refusal(kRestoreLike, {"1", ""}),
            "PATH must not be empty, not ''; see `sandglass help try`");
  EXPECT_EQ(Refusal(kShellLike, {"tcsh"}),
            "SHELL must be one of bash, zsh, fish, not 'tcsh'; see `sandglass help try`");
}

TEST(Arguments, NumbersAreWholeAndInRange) {
  for (const std::string_view wrong :
       {"0", "-1", "1000001", "1.5", "1x", "", "99999999999999999999"}) {
    EXPECT_NE(Refusal(kUndoLike, {wrong}), "") << wrong;
  }
  for (const std::string_view wrong : {"one", "1x", "0x1", "9223372036854775808", ""}) {
    EXPECT_NE(Refusal(kRestoreLike, {wrong, "a"}), "") << wrong;
  }
  EXPECT_EQ(Refusal(kUndoLike, {"1000000"}), "");
  EXPECT_EQ(Refusal(kRestoreLike, {"-9223372036854775808", "a"}), "");
}

TEST(Arguments, AnOptionalValueStandsBehindAnEqualsSign) {
  static constexpr Option kReport[] = {{.name = "json",
                                        .value = ValueKind::kPath,
                                        .value_name = "FILE",
                                        .help = "report",
                                        .need = ValueNeed::kOptional}};
  static constexpr Operand kProgram[] = {{"COMMAND", ValueKind::kWords, Arity::kOneOrMore, ""}};
  static constexpr Command kRunLike{
      .name = "run", .options = kReport, .operands = kProgram, .run = nullptr};
  const auto without = Parse(kRunLike, {"--json", "make", "all"});
  EXPECT_TRUE(without->Has("json"));
  EXPECT_EQ(without->Value("json"), "");
  EXPECT_EQ(without->operands().size(), 2u);
  EXPECT_EQ(Parse(kRunLike, {"--json=file", "make"})->Value("json"), "file");
}

TEST(Arguments, HelpNeedsNoOperands) { EXPECT_TRUE(Parse(kRestoreLike, {"--help"})->Has("help")); }

// What every command promises to its users.
TEST(CommandTable, EveryCommandIsComplete) {
  for (const Command* command : AllCommands()) {
    SCOPED_TRACE(command->name);
    EXPECT_EQ(FindCommand(command->name), command);
    EXPECT_NE(command->run, nullptr);
    EXPECT_FALSE(command->summary.empty() || command->summary.ends_with('.'));
    EXPECT_TRUE(command->description.ends_with('.') || command->name == "completion");
    EXPECT_TRUE(Parse(*command, {"-h"}).ok());
    for (size_t i = 0; i + 1 < command->operands.size(); ++i) {
      const Arity arity = command->operands[i].arity, next = command->operands[i + 1].arity;
      EXPECT_TRUE(arity == Arity::kOne || (arity == Arity::kOptional && next == arity))
          << "only the last ones may be missing, and only the last many";
    }
  }
  EXPECT_EQ(FindCommand("frobnicate"), nullptr);
}

// A command that runs a program may have several projects, and its output is not ours: two options have more to say there.
TEST(CommandTable, AnOptionMeansTheSameEverywhere) {
  for (const Command* a : AllCommands()) {
    for (const Command* b : AllCommands()) {
      const bool alike = a->exit_codes == b->exit_codes;
      for (const Option& x : a->options) {
        for (const Option& y : b->options) {
          if (x.name == y.name && alike) EXPECT_EQ(x.help, y.help) << x.name;
          if (x.letter != '\0' && x.letter == y.letter) EXPECT_EQ(x.name, y.name) << x.letter;
        }
      }
    }
  }
}

}  // namespace
}  // namespace sandglass::cli
