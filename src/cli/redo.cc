// sandglass redo: takes an undo back.
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/rewind_output.h"

namespace sandglass::cli {
namespace {

Status Run(const Arguments& arguments, Console& console) {
  return RunRewind(arguments, {.kind = session::RewindKind::kRedo, .count = arguments.Count(0, 1)},
                   console);
}

}  // namespace

constinit const Command kRedoCommand{
    .name = "redo",
    .summary = "do again what undo took back",
    .description =
        "Does the last N undone steps that changed something again; steps without changes go "
        "along, so that it leads back to where undo N came from. Possible until the next step "
        "begins. If someone changed a path since, nothing is touched and the exit code is 3. What "
        "recovery took back after a crash can be "
        "redone as well.",
    .options = kRewindOptions,
    .operands = kCountOperand,
    .run = Run,
};

}  // namespace sandglass::cli
