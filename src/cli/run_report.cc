#include "cli/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "cli/reports.h"
#include "undo/report_json.h"

namespace sandglass::cli {
namespace {

undo::ChangeCounts CountsOf(const std::vector<undo::Change>& changes) {
  undo::ChangeCounts counts;
  for (const undo::Change& change : changes) {
    switch (change.kind) {
      case undo::ChangeKind::kCreated:
        ++counts.created;
        break;
      case undo::ChangeKind::kModified:
        ++counts.modified;
        break;
      case undo::ChangeKind::kDeleted:
        ++counts.deleted;
        break;
      case undo::ChangeKind::kRenamed:
        ++counts.renamed;
        break;
    }
  }
  return counts;
}

ReportedProject Find(const std::vector<ReportedProject>& projects, const std::string& path) {
  const auto found = std::ranges::find(projects, path, &ReportedProject::path);
  return found == projects.end() ? ReportedProject{.path = path} : *found;
}

// Nobody should take the undo of a part for a whole one.
std::string UndoText(undo::Protection protection, const ReportedProject& project) {
  if (protection != undo::Protection::kFull)
    return fmt::format("; not recorded in full: `{} --force` takes back what was kept",
                       project.undo_command);
  return fmt::format("; `{}` takes {} back", project.undo_command,
                     project.is_filtered ? "what was recorded of it" : "it");
}

std::string SummaryLine(const session::CommandReport& report, const session::ProjectStep& done,
                        const ReportedProject& project) {
  const std::string where = project.named ? fmt::format(" in {}", PrintableName(project.path)) : "";
  std::string text =
      fmt::format("step {}{}: {}", report.step.value, where, CountsText(CountsOf(done.changes)));
  if (const std::string flagged = FlagsText(done.changes); !flagged.empty())
    text += fmt::format("; look at {}", flagged);
  return text + UndoText(report.protection, project);
}

Json ToJson(const session::ProjectStep& step, const ReportedProject& project) {
  const undo::ChangeCounts counts = CountsOf(step.changes);
  Json changes = Json::Array();
  for (const undo::Change& change : step.changes) changes.Append(undo::ToJson(change));
  return Json::Object({{"project", BytesToJson(step.project)},
                       {"counts", Json::Object({{"created", counts.created},
                                                {"modified", counts.modified},
                                                {"deleted", counts.deleted},
                                                {"renamed", counts.renamed}})},
                       {"changes", std::move(changes)},
                       {"flagged", FlagsToJson(step.changes)},
                       {"undo", BytesToJson(project.undo_command)}});
}

}  // namespace

std::vector<std::string> SummaryLines(const session::CommandReport& report,
                                      const std::vector<ReportedProject>& projects) {
  std::vector<std::string> lines;
  for (const session::ProjectStep& step : report.projects) {
    if (!step.changes.empty())
      lines.push_back(SummaryLine(report, step, Find(projects, step.project)));
  }
  if (lines.empty()) lines.push_back(fmt::format("step {}: no changes", report.step.value));
  return lines;
}

Json ReportToJson(const session::CommandReport& report,
                  const std::vector<ReportedProject>& projects) {
  Json steps = Json::Array();
  for (const session::ProjectStep& step : report.projects)
    steps.Append(ToJson(step, Find(projects, step.project)));
  Json warnings = Json::Array();
  for (const std::string& warning : report.warnings) warnings.Append(BytesToJson(warning));
  const control::Outcome& outcome = report.outcome;
  Json json = Json::Object({{"step", report.step.value},
                            {"ending", control::EndingName(outcome.ending)},
                            {"exit_code", outcome.exit_code},
                            {"protected", report.protection == undo::Protection::kFull}});
  json.Set("signal", outcome.signal ? Json(*outcome.signal) : Json());
  json.Set("message", outcome.error.empty() ? Json() : BytesToJson(outcome.error));
  return json.Set("projects", std::move(steps)).Set("warnings", std::move(warnings));
}

}  // namespace sandglass::cli
