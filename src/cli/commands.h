// Every command of the program: one file each, which holds its table and what it does.
#pragma once

#include <span>
#include <string_view>

#include "cli/option_table.h"

namespace sandglass::cli {

extern const Command kRunCommand;
extern const Command kShellCommand;
extern const Command kHistoryCommand;
extern const Command kShowCommand;
extern const Command kDiffCommand;
extern const Command kUndoCommand;
extern const Command kRedoCommand;
extern const Command kRestoreCommand;
extern const Command kApproveCommand;
extern const Command kStatusCommand;
extern const Command kDoctorCommand;
extern const Command kDiscardCommand;
extern const Command kConfigCommand;
extern const Command kServeCommand;
extern const Command kMcpCommand;
extern const Command kApiCommand;
extern const Command kCompletionCommand;
extern const Command kVersionCommand;
extern const Command kHelpCommand;

// In the order in which help lists them.
std::span<const Command* const> AllCommands();
// Null: there is none of that name.
const Command* FindCommand(std::string_view name);

}  // namespace sandglass::cli
