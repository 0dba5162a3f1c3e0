#include "api/mcp/messages.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "api/json_line.h"
#include "api/schema.h"
#include "api/shapes.h"

namespace sandglass::api::mcp {
namespace {

constexpr std::string_view kJsonRpc = "2.0";

constexpr Schema kIdText{.kind = SchemaKind::kString, .min = 1, .max = 256};
constexpr const Schema* kIdForms[] = {&kNumber, &kIdText};
constexpr Schema kId{.kind = SchemaKind::kAnyOf, .any_of = kIdForms};
constexpr std::string_view kJsonRpcNames[] = {kJsonRpc};
constexpr Schema kVersionTag{.kind = SchemaKind::kString, .choices = kJsonRpcNames};
constexpr Schema kMethod{.kind = SchemaKind::kString, .min = 1, .max = 128};
constexpr Field kMessageFields[] = {
    {"jsonrpc", &kVersionTag, Need::kRequired, ""},
    {"method", &kMethod, Need::kRequired, ""},
    {"id", &kId, Need::kOptional, ""},
};
constexpr Schema kMessage{
    .kind = SchemaKind::kObject, .fields = kMessageFields, .others = OtherMembers::kAllowed};

Json IdOf(const Json& message) {
  const Json* id = message.Find("id");
  return id != nullptr && !FindMismatch(kId, *id) ? *id : Json();
}

ApiError Invalid(const Mismatch& wrong) {
  const std::string where = wrong.path.empty() ? "the message" : '"' + wrong.path + '"';
  return {ApiCode::kInvalidRequest, fmt::format("{} {}", where, wrong.message),
          Json::Object({{"field", wrong.path}})};
}

bool IsAnswer(const Json& message) {
  return message.Find("method") == nullptr &&
         (message.Find("result") != nullptr || message.Find("error") != nullptr);
}

Item ItemFrom(const Json& message) {
  if (IsAnswer(message)) {
    const Json* result = message.Find("error") == nullptr ? message.Find("result") : nullptr;
    return ClientAnswer{IdOf(message), result != nullptr ? std::optional(*result) : std::nullopt};
  }
  if (const auto wrong = FindMismatch(kMessage, message))
    return Refused{IdOf(message), Invalid(*wrong)};
  Message out{.id = IdOf(message), .method = *message.Find("method")->AsString()};
  const Json* params = message.Find("params");
  if (params == nullptr) return out;
  if (params->AsObject() == nullptr)
    return Refused{std::move(out.id),
                   {ApiCode::kInvalidArgument, "\"params\" should be an object",
                    Json::Object({{"field", "params"}})}};
  out.params = *params;
  return out;
}

}  // namespace

Line ParseLine(std::string_view line) {
  JsonLine parsed = ParseJsonLine(line);
  Line out;
  if (parsed.error) {
    out.items.emplace_back(Refused{IdOf(parsed.value), std::move(*parsed.error)});
    return out;
  }
  const Json::Items* batch = parsed.value.AsArray();
  if (batch == nullptr) {
    out.items.push_back(ItemFrom(parsed.value));
    return out;
  }
  if (batch->empty()) {
    out.items.emplace_back(Refused{Json(), {ApiCode::kInvalidRequest, "the batch is empty"}});
    return out;
  }
  out.shape = LineShape::kBatch;
  for (const Json& message : *batch) out.items.push_back(ItemFrom(message));
  return out;
}

Json ResultMessage(const Json& id, Json result) {
  return Json::Object({{"jsonrpc", kJsonRpc}, {"id", id}, {"result", std::move(result)}});
}

Json ErrorMessage(const Refused& refused) {
  Json data = refused.error.data;
  data.Set("code", NameOf(refused.error.code));
  return ErrorMessage(refused.id, {JsonRpcNumber(refused.error.code), refused.error.message, data});
}

Json ErrorMessage(const Json& id, const ProtocolError& error) {
  return Json::Object(
      {{"jsonrpc", kJsonRpc},
       {"id", id},
       {"error",
        Json::Object({{"code", error.number}, {"message", error.message}, {"data", error.data}})}});
}

Json RequestMessage(const Json& id, std::string_view method, Json params) {
  return Json::Object(
      {{"jsonrpc", kJsonRpc}, {"id", id}, {"method", method}, {"params", std::move(params)}});
}

Json NotificationMessage(std::string_view method, Json params) {
  return Json::Object({{"jsonrpc", kJsonRpc}, {"method", method}, {"params", std::move(params)}});
}

}  // namespace sandglass::api::mcp
