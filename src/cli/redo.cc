// sandglass redo: takes an undo back.
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
    {"N", ValueKind::kCount, Arity::kOptional, "how many steps; default: 1"}};
constexpr RewindWords kWords{"redone", "would be redone"};

Status Run(const Arguments& arguments, Console& console) {
  const uint32_t count = arguments.Count(0, 1);
  TRY_ASSIGN(auto log, OpenLog(arguments, console));
  const undo::Force force = arguments.Has(kForceOption.name) ? undo::Force::kYes : undo::Force::kNo;
  if (arguments.Has(kDryRunOption.name)) {
    TRY_ASSIGN(auto plan, log->PlanRedo(count));
    return PrintPlan(plan, log->recovery(), kWords, force, console);
  }
  auto report = log->Redo(count, force);
  if (!report.ok()) {
    ExplainRefusal(log->PlanRedo(count), console);
    return report.error();
  }
  PrintRewind(*report, log->recovery(), kWords, console);
  return Ok();
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
    .options = kOptions,
    .operands = kOperands,
    .run = Run,
};

}  // namespace sandglass::cli
