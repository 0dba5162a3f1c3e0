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

std::string Heading(const undo::RewindReport& report, std::string_view verb) {
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

void PrintPlan(const undo::RewindReport& plan, const undo::RecoveryReport& recovery,
               const RewindWords& words, Console& console) {
  if (console.wants_json())
    return console.PrintJson(ReportToJson(plan, recovery).Set("dry_run", true));
  console.Print(Heading(plan, words.planned) + RewindText(plan));
  if (!plan.conflicts.empty()) console.Print("without --force it would be refused\n");
}

void ExplainRefusal(const Result<undo::RewindReport>& plan, Console& console) {
  if (!plan.ok() || plan->conflicts.empty()) return;
  console.AddErrorDetail("conflicts", ToJson(plan->conflicts));
}

}  // namespace sandglass::cli
