#include "cli/commands.h"

#include <algorithm>

namespace sandglass::cli {
namespace {

constexpr const Command* kCommands[] = {
    &kRunCommand,    &kShellCommand,      &kHistoryCommand, &kShowCommand,    &kDiffCommand,
    &kUndoCommand,   &kRedoCommand,       &kRestoreCommand, &kApproveCommand, &kStatusCommand,
    &kDoctorCommand, &kDiscardCommand,    &kConfigCommand,  &kServeCommand,   &kMcpCommand,
    &kApiCommand,    &kCompletionCommand, &kVersionCommand, &kHelpCommand,
};

}  // namespace

std::span<const Command* const> AllCommands() { return kCommands; }

const Command* FindCommand(std::string_view name) {
  const auto* found =
      std::ranges::find(kCommands, name, [](const Command* command) { return command->name; });
  return found == std::end(kCommands) ? nullptr : *found;
}

}  // namespace sandglass::cli
