#include "cli/help_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "cli/commands.h"

namespace sandglass::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HelpText, NamesEveryCommandAndHowToBegin) {
  const std::string help = GeneralHelp();
  for (const Command* command : AllCommands())
    EXPECT_THAT(help, HasSubstr("\n  " + Synopsis(*command) + " "));
  EXPECT_THAT(help, HasSubstr("sandglass run -- COMMAND"));
}

TEST(HelpText, NamesEveryOptionThatIsNotHidden) {
  for (const Command* command : AllCommands()) {
    const std::string help = CommandHelp(*command);
    for (const Option& option : command->options) {
      const bool shown = option.visibility == Visibility::kShown;
      EXPECT_EQ(help.find("--" + std::string(option.name)) != std::string::npos, shown)
          << command->name << " --" << option.name;
    }
  }
}

TEST(HelpText, FitsATerminal) {
  for (const Command* command : AllCommands()) {
    std::istringstream lines(CommandHelp(*command) + GeneralHelp());
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(HelpText, SynopsisShowsWhatMayBeMissing) {
  EXPECT_EQ(Synopsis(kUndoCommand), "undo [N]");
  EXPECT_EQ(Synopsis(kRestoreCommand), "restore STEP PATH...");
  EXPECT_EQ(OptionText(kProjectOption), "-p, --project DIR");
  EXPECT_EQ(OptionText(kJsonOption), "--json");
}

TEST(ManualPage, HoldsNoBareHyphenAndNoHiddenOption) {
  const std::string page = ManualPage();
  const std::string body = page.substr(page.find(".SH NAME"));
  for (size_t at = body.find('-'); at != std::string::npos; at = body.find('-', at + 1)) {
    EXPECT_EQ(body[at - 1], '\\') << body.substr(at - 10, 20);
  }
  EXPECT_THAT(body, Not(HasSubstr("\\-\\-man")));
  EXPECT_THAT(body, HasSubstr(".SS sandglass restore STEP PATH..."));
}

TEST(ManualPage, TheCommittedOneIsUpToDate) {
  std::ifstream file(SANDGLASS_MANUAL_PAGE, std::ios::binary);
  const std::string committed{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(committed, ManualPage()) << "run `sandglass help --man > docs/man/sandglass.1`";
}

}  // namespace
}  // namespace sandglass::cli
