// sandglass restore: single paths as they were before a step.
#include <span>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/rewind_output.h"
#include "cli/store_access.h"

namespace sandglass::cli {
namespace {

constexpr Option kOptions[] = {kForceOption, kDryRunOption, kProjectOption,
                               kStoreOption, kJsonOption,   kHelpOption};
constexpr Operand kOperands[] = {
    {"STEP", ValueKind::kStep, Arity::kOne, "the step's number, as history shows it"},
    {"PATH", ValueKind::kPath, Arity::kOneOrMore, "a file or folder, relative to the project"},
};
constexpr RewindWords kWords{"made by this restore", "would be made"};

Status Run(const Arguments& arguments, Console& console) {
  TRY_ASSIGN(auto log, OpenLog(arguments, console));
  const undo::Force force = arguments.Has(kForceOption.name) ? undo::Force::kYes : undo::Force::kNo;
  const auto paths = std::span(arguments.operands()).subspan(1);
  if (arguments.Has(kDryRunOption.name)) {
    TRY_ASSIGN(auto plan, log->PlanRestore(arguments.Step(0), paths));
    return PrintPlan(plan, log->recovery(), kWords, force, console);
  }
  auto report = log->Restore(arguments.Step(0), paths, force);
  if (!report.ok()) {
    ExplainRefusal(log->PlanRestore(arguments.Step(0), paths), console);
    return report.error();
  }
  PrintRewind(*report, log->recovery(), kWords, console);
  return Ok();
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
    .options = kOptions,
    .operands = kOperands,
    .run = Run,
};

}  // namespace sandglass::cli
