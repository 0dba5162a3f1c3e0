#include "cli/help_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

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

std::vector<std::string> AllManualPages() {
  std::vector<std::string> pages = {ManualPage()};
  for (const Command* command : AllCommands()) pages.push_back(ManualPage(*command));
  return pages;
}

TEST(ManualPage, HoldsNoBareHyphenAndNoHiddenOption) {
  for (const std::string& page : AllManualPages()) {
    const std::string body = page.substr(page.find(".SH NAME"));
    for (size_t at = body.find('-'); at != std::string::npos; at = body.find('-', at + 1)) {
      EXPECT_EQ(body[at - 1], '\\') << body.substr(at - 10, 20);
    }
    EXPECT_THAT(body, Not(HasSubstr("\\-\\-man")));
  }
}

TEST(ManualPage, OfACommandHasItsOptionsAndTheGeneralOneNamesIt) {
  const std::string page = ManualPage(kRestoreCommand);
  EXPECT_THAT(page, HasSubstr(".SH NAME\nsandglass\\-restore \\- bring single paths back"));
  EXPECT_THAT(page, HasSubstr(".B sandglass\nrestore STEP PATH... [OPTIONS]\n"));
  EXPECT_THAT(page, HasSubstr(".B \\-n, \\-\\-dry\\-run\n"));
  EXPECT_THAT(ManualPage(), HasSubstr(".B sandglass\\-restore(1)\n"));
}

std::string Committed(const std::string& page) {
  std::ifstream file(SANDGLASS_MANUAL_PAGES "/" + page, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ManualPage, TheCommittedOnesAreUpToDate) {
  EXPECT_EQ(Committed("sandglass.1"), ManualPage()) << "run tools/manual_pages";
  for (const Command* command : AllCommands()) {
    const std::string page = "sandglass-" + std::string(command->name) + ".1";
    EXPECT_EQ(Committed(page), ManualPage(*command)) << page << ": run tools/manual_pages";
  }
}

TEST(ManualPage, ThereIsNoneOfACommandThatIsGone) {
  const std::filesystem::directory_iterator pages(SANDGLASS_MANUAL_PAGES);
  EXPECT_EQ(std::distance(begin(pages), end(pages)), std::ssize(AllCommands()) + 1);
}

}  // namespace
}  // namespace sandglass::cli
