#include "cli/rewind_output.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "cli/reports.h"

namespace sandglass::cli {
namespace {

Json ReportToJson(const undo::RewindReport& report, const undo::RecoveryReport& recovery) {
  Json json = ToJson(report);
  if (recovery.recovered || recovery.interrupted_rewind) json.Set("recovery", ToJson(recovery));
  return json;
}

bool IsEmpty(const undo::RewindReport& report) {
  return report.steps.empty() && report.changes.empty() && report.conflicts.empty();
}

std::string Heading(const undo::RewindReport& report, std::string_view verb) {
  if (IsEmpty(report)) return "nothing to do: everything is so already\n";
  if (report.steps.empty()) return fmt::format("a new step {}\n", verb);
  return fmt::format("{} {}: {}\n", report.steps.size() == 1 ? "step" : "steps",
                     StepsText(report.steps), verb);
}

}  // namespace

void PrintRewind(const undo::RewindReport& report, const undo::RecoveryReport& recovery,
                 const RewindWords& words, Console& console) {
  if (console.wants_json())
    return console.PrintJson(ReportToJson(report, recovery).Set("dry_run", false));
  console.Print(Heading(report, words.done) + RewindText(report));
}

Status PrintPlan(const undo::RewindReport& plan, const undo::RecoveryReport& recovery,
                 const RewindWords& words, undo::Force force, Console& console) {
  if (console.wants_json())
    console.PrintJson(ReportToJson(plan, recovery).Set("dry_run", true));
  else
    console.Print(Heading(plan, words.planned) + RewindText(plan));
  if (plan.conflicts.empty() || force == undo::Force::kYes) return Ok();
  console.KeepOutput();
  return Error(undo::RefusalCode(plan.conflicts), "without --force it would be refused");
}

void ExplainRefusal(const Result<undo::RewindReport>& plan, Console& console) {
  if (!plan.ok() || plan->conflicts.empty()) return;
  console.AddErrorDetail("conflicts", ToJson(plan->conflicts));
}

}  // namespace sandglass::cli
