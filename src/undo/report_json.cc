#include "undo/report_json.h"

#include <utility>

namespace sandglass::undo {
namespace {

Json PathsToJson(const std::vector<std::string>& paths) {
  Json list = Json::Array();
  for (const std::string& path : paths) list.Append(BytesToJson(path));
  return list;
}

Json TextsToJson(const std::vector<std::string>& texts) {
  Json list = Json::Array();
  for (const std::string& text : texts) list.Append(text);
  return list;
}

// null: a damaged step does not tell.
Json TimeToJson(Instant at) { return at.ns != 0 ? Json(at.ns) : Json(); }

}  // namespace

Json ToJson(const StepInfo& step) {
  return Json::Object({{"step_id", step.id.value},
                       {"kind", KindName(step.kind)},
                       {"label", BytesToJson(step.label)},
                       {"opened_ns", TimeToJson(step.opened)},
                       {"closed_ns", TimeToJson(step.closed)},
                       {"damaged", step.damaged},
                       {"protected", step.protection == Protection::kFull},
                       {"created", step.counts.created},
                       {"modified", step.counts.modified},
                       {"deleted", step.counts.deleted},
                       {"renamed", step.counts.renamed},
                       {"copied_bytes", step.copied_bytes},
                       {"retained_bytes", step.retained_bytes}});
}

Json ToJson(const Barrier& barrier) {
  return Json::Object({{"after_step", barrier.after.value},
                       {"at_ns", barrier.at.ns},
                       {"paths", PathsToJson(barrier.paths)}});
}

Json ToJson(const Change& change) {
  Json json =
      Json::Object({{"change", ChangeName(change.kind)}, {"path", BytesToJson(change.path)}});
  if (change.kind == ChangeKind::kRenamed) json.Set("old_path", BytesToJson(change.old_path));
  return json.Set("old_size", change.old_size).Set("new_size", change.new_size);
}

Json ToJson(const std::vector<Conflict>& conflicts) {
  Json list = Json::Array();
  for (const Conflict& conflict : conflicts) {
    Json json = Json::Object({{"conflict", ConflictName(conflict.kind)},
                              {"path", BytesToJson(conflict.path)},
                              {"detail", conflict.detail}});
    if (conflict.step) json.Set("step_id", conflict.step->value);
    list.Append(std::move(json));
  }
  return list;
}

Json ToJson(const RewindReport& report) {
  Json steps = Json::Array(), changes = Json::Array();
  for (const StepId step : report.steps) steps.Append(step.value);
  for (const Change& change : report.changes) changes.Append(ToJson(change));
  return Json::Object({{"steps", std::move(steps)},
                       {"changes", std::move(changes)},
                       {"conflicts", ToJson(report.conflicts)},
                       {"kept", PathsToJson(report.kept)},
                       {"warnings", TextsToJson(report.warnings)}});
}

Json ToJson(const RecoveryReport& recovery) {
  Json json = ToJson(recovery.rewind);
  json.Set("recovered", recovery.recovered).Set("interrupted_rewind", recovery.interrupted_rewind);
  return json.Set("step_id", recovery.step ? Json(recovery.step->value) : Json());
}

}  // namespace sandglass::undo
