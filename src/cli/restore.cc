// sandglass restore: single paths as they were before a step.
#include <utility>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/rewind_output.h"

namespace sandglass::cli {
namespace {

constexpr Operand kOperands[] = {
    {"STEP", ValueKind::kStep, Arity::kOne, "the step's number, as history shows it"},
    {"PATH", ValueKind::kPath, Arity::kOneOrMore,
     "a file or folder: absolute, or relative to the current folder, or to the project if that is "
     "elsewhere"},
};

Status Run(const Arguments& arguments, Console& console) {
  session::RewindRequest request{.kind = session::RewindKind::kRestore};
  request.step = arguments.Step(0);
  request.paths.assign(arguments.operands().begin() + 1, arguments.operands().end());
  return RunRewind(arguments, std::move(request), console);
}

}  // namespace

constinit const Command kRestoreCommand{
    .name = "restore",
    .summary = "bring single paths back to what they were before a step",
    .description =
        "Makes each PATH (a folder with everything below it) what it was before STEP, whatever "
        "later steps did to it, and "
        "leaves all else alone. This is a step of its own and can be undone; where everything is "
        "so already, no step is made.\n\n"
        "If someone changed a path since, nothing is touched and the exit code is 3.",
    .options = kRewindOptions,
    .operands = kOperands,
    .run = Run,
};

}  // namespace sandglass::cli
