// sandglass undo: takes the newest steps back.
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/rewind_output.h"

namespace sandglass::cli {
namespace {

Status Run(const Arguments& arguments, Console& console) {
  return RunRewind(arguments, {.kind = session::RewindKind::kUndo, .count = arguments.Count(0, 1)},
                   console);
}

}  // namespace

constinit const Command kUndoCommand{
    .name = "undo",
    .summary = "take back the newest steps",
    .description =
        "Brings the project back to what it was before the newest N steps that changed something: "
        "contents, names, links, "
        "modes, owners, modification times, extended attributes. Steps without changes in between "
        "go along and "
        "do not count. A step that was interrupted by a crash counts as the newest.\n\n"
        "If someone changed a path since, nothing is touched and the exit code is 3; the message "
        "names the paths. "
        "What no step recorded is never deleted. What is undone can be redone until the next step "
        "changes something.\n\n"
        "While a command runs in the project's world, the session that runs it does this. Where "
        "its processes are in the way, "
        "nothing is touched and the message names them; --stop ends them first.",
    .options = kRewindOptions,
    .operands = kCountOperand,
    .run = Run,
};

}  // namespace sandglass::cli
