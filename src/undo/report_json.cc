#include "undo/report_json.h"

#include <fmt/format.h>

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

// --- Back from JSON.

Error Wrong(std::string_view key) {
  return Error(Code::kInvalid, fmt::format("the report's \"{}\" makes no sense", key));
}

// Calls `take` for each item of the list `key`.
template <class Take>
Status ForEach(const Json& object, std::string_view key, Take take) {
  const Json* list = object.Find(key);
  if (list == nullptr || list->AsArray() == nullptr) return Wrong(key);
  for (const Json& item : *list->AsArray()) TRY(take(item));
  return Ok();
}

Result<std::string> BytesOf(const Json& object, std::string_view key) {
  const Json* value = object.Find(key);
  if (value == nullptr) return Wrong(key);
  return BytesFromJson(*value);
}

// The enumerator, from the first to `last`, that has this name.
template <class Enum, class Name>
Result<Enum> Named(const Json& object, std::string_view key, Enum last, Name name) {
  TRY_ASSIGN(const std::string text, object.GetString(key));
  for (auto value = 0U; value <= static_cast<unsigned>(last); ++value) {
    if (name(static_cast<Enum>(value)) == text) return static_cast<Enum>(value);
  }
  return Wrong(key);
}

Result<Change> ChangeFromJson(const Json& json) {
  Change change{};
  TRY_ASSIGN(change.kind, Named(json, "change", ChangeKind::kRenamed, ChangeName));
  TRY_ASSIGN(change.path, BytesOf(json, "path"));
  if (change.kind == ChangeKind::kRenamed) {
    TRY_ASSIGN(change.old_path, BytesOf(json, "old_path"));
  }
  TRY_ASSIGN(change.old_size, json.GetUint("old_size"));
  TRY_ASSIGN(change.new_size, json.GetUint("new_size"));
  return change;
}

Result<Conflict> ConflictFromJson(const Json& json) {
  Conflict conflict{};
  TRY_ASSIGN(conflict.kind, Named(json, "conflict", ConflictKind::kBusy, ConflictName));
  TRY_ASSIGN(conflict.path, BytesOf(json, "path"));
  TRY_ASSIGN(conflict.detail, json.GetString("detail"));
  if (json.Find("step_id") != nullptr) {
    TRY_ASSIGN(const int64_t step, json.GetInt("step_id"));
    conflict.step = StepId{step};
  }
  return conflict;
}

template <class T, class Decode>
Result<std::vector<T>> ListFromJson(const Json& object, std::string_view key, Decode decode) {
  std::vector<T> items;
  TRY(ForEach(object, key, [&](const Json& item) -> Status {
    TRY_ASSIGN(T decoded, decode(item));
    items.push_back(std::move(decoded));
    return Ok();
  }));
  return items;
}

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

Result<std::vector<Conflict>> ConflictsFromJson(const Json& object, std::string_view key) {
  return ListFromJson<Conflict>(object, key, ConflictFromJson);
}

Result<RewindReport> RewindReportFromJson(const Json& json) {
  RewindReport report;
  const auto step_id = [](const Json& item) -> Result<StepId> {
    if (const auto id = item.AsInt()) return StepId{*id};
    return Wrong("steps");
  };
  TRY_ASSIGN(report.steps, ListFromJson<StepId>(json, "steps", step_id));
  TRY_ASSIGN(report.changes, ListFromJson<Change>(json, "changes", ChangeFromJson));
  TRY_ASSIGN(report.conflicts, ConflictsFromJson(json, "conflicts"));
  TRY_ASSIGN(report.kept, ListFromJson<std::string>(json, "kept", BytesFromJson));
  TRY_ASSIGN(report.warnings, ListFromJson<std::string>(json, "warnings", BytesFromJson));
  return report;
}

Result<RecoveryReport> RecoveryReportFromJson(const Json& json) {
  RecoveryReport report;
  TRY_ASSIGN(report.rewind, RewindReportFromJson(json));
  TRY_ASSIGN(report.recovered, json.GetBool("recovered"));
  TRY_ASSIGN(report.interrupted_rewind, json.GetBool("interrupted_rewind"));
  const Json* step = json.Find("step_id");
  if (step == nullptr || step->is_null()) return report;
  TRY_ASSIGN(const int64_t id, json.GetInt("step_id"));
  report.step = StepId{id};
  return report;
}

}  // namespace sandglass::undo
