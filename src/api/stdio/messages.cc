#include "api/stdio/messages.h"

#include <fmt/format.h>

#include <utility>

#include "api/json_line.h"
#include "api/schema.h"
#include "api/shapes.h"

namespace sandglass::api::stdio {
namespace {

constexpr Schema kType{.kind = SchemaKind::kString, .min = 1, .max = 64};
constexpr Schema kRequestId{.kind = SchemaKind::kString, .min = 1, .max = 128};
constexpr Schema kPayload{.kind = SchemaKind::kObject, .others = OtherMembers::kAllowed};
constexpr Field kRequestFields[] = {
    {"request_id", &kRequestId, Need::kRequired, "comes back with the response"},
    {"type", &kType, Need::kRequired, "the operation"},
    {"payload", &kPayload, Need::kOptional, ""},
};
constexpr Schema kRequest{.kind = SchemaKind::kObject, .fields = kRequestFields};

std::optional<std::string> IdOf(const Json& message) {
  const Json* id = message.Find("request_id");
  if (id == nullptr || FindMismatch(kRequestId, *id)) return std::nullopt;
  return *id->AsString();
}

ApiError UnknownOperation(const std::string& name) {
  return {ApiCode::kUnknownOperation,
          fmt::format("there is no operation \"{}\"; `sandglass api describe` lists them", name),
          Json::Object({{"type", name}})};
}

Json Response(Json request_id, std::string_view status) {
  return Json::Object(
      {{"type", "response"}, {"request_id", std::move(request_id)}, {"status", status}});
}

std::string Line(const Json& json) { return WriteJson(json) + '\n'; }

}  // namespace

std::variant<Request, Refused> ParseRequest(std::string_view line) {
  JsonLine parsed = ParseJsonLine(line);
  const Json& message = parsed.value;
  std::optional<std::string> id = IdOf(message);
  if (parsed.error) return Refused{std::move(id), std::move(*parsed.error)};
  if (const auto wrong = FindMismatch(kRequest, message)) {
    const std::string where = wrong->path.empty() ? "the message" : '"' + wrong->path + '"';
    return Refused{std::move(id),
                   {ApiCode::kInvalidRequest, fmt::format("{} {}", where, wrong->message),
                    Json::Object({{"field", wrong->path}})}};
  }
  const std::string type = *message.Find("type")->AsString();
  const Operation* operation = FindOperation(type);
  if (operation == nullptr) return Refused{std::move(id), UnknownOperation(type)};
  const Json* payload = message.Find("payload");
  return Request{operation, *id, payload != nullptr ? *payload : Json::Object()};
}

std::string EncodeResponse(const std::string& request_id, const Answer& answer) {
  if (const auto* error = std::get_if<ApiError>(&answer))
    return EncodeRefusal({request_id, *error});
  Json response = Response(request_id, "ok");
  const Json& result = std::get<Json>(answer);
  const bool empty = result.AsObject() != nullptr && result.AsObject()->empty();
  if (!empty) response.Set("payload", result);
  return Line(response);
}

std::string EncodeRefusal(const Refused& refused) {
  Json response = Response(refused.request_id ? Json(*refused.request_id) : Json(), "error");
  return Line(response.Set("error", ToJson(refused.error)));
}

// Without a copy of the payload, which may be a lot of output.
std::string EncodeEvent(std::string_view type, const Json& payload) {
  std::string line = R"({"type":)";
  AppendJsonString(line, type);
  line += R"(,"payload":)";
  return line.append(WriteJson(payload)).append("}\n");
}

}  // namespace sandglass::api::stdio
