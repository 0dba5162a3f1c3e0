// The host's part that looks into the history and takes steps back.
#include <algorithm>
#include <ranges>
#include <utility>

#include "api/command_output.h"
#include "api/host.h"
#include "base/rel_path.h"
#include "undo/report_json.h"

namespace sandglass::api {
namespace {

constexpr size_t kMaxChanges = 1'000;  // in one answer
constexpr size_t kHistoryPaths = 20;   // of one entry
constexpr int64_t kDefaultEntries = 50;
constexpr size_t kMaxDiffBytes = size_t{512} << 10;

int64_t NumberOr(const Json& payload, std::string_view key, int64_t otherwise) {
  const Json* given = payload.Find(key);
  return given != nullptr ? *given->AsInt() : otherwise;
}

bool IsTrue(const Json& payload, std::string_view key) {
  const Json* flag = payload.Find(key);
  return flag != nullptr && *flag->AsBool();
}

Json FirstOf(const std::vector<undo::Change>& changes, size_t offset, size_t limit) {
  Json list = Json::Array();
  for (size_t i = offset; i < changes.size() && i - offset < limit; ++i)
    list.Append(undo::ToJson(changes[i]));
  return list;
}

Json ReportToJson(const undo::RewindReport& report) {
  undo::RewindReport rest = report;
  rest.changes.clear();
  Json json = undo::ToJson(rest);
  return json.Set("changes", FirstOf(report.changes, 0, kMaxChanges))
      .Set("total_changes", report.changes.size());
}

Answer AnswerFor(const session::RewindAnswer& answer) {
  if (answer.report) return ReportToJson(*answer.report);
  ApiError error = FromError(*answer.error);
  if (!answer.conflicts.empty()) error.data.Set("conflicts", undo::ToJson(answer.conflicts));
  if (!answer.running.empty()) {
    Json pids = Json::Array();
    for (const pid_t pid : answer.running) pids.Append(pid);
    error.data.Set("pids", std::move(pids));
  }
  if (error.code == ApiCode::kConflict)
    error.data.Set("hint", "look at the paths; \"force\": true goes on all the same");
  return error;
}

session::RewindRequest RequestOf(session::RewindKind kind, const Json& payload) {
  session::RewindRequest request{.kind = kind};
  request.count = static_cast<uint32_t>(NumberOr(payload, "count", 1));
  if (IsTrue(payload, "force")) request.force = undo::Force::kYes;
  if (IsTrue(payload, "dry_run")) request.deed = session::Deed::kPlanned;
  if (IsTrue(payload, "stop_processes")) request.runners = session::Runners::kEnd;
  return request;
}

std::string_view TypeOf(const undo::StepInfo& step) { return undo::KindName(step.kind); }

Json PathsToJson(const std::vector<std::string>& paths) {
  Json list = Json::Array();
  for (const std::string& path : paths) list.Append(BytesToJson(path));
  return list;
}

Json EntryToJson(const undo::Barrier& barrier) {
  return Json::Object({{"type", "barrier"},
                       {"timestamp", FormatTimestamp(barrier.at)},
                       {"after_step", barrier.after.value},
                       {"affected_paths", PathsToJson(barrier.paths)},
                       {"blocks_rollback", true}});
}

Json EntryToJson(const undo::StepInfo& step, const undo::StoreReader& reader) {
  Json json = Json::Object({{"type", TypeOf(step)},
                            {"step_id", step.id.value},
                            {"timestamp", FormatTimestamp(step.closed)},
                            {"started", FormatTimestamp(step.opened)},
                            {"command", BytesToJson(step.label)},
                            {"protected", step.protection == undo::Protection::kFull},
                            {"damaged", step.damaged}});
  json.Set("counts", Json::Object({{"created", step.counts.created},
                                   {"modified", step.counts.modified},
                                   {"deleted", step.counts.deleted},
                                   {"renamed", step.counts.renamed}}));
  Json paths = Json::Array();
  const auto changes = reader.Changes(step.id);
  const size_t total = changes.ok() ? changes->size() : 0;
  for (size_t i = 0; i < std::min(total, kHistoryPaths); ++i)
    paths.Append(BytesToJson((*changes)[i].path));
  return json.Set("affected_paths", std::move(paths)).Set("total_paths", total);
}

// The newest `limit` after skipping `offset` of the newest, oldest first.
Json Page(const std::vector<undo::HistoryEntry>& history, size_t offset, size_t limit,
          const undo::StoreReader& reader) {
  const size_t end = history.size() - std::min(offset, history.size());
  const size_t begin = end - std::min(limit, end);
  Json entries = Json::Array();
  for (size_t i = begin; i < end; ++i)
    entries.Append(history[i].step ? EntryToJson(*history[i].step, reader)
                                   : EntryToJson(*history[i].barrier));
  return entries;
}

// A text that is cut stays one of whole lines.
std::string_view CutToLines(std::string_view text, size_t max) {
  if (text.size() <= max) return text;
  const size_t end = text.rfind('\n', max);
  return text.substr(0, end == text.npos ? max : end + 1);
}

Result<Json> HistoryOf(const undo::UndoPaths& paths, const Json& payload) {
  TRY_ASSIGN(const undo::StoreReader reader, undo::StoreReader::Open(paths));
  TRY_ASSIGN(const auto history, reader.History());
  const auto offset = static_cast<size_t>(NumberOr(payload, "offset", 0));
  const auto limit = static_cast<size_t>(NumberOr(payload, "limit", kDefaultEntries));
  return Json::Object({{"steps", Page(history, offset, limit, reader)},
                       {"total", history.size()},
                       {"redo_steps", reader.redo_depth()}});
}

Result<Json> ChangesOf(const undo::UndoPaths& paths, const Json& payload) {
  TRY_ASSIGN(const undo::StoreReader reader, undo::StoreReader::Open(paths));
  TRY_ASSIGN(const auto changes, reader.Changes(StepId{*payload.Find("step_id")->AsInt()}));
  const auto offset = static_cast<size_t>(NumberOr(payload, "offset", 0));
  const auto limit = static_cast<size_t>(NumberOr(payload, "limit", kMaxChanges));
  return Json::Object({{"changes", FirstOf(changes, offset, limit)}, {"total", changes.size()}});
}

Result<Json> DiffOf(const undo::UndoPaths& paths, const Json& payload) {
  TRY_ASSIGN(const undo::StoreReader reader, undo::StoreReader::Open(paths));
  TRY_ASSIGN(const undo::StepDiff diff, reader.Diff(StepId{*payload.Find("step_id")->AsInt()}));
  const auto offset = std::min<size_t>(NumberOr(payload, "offset", 0), diff.text.size());
  const auto limit = static_cast<size_t>(NumberOr(payload, "limit", kMaxDiffBytes));
  const std::string_view part = CutToLines(std::string_view(diff.text).substr(offset), limit);
  return Json::Object(
      {{"diff", BytesToJson(part)},
       {"total_bytes", diff.text.size()},
       {"next_offset",
        offset + part.size() < diff.text.size() ? Json(offset + part.size()) : Json()},
       {"missing", undo::ToJson(diff.missing)}});
}

Answer AnswerFor(Result<Json> result) {
  if (!result.ok()) return FromError(result.error());
  return std::move(*result);
}

}  // namespace

void Host::Rewind(session::RewindRequest request, const Call& call) {
  const auto paths = WritableOf(call.payload);
  if (!paths.ok()) return call.reply(FromError(paths.error()));
  request.project = paths->project;
  session_->Ask(std::move(request), [reply = call.reply](const session::RewindAnswer& answer) {
    reply(AnswerFor(answer));
  });
}

void Host::Rollback(Call call) {
  Rewind(RequestOf(session::RewindKind::kUndo, call.payload), call);
}

void Host::Redo(Call call) { Rewind(RequestOf(session::RewindKind::kRedo, call.payload), call); }

void Host::Restore(Call call) {
  session::RewindRequest request = RequestOf(session::RewindKind::kRestore, call.payload);
  request.step = StepId{*call.payload.Find("step_id")->AsInt()};
  for (const Json& item : *call.payload.Find("paths")->AsArray()) {
    const auto path = NormalizeRelPath(BytesFromJson(item).value());
    if (!path.ok()) return call.reply(FromError(path.error()));
    request.paths.push_back(*path);
  }
  Rewind(std::move(request), call);
}

Result<undo::UndoPaths> Host::UpToDate(const Json& payload) {
  TRY_ASSIGN(const undo::UndoPaths paths, WritableOf(payload));
  if (session_) TRY(session_->EnterHistory());
  return paths;
}

void Host::ShowHistory(Call call) {
  const auto paths = UpToDate(call.payload);
  if (!paths.ok()) return call.reply(FromError(paths.error()));
  call.reply(AnswerFor(HistoryOf(*paths, call.payload)));
}

void Host::ShowChanges(Call call) {
  const auto paths = UpToDate(call.payload);
  if (!paths.ok()) return call.reply(FromError(paths.error()));
  call.reply(AnswerFor(ChangesOf(*paths, call.payload)));
}

void Host::ShowDiff(Call call) {
  const auto paths = UpToDate(call.payload);
  if (!paths.ok()) return call.reply(FromError(paths.error()));
  call.reply(AnswerFor(DiffOf(*paths, call.payload)));
}

}  // namespace sandglass::api
