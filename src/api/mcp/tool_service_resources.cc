// The service's part that offers files and steps as resources.
#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "api/limits.h"
#include "api/mcp/param_checks.h"
#include "api/mcp/resource_uri.h"
#include "api/mcp/tool_service.h"

namespace sandglass::api::mcp {
namespace {

constexpr int64_t kFilesPerPage = 250;
constexpr int64_t kListedSteps = 20;

constexpr Schema kUri{.kind = SchemaKind::kString, .min = 1, .max = 64 << 10};
constexpr Field kReadFields[] = {{"uri", &kUri, Need::kRequired, ""}};
constexpr Schema kRead{
    .kind = SchemaKind::kObject, .fields = kReadFields, .others = OtherMembers::kAllowed};
constexpr Schema kCursor{.kind = SchemaKind::kString, .min = 1, .max = 20};
constexpr Field kListFields[] = {{"cursor", &kCursor, Need::kOptional, ""}};
constexpr Schema kList{
    .kind = SchemaKind::kObject, .fields = kListFields, .others = OtherMembers::kAllowed};

std::optional<int64_t> OffsetOf(const Json& params) {
  const Json* cursor = params.Find("cursor");
  if (cursor == nullptr) return 0;
  const std::string& text = *cursor->AsString();
  int64_t offset = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), offset);
  const bool is_good = error == std::errc() && end == text.data() + text.size() && offset > 0;
  return is_good ? std::optional(offset) : std::nullopt;
}

Json FileEntry(const std::string& project, const std::string& path) {
  return Json::Object(
      {{"uri", UriOf(FileResource{fmt::format("{}/{}", project, path)})}, {"name", path}});
}

std::optional<Json> StepEntry(const Json& step) {
  const Json* id = step.Find("step_id");
  if (id == nullptr || !id->AsInt()) return std::nullopt;
  const Json* command = step.Find("command");
  const std::string what =
      command != nullptr && command->AsString() != nullptr ? *command->AsString() : "";
  return Json::Object({{"uri", UriOf(StepResource{*id->AsInt()})},
                       {"name", fmt::format("step {}", *id->AsInt())},
                       {"description", what},
                       {"mimeType", "text/x-diff"}});
}

// What is no resource of ours, as the protocol says it.
ProtocolError NoSuchResource(const std::string& uri) {
  return {kInvalidParams, fmt::format("there is no resource {}", uri),
          Json::Object({{"uri", uri}})};
}

bool HasMore(const Json& result) {
  const Json* next = result.Find("next_offset");
  return next != nullptr && !next->is_null();
}

}  // namespace

void ToolService::ListTemplates(const std::shared_ptr<Request>& request) {
  const std::string files = UriOf(FileResource{project_ + "/"}) + "{+path}";
  request->Succeed(Json::Object(
      {{"resourceTemplates",
        Json::Array({Json::Object({{"uriTemplate", files},
                                   {"name", "file"},
                                   {"description", "A file of the project, as it is now."}}),
                     Json::Object({{"uriTemplate", std::string(kStepUri) + "{step_id}"},
                                   {"name", "step"},
                                   {"description", "What a step changed, as a unified diff."},
                                   {"mimeType", "text/x-diff"}})})}}));
}

void ToolService::ListResources(const std::shared_ptr<Request>& request) {
  if (const auto wrong = api::FindMismatch(kList, request->params()))
    return request->Fail(WrongParams(*wrong, "resources/list"));
  const auto offset = OffsetOf(request->params());
  if (!offset)
    return request->Fail({ApiCode::kInvalidArgument, "this cursor is none that was given",
                          Json::Object({{"field", "cursor"}})});
  Json payload = Json::Object({{"pattern", "**"}, {"limit", kFilesPerPage}, {"offset", *offset}});
  Do("fs.glob", std::move(payload), [this, request, offset = *offset](const Answer& answer) {
    if (const auto* error = std::get_if<ApiError>(&answer)) return request->Fail(*error);
    const Json& found = std::get<Json>(answer);
    Json resources = Json::Array();
    const Json::Items& matches = *found.Find("matches")->AsArray();
    for (const Json& match : matches)
      resources.Append(FileEntry(project_, BytesFromJson(*match.Find("path")).value()));
    const int64_t next = offset + static_cast<int64_t>(matches.size());
    if (next < found.GetInt("total").value() && !matches.empty())
      return request->Succeed(Json::Object(
          {{"resources", std::move(resources)}, {"nextCursor", std::to_string(next)}}));
    AddSteps(request, std::move(resources));
  });
}

// Behind the last file.
void ToolService::AddSteps(const std::shared_ptr<Request>& request, Json resources) {
  Do("undo.history", Json::Object({{"limit", kListedSteps}}),
     [request, resources = std::move(resources)](const Answer& answer) {
       Json all = resources;
       if (const auto* history = std::get_if<Json>(&answer)) {
         for (const Json& step : *history->Find("steps")->AsArray()) {
           if (auto entry = StepEntry(step)) all.Append(std::move(*entry));
         }
       }
       request->Succeed(Json::Object({{"resources", std::move(all)}}));
     });
}

void ToolService::ReadResource(const std::shared_ptr<Request>& request) {
  if (const auto wrong = api::FindMismatch(kRead, request->params()))
    return request->Fail(WrongParams(*wrong, "resources/read"));
  const std::string uri = *request->params().Find("uri")->AsString();
  const auto resource = ParseUri(uri);
  if (!resource) return request->Fail(NoSuchResource(uri));
  const auto* file = std::get_if<FileResource>(&*resource);
  Json payload = file != nullptr
                     ? Json::Object({{"path", BytesToJson(file->path)}})
                     : Json::Object({{"step_id", std::get<StepResource>(*resource).step}});
  payload.Set("limit", kMaxReadBytes);
  Do(file != nullptr ? "fs.read" : "undo.diff", std::move(payload),
     [request, uri](const Answer& answer) { FinishRead(*request, uri, answer); });
}

void ToolService::FinishRead(Request& request, const std::string& uri, const Answer& answer) {
  if (const auto* error = std::get_if<ApiError>(&answer)) {
    const bool is_none = error->code == ApiCode::kNotFound ||
                         error->code == ApiCode::kOutsideRoot ||
                         error->code == ApiCode::kInvalidArgument;
    if (is_none) return request.Fail(NoSuchResource(uri));
    return request.Fail(
        ProtocolError{-32603, error->message, Json::Object({{"code", NameOf(error->code)}})});
  }
  const Json& result = std::get<Json>(answer);
  if (HasMore(result))
    return request.Fail(ProtocolError{
        -32603,
        fmt::format("{} is too long for a resource; read_file and get_step_diff give parts", uri),
        Json::Object({{"code", NameOf(ApiCode::kLimit)}})});
  Json content = Json::Object({{"uri", uri}});
  if (const Json* diff = result.Find("diff"))
    content.Set("mimeType", "text/x-diff").Set("text", *diff);
  else if (result.GetString("encoding").value() == "base64")
    content.Set("mimeType", "application/octet-stream").Set("blob", *result.Find("content"));
  else
    content.Set("mimeType", "text/plain").Set("text", *result.Find("content"));
  request.Succeed(Json::Object({{"contents", Json::Array({std::move(content)})}}));
}

}  // namespace sandglass::api::mcp
