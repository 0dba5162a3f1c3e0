// The host's part that reads and writes files of the working directories.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/command_output.h"
#include "api/host.h"
#include "api/limits.h"
#include "api/project_files.h"
#include "session/files/edit_text.h"
#include "session/files/read_file.h"

namespace sandglass::api {
namespace {

namespace files = session::files;

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

Result<Json> Listing(const std::string& directory, const std::string& path, const Json& payload) {
  TRY_ASSIGN(const auto entries, ListFolderIn(directory, path, kMaxFolderEntries));
  const size_t offset = SizeOr(payload, "offset", 0);
  const size_t limit = SizeOr(payload, "limit", kMaxListed);
  Json list = Json::Array();
  for (size_t i = offset; i < entries.size() && i - offset < limit; ++i)
    list.Append(ToJson(entries[i]));
  return Json::Object(
      {{"path", BytesToJson(path)}, {"entries", std::move(list)}, {"total", entries.size()}});
}

// A part that ends within a character ends before it instead, so that text stays text.
void EndAtCharacter(files::FileContent& content) {
  constexpr size_t kLongestBeginning = 3;
  if (content.at_end || IsValidUtf8(content.bytes)) return;
  for (size_t cut = 1; cut <= std::min(kLongestBeginning, content.bytes.size()); ++cut) {
    const size_t left = content.bytes.size() - cut;
    if (left == 0 || !IsValidUtf8(std::string_view(content.bytes).substr(0, left))) continue;
    content.bytes.resize(left);
    content.next_offset -= cut;
    return;
  }
}

files::ReadRequest ReadRequestOf(const std::string& path, const Json& payload) {
  const size_t limit = SizeOr(payload, "limit", kMaxReadBytes);
  files::ReadRequest request{.path = path, .max_bytes = limit};
  request.range = files::ByteRange{.offset = SizeOr(payload, "offset", 0), .count = {}};
  if (payload.Find("first_line") == nullptr) return request;
  files::LineRange lines{.first = SizeOr(payload, "first_line", 1), .count = {}};
  if (payload.Find("line_count") != nullptr) lines.count = SizeOr(payload, "line_count", 1);
  request.range = lines;
  return request;
}

// Text where it is whole text, unless it must be one or the other.
Result<Json> Content(const std::string& directory, const std::string& path, const Json& payload) {
  TRY_ASSIGN(const Fd root, OpenDirectory(directory));
  TRY_ASSIGN(files::FileContent content, files::ReadFile(root.get(), ReadRequestOf(path, payload)));
  EndAtCharacter(content);
  const std::string encoding = TextOr(payload, "encoding", "auto");
  const bool is_text = IsValidUtf8(content.bytes);
  if (encoding == "utf8" && !is_text)
    return Error(Code::kInvalid,
                 fmt::format("{} is no UTF-8 there; ask for \"encoding\": \"base64\"", path));
  const bool as_text = encoding == "utf8" || (encoding == "auto" && is_text);
  Json json = Json::Object({{"path", BytesToJson(path)},
                            {"content", as_text ? content.bytes : Base64Encode(content.bytes)},
                            {"encoding", as_text ? "utf8" : "base64"},
                            {"size", content.version.size},
                            {"offset", content.offset},
                            {"next_offset", content.at_end ? Json() : Json(content.next_offset)}});
  if (content.first_line > 0)
    json.Set("next_line", content.at_end ? Json() : Json(content.next_line));
  return json;
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

Result<Host::Target> Host::TargetOf(const Json& payload) const {
  TRY_ASSIGN(const size_t index, DirectoryOf(payload));
  const std::string& directory = request_->directories[index].path;
  const Json* given = payload.Find("path");
  const std::string raw = given != nullptr ? BytesFromJson(*given).value() : std::string();
  TRY_ASSIGN(std::string path, PathWithin(directory, raw));
  return Target{directory, std::move(path)};
}

void Host::ListFolder(Call call) {
  const auto target = TargetOf(call.payload);
  if (!target.ok()) return call.reply(FromError(target.error()));
  call.reply(AnswerFor(Listing(target->directory, target->path, call.payload)));
}

void Host::ReadFile(Call call) {
  const auto target = TargetOf(call.payload);
  if (!target.ok()) return call.reply(FromError(target.error()));
  call.reply(AnswerFor(Content(target->directory, target->path, call.payload)));
}

void Host::WriteFile(Call call) {
  const auto paths = WritableOf(call.payload);
  if (!paths.ok()) return call.reply(FromError(paths.error()));
  const auto target = TargetOf(call.payload);
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
  call.reply(AnswerFor(WriteAsStep(file, call)));
}

Result<Json> Host::WriteAsStep(const session::FileToWrite& file, const Call& call) {
  TRY_ASSIGN(const session::WrittenFile written, session_->WriteFile(file));
  const session::CommandReport report{
      .step = written.step,
      .outcome = {.id = written.step, .ending = control::Ending::kExited},
      .projects = {{file.project, written.changes}},
      .warnings = written.warnings};
  Json told = StepToJson(report);
  outlet_.Tell("event.step_completed",
               told.Set("request_id", call.request_id).Set("command", BytesToJson(file.label)));
  TellWarnings(written.warnings, written.step, call.request_id);
  return Json::Object({{"step_id", written.step.value},
                       {"path", BytesToJson(file.path)},
                       {"size", file.content.size()}});
}

// What was read must still be there when it is replaced: a person may edit the file too.
Result<Json> Host::Edit(const Call& call) {
  TRY_ASSIGN(const undo::UndoPaths paths, WritableOf(call.payload));
  TRY_ASSIGN(const Target target, TargetOf(call.payload));
  TRY_ASSIGN(const Fd root, OpenDirectory(target.directory));
  TRY_ASSIGN(const files::FileContent now,
             files::ReadWholeFile(root.get(), target.path, kMaxEditedBytes));
  const Json* all = call.payload.Find("replace_all");
  TRY_ASSIGN(files::EditedText edited,
             files::EditText(now.bytes, {.old_text = *call.payload.Find("old_text")->AsString(),
                                         .new_text = *call.payload.Find("new_text")->AsString(),
                                         .occurrences = all != nullptr && *all->AsBool()
                                                            ? files::Occurrences::kAll
                                                            : files::Occurrences::kExactlyOne}));
  const session::FileToWrite file{.project = paths.project,
                                  .path = target.path,
                                  .content = std::move(edited.content),
                                  .label = fmt::format("edit {}", target.path),
                                  .expected = now.version};
  TRY_ASSIGN(Json json, WriteAsStep(file, call));
  return json.Set("replaced", edited.replaced).Set("first_line", edited.first_line);
}

void Host::EditFile(Call call) { call.reply(AnswerFor(Edit(call))); }

// A local world has the very files of the host: nothing is translated that could be lost.
void Host::ShowFileSystems(Call call) {
  call.reply(Json::Object({{"backend", "supervise"}, {"warnings", Json::Array()}}));
}

}  // namespace sandglass::api
