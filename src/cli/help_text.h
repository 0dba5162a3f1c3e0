// Help made from the tables. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "cli/option_table.h"

namespace sandglass::cli {

// What the program is and is not, in paragraphs: the beginning of the general help and of the
// manual page.
extern const std::string_view kIntroduction;

// "undo [N]"
std::string Synopsis(const Command& command);
// "run [OPTIONS] [--] COMMAND..."
std::string Usage(const Command& command);
// "-p, --project DIR"
std::string OptionText(const Option& option);

// `sandglass help`
std::string GeneralHelp();
// `sandglass help COMMAND`
std::string CommandHelp(const Command& command);
// docs/man/sandglass.1
std::string ManualPage();
// docs/man/sandglass-COMMAND.1
std::string ManualPage(const Command& command);

}  // namespace sandglass::cli
