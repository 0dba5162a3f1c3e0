// From JSON back to what undo told. Apart from the other direction, because this half reads what others wrote.
#include <fmt/format.h>

#include <utility>

#include "undo/report_json.h"

namespace sandglass::undo {
namespace {

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
