#include "session/bridge_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/json.h"
#include "undo/report_json.h"

namespace sandglass::session {
namespace {

// --- Requests.

std::string Write(const Supervise& ask) {
  return WriteJson(Json::Object(
      {{"type", "supervise"}, {"command_id", ask.command.value}, {"world_pid", ask.world}}));
}
std::string Write(const Forget& ask) {
  return WriteJson(Json::Object({{"type", "forget"}, {"command_id", ask.command.value}}));
}
std::string Write(const Announce& ask) {
  return WriteJson(
      Json::Object({{"type", "announce"},
                    {"step_id", ask.step.value},
                    {"label", BytesToJson(ask.label)},
                    {"keep_empty", ask.if_unchanged == undo::IfUnchanged::kRecorded}}));
}
std::string Write(const CloseStep& ask) {
  return WriteJson(
      Json::Object({{"type", "close"}, {"empty_later", ask.empty_entry == EmptyEntry::kLater}}));
}
std::string Write(const EnterSteps&) { return WriteJson(Json::Object({{"type", "enter"}})); }
std::string Write(const AskPosition&) { return WriteJson(Json::Object({{"type", "position"}})); }
std::string Write(const RewindRequest& ask) { return Encode(ask); }
Json ToJson(const files::FileVersion& version) {
  return Json::Object({{"device", version.device},
                       {"inode", version.inode},
                       {"size", version.size},
                       {"mtime_ns", version.mtime_ns},
                       {"ctime_ns", version.ctime_ns}});
}
std::string Write(const WriteRequest& ask) {
  Json json = Json::Object({{"type", "write"},
                            {"step_id", ask.step.value},
                            {"project", BytesToJson(ask.project)},
                            {"path", BytesToJson(ask.path)},
                            {"label", BytesToJson(ask.label)},
                            {"make_folders", ask.folders == FoldersAround::kMade}});
  if (ask.expected) json.Set("expected", ToJson(*ask.expected));
  return WriteJson(json);
}
std::string Write(const End&) { return WriteJson(Json::Object({{"type", "end"}})); }

Result<BridgeRequest> SuperviseFrom(const Json& json) {
  Supervise ask;
  TRY_ASSIGN(ask.command.value, json.GetInt("command_id"));
  TRY_ASSIGN(const int64_t pid, json.GetInt("world_pid"));
  if (pid <= 0 || pid > std::numeric_limits<pid_t>::max())
    return Error(Code::kInvalid, "\"world_pid\" is no process id");
  ask.world = static_cast<pid_t>(pid);
  return BridgeRequest(ask);
}

Result<BridgeRequest> ForgetFrom(const Json& json) {
  Forget ask;
  TRY_ASSIGN(ask.command.value, json.GetInt("command_id"));
  return BridgeRequest(ask);
}

Result<std::string> BytesOf(const Json& json, std::string_view key) {
  const Json* bytes = json.Find(key);
  if (bytes == nullptr) return Error(Code::kInvalid, fmt::format("\"{}\" is missing", key));
  return BytesFromJson(*bytes);
}

Result<BridgeRequest> AnnounceFrom(const Json& json) {
  Announce ask;
  TRY_ASSIGN(ask.step.value, json.GetInt("step_id"));
  TRY_ASSIGN(ask.label, BytesOf(json, "label"));
  TRY_ASSIGN(const bool keep_empty, json.GetBool("keep_empty"));
  ask.if_unchanged = keep_empty ? undo::IfUnchanged::kRecorded : undo::IfUnchanged::kForgotten;
  return BridgeRequest(std::move(ask));
}

Result<BridgeRequest> CloseFrom(const Json& json) {
  TRY_ASSIGN(const bool later, json.GetBool("empty_later"));
  return BridgeRequest(CloseStep{later ? EmptyEntry::kLater : EmptyEntry::kBeforeTheAnswer});
}

Result<files::FileVersion> VersionFrom(const Json& json) {
  files::FileVersion version;
  TRY_ASSIGN(version.device, json.GetUint("device"));
  TRY_ASSIGN(version.inode, json.GetUint("inode"));
  TRY_ASSIGN(version.size, json.GetUint("size"));
  TRY_ASSIGN(version.mtime_ns, json.GetInt("mtime_ns"));
  TRY_ASSIGN(version.ctime_ns, json.GetInt("ctime_ns"));
  return version;
}

Result<BridgeRequest> WriteFrom(const Json& json) {
  WriteRequest ask;
  TRY_ASSIGN(ask.step.value, json.GetInt("step_id"));
  TRY_ASSIGN(ask.project, BytesOf(json, "project"));
  TRY_ASSIGN(ask.path, BytesOf(json, "path"));
  TRY_ASSIGN(ask.label, BytesOf(json, "label"));
  TRY_ASSIGN(const bool made, json.GetBool("make_folders"));
  ask.folders = made ? FoldersAround::kMade : FoldersAround::kMustExist;
  if (const Json* expected = json.Find("expected")) {
    TRY_ASSIGN(ask.expected, VersionFrom(*expected));
  }
  return BridgeRequest(std::move(ask));
}

template <class Ask>
Result<BridgeRequest> Plain(const Json&) {
  return BridgeRequest(Ask{});
}

struct RequestRow {
  std::string_view type;
  Result<BridgeRequest> (*decode)(const Json&);
};
constexpr RequestRow kRequests[] = {
    {"supervise", SuperviseFrom}, {"forget", ForgetFrom}, {"announce", AnnounceFrom},
    {"close", CloseFrom},         {"end", Plain<End>},    {"position", Plain<AskPosition>},
    {"enter", Plain<EnterSteps>}, {"write", WriteFrom},
};

// --- Answers.

// Told from answers without parsing them: these may be long.
constexpr std::string_view kFailedBegins = "{\"failed\":";

Result<Json> ParseAnswer(std::string_view frame) {
  TRY_ASSIGN(Json json, ParseJson(frame, kMaxAnswerBytes));
  if (json.Find("error") == nullptr) return json;
  TRY_ASSIGN(const RewindAnswer refused, DecodeRewindAnswer(frame));
  return *refused.error;
}

Result<const Json::Items*> ListOf(const Json& json, std::string_view key) {
  const Json* list = json.Find(key);
  if (list == nullptr || list->AsArray() == nullptr)
    return Error(Code::kInvalid, fmt::format("\"{}\" is no list", key));
  return list->AsArray();
}

Json NoticesToJson(const std::vector<std::string>& notices) {
  Json list = Json::Array();
  for (const std::string& notice : notices) list.Append(BytesToJson(notice));
  return list;
}

Result<std::vector<std::string>> NoticesFrom(const Json& json) {
  TRY_ASSIGN(const Json::Items* list, ListOf(json, "notices"));
  std::vector<std::string> notices;
  for (const Json& item : *list) {
    TRY_ASSIGN(std::string notice, BytesFromJson(item));
    notices.push_back(std::move(notice));
  }
  return notices;
}

}  // namespace

std::string Encode(const BridgeRequest& request) {
  return std::visit([](const auto& ask) { return Write(ask); }, request);
}

Result<BridgeRequest> DecodeBridgeRequest(std::string_view frame) {
  TRY_ASSIGN(const Json json, ParseJson(frame, kMaxRequestBytes));
  TRY_ASSIGN(const std::string type, json.GetString("type"));
  const auto* row = std::ranges::find(kRequests, type, &RequestRow::type);
  if (row != std::end(kRequests)) return row->decode(json);
  TRY_ASSIGN(RewindRequest rewind, DecodeRewindRequest(frame));
  return BridgeRequest(std::move(rewind));
}

std::string Encode(const Failed& failed) {
  return fmt::format("{}{}}}", kFailedBegins, Encode(Refused(failed.error)));
}

std::string Encode(const Opened& answer) {
  Json recoveries = Json::Array();
  for (const undo::RecoveryReport& report : answer.recoveries)
    recoveries.Append(undo::ToJson(report));
  return WriteJson(
      Json::Object({{"recoveries", std::move(recoveries)}, {"next_step_id", answer.next.value}}));
}

std::string Encode(const Closed& answer) {
  return WriteJson(Json::Object({{"notices", NoticesToJson(answer.notices)},
                                 {"changed", answer.changed},
                                 {"unprotected", answer.unprotected},
                                 {"next_step_id", answer.next.value}}));
}

std::string Encode(const Ended& answer) {
  return WriteJson(Json::Object({{"notices", NoticesToJson(answer.notices)}}));
}

std::string Encode(const Written& answer) {
  return WriteJson(Json::Object(
      {{"notices", NoticesToJson(answer.notices)}, {"next_step_id", answer.next.value}}));
}

std::string Encode(const Position& answer) {
  return WriteJson(Json::Object({{"next_step_id", answer.next.value}, {"begun", answer.begun}}));
}

std::optional<Failed> DecodeFailed(std::string_view frame) {
  if (!frame.starts_with(kFailedBegins)) return std::nullopt;
  frame.remove_prefix(kFailedBegins.size());
  if (frame.ends_with('}')) frame.remove_suffix(1);
  const auto refused = DecodeRewindAnswer(frame);
  if (!refused.ok()) return Failed{refused.error()};
  if (!refused->error) return Failed{Error(Code::kInvalid, "a failure without its reason")};
  return Failed{*refused->error};
}

Result<Opened> DecodeOpened(std::string_view frame) {
  TRY_ASSIGN(const Json json, ParseAnswer(frame));
  TRY_ASSIGN(const Json::Items* list, ListOf(json, "recoveries"));
  Opened opened;
  TRY_ASSIGN(opened.next.value, json.GetInt("next_step_id"));
  for (const Json& item : *list) {
    TRY_ASSIGN(undo::RecoveryReport report, undo::RecoveryReportFromJson(item));
    opened.recoveries.push_back(std::move(report));
  }
  return opened;
}

Result<Closed> DecodeClosed(std::string_view frame) {
  TRY_ASSIGN(const Json json, ParseAnswer(frame));
  Closed closed;
  TRY_ASSIGN(closed.notices, NoticesFrom(json));
  TRY_ASSIGN(closed.changed, json.GetBool("changed"));
  TRY_ASSIGN(closed.unprotected, json.GetBool("unprotected"));
  TRY_ASSIGN(closed.next.value, json.GetInt("next_step_id"));
  return closed;
}

Result<Ended> DecodeEnded(std::string_view frame) {
  TRY_ASSIGN(const Json json, ParseAnswer(frame));
  Ended ended;
  TRY_ASSIGN(ended.notices, NoticesFrom(json));
  return ended;
}

Result<Written> DecodeWritten(std::string_view frame) {
  TRY_ASSIGN(const Json json, ParseAnswer(frame));
  Written written;
  TRY_ASSIGN(written.notices, NoticesFrom(json));
  TRY_ASSIGN(written.next.value, json.GetInt("next_step_id"));
  return written;
}

Result<Position> DecodePosition(std::string_view frame) {
  TRY_ASSIGN(const Json json, ParseAnswer(frame));
  Position position;
  TRY_ASSIGN(position.next.value, json.GetInt("next_step_id"));
  TRY_ASSIGN(position.begun, json.GetBool("begun"));
  return position;
}

}  // namespace sandglass::session
