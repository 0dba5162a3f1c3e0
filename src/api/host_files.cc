// The host's part that reads and writes files of the working directories.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/command_output.h"
#include "api/host.h"
#include "api/limits.h"
#include "api/project_files.h"

namespace sandglass::api {
namespace {

struct Target {
  std::string directory, path;
};

Result<Target> TargetOf(const std::vector<WorkingDirectory>& directories, size_t index,
                        const Json& payload) {
  const Json* given = payload.Find("path");
  const std::string raw = given != nullptr ? BytesFromJson(*given).value() : std::string();
  TRY_ASSIGN(std::string path, PathWithin(directories[index].path, raw));
  return Target{directories[index].path, std::move(path)};
}

size_t SizeOr(const Json& payload, std::string_view key, size_t otherwise) {
  const Json* given = payload.Find(key);
  return given != nullptr ? static_cast<size_t>(*given->AsUint()) : otherwise;
}

std::string TextOr(const Json& payload, std::string_view key, std::string otherwise) {
  const Json* given = payload.Find(key);
  return given != nullptr ? *given->AsString() : std::move(otherwise);
}

Json ToJson(const FolderEntry& entry) {
  Json json = Json::Object({{"name", BytesToJson(entry.name)},
                            {"type", entry.type},
                            {"size", entry.size},
                            {"mode", fmt::format("{:04o}", entry.mode)},
                            {"modified", FormatTimestamp({entry.mtime_ns})}});
  if (entry.type == "symlink") json.Set("target", BytesToJson(entry.target));
  return json;
}

Result<Json> Listing(const Target& target, const Json& payload) {
  TRY_ASSIGN(const auto entries, ListFolderIn(target.directory, target.path, kMaxFolderEntries));
  const size_t offset = SizeOr(payload, "offset", 0);
  const size_t limit = SizeOr(payload, "limit", kMaxListed);
  Json list = Json::Array();
  for (size_t i = offset; i < entries.size() && i - offset < limit; ++i)
    list.Append(ToJson(entries[i]));
  return Json::Object({{"path", BytesToJson(target.path)},
                       {"entries", std::move(list)},
                       {"total", entries.size()}});
}

// Text where it is whole text, unless it must be one or the other.
Result<Json> Content(const Target& target, const Json& payload) {
  const size_t offset = SizeOr(payload, "offset", 0);
  TRY_ASSIGN(const FilePart part, ReadFileIn(target.directory, target.path, offset,
                                             SizeOr(payload, "limit", kMaxReadBytes)));
  const std::string encoding = TextOr(payload, "encoding", "auto");
  const bool is_text = IsValidUtf8(part.bytes);
  if (encoding == "utf8" && !is_text)
    return Error(
        Code::kInvalid,
        fmt::format("{} is no UTF-8 there; ask for \"encoding\": \"base64\"", target.path));
  const bool as_text = encoding == "utf8" || (encoding == "auto" && is_text);
  const size_t next = offset + part.bytes.size();
  return Json::Object(
      {{"path", BytesToJson(target.path)},
       {"content", as_text ? part.bytes : Base64Encode(part.bytes)},
       {"encoding", as_text ? "utf8" : "base64"},
       {"size", part.size},
       {"offset", offset},
       {"next_offset", next < part.size && !part.bytes.empty() ? Json(next) : Json()}});
}

Answer AnswerFor(Result<Json> result) {
  if (!result.ok()) return FromError(result.error());
  return std::move(*result);
}

Result<std::string> ContentToWrite(const Json& payload) {
  std::string content = *payload.Find("content")->AsString();
  if (TextOr(payload, "encoding", "utf8") == "base64") {
    TRY_ASSIGN(content, Base64Decode(content));
  }
  if (content.size() > kMaxWriteBytes)
    return Error(Code::kLimit,
                 fmt::format("the content has {} bytes, and at most {} can be written "
                             "at once; write it with a command",
                             content.size(), kMaxWriteBytes));
  return content;
}

}  // namespace

void Host::ListFolder(Call call) {
  const auto index = DirectoryOf(call.payload);
  if (!index.ok()) return call.reply(FromError(index.error()));
  const auto target = TargetOf(request_->directories, *index, call.payload);
  if (!target.ok()) return call.reply(FromError(target.error()));
  call.reply(AnswerFor(Listing(*target, call.payload)));
}

void Host::ReadFile(Call call) {
  const auto index = DirectoryOf(call.payload);
  if (!index.ok()) return call.reply(FromError(index.error()));
  const auto target = TargetOf(request_->directories, *index, call.payload);
  if (!target.ok()) return call.reply(FromError(target.error()));
  call.reply(AnswerFor(Content(*target, call.payload)));
}

void Host::WriteFile(Call call) {
  const auto paths = WritableOf(call.payload);
  if (!paths.ok()) return call.reply(FromError(paths.error()));
  const auto target =
      TargetOf(request_->directories, DirectoryOf(call.payload).value(), call.payload);
  if (!target.ok()) return call.reply(FromError(target.error()));
  const auto content = ContentToWrite(call.payload);
  if (!content.ok()) return call.reply(FromError(content.error()));
  const Json* parents = call.payload.Find("create_parents");
  const session::FileToWrite file{.project = paths->project,
                                  .path = target->path,
                                  .content = *content,
                                  .label = fmt::format("write {}", target->path),
                                  .folders = parents != nullptr && *parents->AsBool()
                                                 ? session::FoldersAround::kMade
                                                 : session::FoldersAround::kMustExist};
  const auto written = session_->WriteFile(file);
  if (!written.ok()) return call.reply(FromError(written.error()));
  const session::CommandReport report{
      .step = written->step,
      .outcome = {.id = written->step, .ending = control::Ending::kExited},
      .projects = {{paths->project, written->changes}},
      .warnings = written->warnings};
  Json step = StepToJson(report);
  Json told = step;
  outlet_.Tell("event.step_completed",
               told.Set("request_id", call.request_id).Set("command", BytesToJson(file.label)));
  TellWarnings(written->warnings, written->step, call.request_id);
  call.reply(Json::Object({{"step_id", written->step.value},
                           {"path", BytesToJson(target->path)},
                           {"size", content->size()}}));
}

// A local world has the very files of the host: nothing is translated that could be lost.
void Host::ShowFileSystems(Call call) {
  call.reply(Json::Object({{"backend", "supervise"}, {"warnings", Json::Array()}}));
}

}  // namespace sandglass::api
