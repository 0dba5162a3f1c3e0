#include "session/rewind_request.h"

#include <fmt/format.h>

#include <utility>

#include "undo/report_json.h"

namespace sandglass::session {
namespace {

struct KindRow {
  RewindKind kind;
  std::string_view name;
};
constexpr KindRow kKinds[] = {
    {RewindKind::kUndo, "undo"}, {RewindKind::kRedo, "redo"}, {RewindKind::kRestore, "restore"}};

// An answer may be long, and is not parsed to see that it is no progress.
constexpr std::string_view kProgressStart = "{\"progress\"";
constexpr size_t kMaxProgressBytes = 256;

Result<RewindKind> KindNamed(std::string_view name) {
  for (const KindRow& row : kKinds) {
    if (row.name == name) return row.kind;
  }
  return Error(Code::kInvalid, "\"type\" is neither undo nor redo nor restore");
}

// Missing is false.
Result<bool> Flag(const Json& json, std::string_view key) {
  if (json.Find(key) == nullptr) return false;
  return json.GetBool(key);
}

Result<std::string> BytesOf(const Json& json, std::string_view key) {
  const Json* value = json.Find(key);
  if (value == nullptr) return Error(Code::kInvalid, fmt::format("\"{}\" is missing", key));
  return BytesFromJson(*value);
}

Result<uint32_t> CountOf(const Json& json) {
  TRY_ASSIGN(const uint64_t count, json.GetUint("count"));
  if (count == 0) return Error(Code::kInvalid, "\"count\" is zero");
  if (count > kMaxRewindCount) return Error(Code::kLimit, "\"count\" is too large");
  return static_cast<uint32_t>(count);
}

Result<std::vector<std::string>> PathsOf(const Json& json) {
  const Json* list = json.Find("paths");
  if (list == nullptr || list->AsArray() == nullptr)
    return Error(Code::kInvalid, "\"paths\" is no list");
  std::vector<std::string> paths;
  for (const Json& item : *list->AsArray()) {
    TRY_ASSIGN(std::string path, BytesFromJson(item));
    paths.push_back(std::move(path));
  }
  return paths;
}

Result<Code> CodeNamed(std::string_view name) {
  for (unsigned value = 0; value <= static_cast<unsigned>(Code::kForeign); ++value) {
    if (CodeName(static_cast<Code>(value)) == name) return static_cast<Code>(value);
  }
  return Error(Code::kInvalid, "the error has no code that is known");
}

Json ErrorToJson(const RewindAnswer& answer) {
  Json json = Json::Object(
      {{"code", CodeName(answer.error->code())}, {"message", answer.error->message()}});
  json.Set("conflicts", ToJson(answer.conflicts));
  Json pids = Json::Array();
  for (const pid_t pid : answer.running) pids.Append(pid);
  return json.Set("pids", std::move(pids));
}

Result<RewindAnswer> ErrorFromJson(const Json& json) {
  TRY_ASSIGN(const std::string name, json.GetString("code"));
  TRY_ASSIGN(const Code code, CodeNamed(name));
  TRY_ASSIGN(std::string message, json.GetString("message"));
  RewindAnswer answer = Refused(Error(code, std::move(message)));
  TRY_ASSIGN(answer.conflicts, undo::ConflictsFromJson(json, "conflicts"));
  const Json* pids = json.Find("pids");
  if (pids == nullptr || pids->AsArray() == nullptr) return answer;
  for (const Json& pid : *pids->AsArray())
    answer.running.push_back(static_cast<pid_t>(pid.AsInt().value_or(0)));
  return answer;
}

}  // namespace

std::string_view NameOf(RewindKind kind) {
  for (const KindRow& row : kKinds) {
    if (row.kind == kind) return row.name;
  }
  return "";
}

RewindAnswer Refused(Error error) {
  RewindAnswer answer;
  answer.error = std::move(error);
  return answer;
}

std::string Encode(const RewindRequest& request) {
  Json json = Json::Object({{"type", NameOf(request.kind)},
                            {"project", BytesToJson(request.project)},
                            {"force", request.force == undo::Force::kYes},
                            {"dry_run", request.deed == Deed::kPlanned},
                            {"stop", request.runners == Runners::kEnd},
                            {"progress", request.progress == ProgressWanted::kYes}});
  if (request.kind != RewindKind::kRestore) return WriteJson(json.Set("count", request.count));
  Json paths = Json::Array();
  for (const std::string& path : request.paths) paths.Append(BytesToJson(path));
  return WriteJson(json.Set("step_id", request.step.value).Set("paths", std::move(paths)));
}

Result<RewindRequest> DecodeRewindRequest(std::string_view line) {
  TRY_ASSIGN(const Json json, ParseJson(line, kMaxRequestBytes));
  return RewindRequestFrom(json);
}

Result<RewindRequest> RewindRequestFrom(const Json& json) {
  RewindRequest request;
  TRY_ASSIGN(const std::string type, json.GetString("type"));
  TRY_ASSIGN(request.kind, KindNamed(type));
  TRY_ASSIGN(request.project, BytesOf(json, "project"));
  TRY_ASSIGN(const bool force, Flag(json, "force"));
  TRY_ASSIGN(const bool dry_run, Flag(json, "dry_run"));
  TRY_ASSIGN(const bool stop, Flag(json, "stop"));
  TRY_ASSIGN(const bool progress, Flag(json, "progress"));
  request.force = force ? undo::Force::kYes : undo::Force::kNo;
  request.deed = dry_run ? Deed::kPlanned : Deed::kDone;
  request.runners = stop ? Runners::kEnd : Runners::kStay;
  request.progress = progress ? ProgressWanted::kYes : ProgressWanted::kNo;
  if (request.kind != RewindKind::kRestore) {
    TRY_ASSIGN(request.count, CountOf(json));
    return request;
  }
  TRY_ASSIGN(request.step.value, json.GetInt("step_id"));
  TRY_ASSIGN(request.paths, PathsOf(json));
  return request;
}

std::string Encode(const undo::RewindProgress& progress) {
  Json numbers = Json::Object({{"done", progress.done}, {"total", progress.total}});
  return WriteJson(Json::Object({{"progress", std::move(numbers)}}));
}

std::optional<undo::RewindProgress> DecodeProgress(std::string_view line) {
  if (!line.starts_with(kProgressStart) || line.size() > kMaxProgressBytes) return std::nullopt;
  const auto json = ParseJson(line);
  const Json* numbers = json.ok() ? json->Find("progress") : nullptr;
  if (numbers == nullptr) return std::nullopt;
  const auto done = numbers->GetUint("done"), total = numbers->GetUint("total");
  if (!done.ok() || !total.ok()) return std::nullopt;
  return undo::RewindProgress{.done = *done, .total = *total};
}

std::string Encode(const RewindAnswer& answer) {
  if (!answer.report) return WriteJson(Json::Object({{"error", ErrorToJson(answer)}}));
  std::string line = WriteJson(Json::Object({{"report", ToJson(*answer.report)}}));
  if (line.size() <= kMaxAnswerBytes) return line;
  undo::RewindReport report{.steps = answer.report->steps};
  report.warnings = {
      fmt::format("the list of {} changes is too long to be told", answer.report->changes.size())};
  return WriteJson(Json::Object({{"report", ToJson(report)}}));
}

Result<RewindAnswer> DecodeRewindAnswer(std::string_view line) {
  TRY_ASSIGN(const Json json, ParseJson(line, kMaxAnswerBytes));
  if (const Json* error = json.Find("error")) return ErrorFromJson(*error);
  const Json* report = json.Find("report");
  if (report == nullptr) return Error(Code::kInvalid, "an answer without report and error");
  RewindAnswer answer;
  TRY_ASSIGN(answer.report, undo::RewindReportFromJson(*report));
  return answer;
}

}  // namespace sandglass::session
