// sandglass undo: takes the newest steps back.
#include <string>

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
constexpr RewindWords kWords{"undone", "would be undone"};

// The library says what is wrong; what a person can do about it are words of this program.
Error WithNextStep(const Error& error) {
  const bool incomplete = error.code() == Code::kUnprotected || error.code() == Code::kCorrupt;
  if (!incomplete) return error;
  return Error(error.code(),
               error.message() +
                   "\nundo --force takes back what was kept and leaves the rest as it is; restore "
                   "brings back single paths",
               error.sys_errno());
}

Status Run(const Arguments& arguments, Console& console) {
  const uint32_t count = arguments.Count(0, 1);
  TRY_ASSIGN(auto log, OpenLog(arguments, console));
  const undo::Force force = arguments.Has(kForceOption.name) ? undo::Force::kYes : undo::Force::kNo;
  if (arguments.Has(kDryRunOption.name)) {
    TRY_ASSIGN(auto plan, log->PlanRollback(count));
    return PrintPlan(plan, log->recovery(), kWords, force, console);
  }
  auto report = log->Rollback(count, force);
  if (!report.ok()) {
    ExplainRefusal(log->PlanRollback(count), console);
    return WithNextStep(report.error());
  }
  PrintRewind(*report, log->recovery(), kWords, console);
  return Ok();
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
        "do not count.\n\n"
        "If someone changed a path since, nothing is touched and the exit code is 3; the message "
        "names the paths. "
        "What no step recorded is never deleted. What is undone can be redone until the next step "
        "begins.",
    .options = kOptions,
    .operands = kOperands,
    .run = Run,
};

}  // namespace sandglass::cli
