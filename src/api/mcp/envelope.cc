#include "api/mcp/envelope.h"

#include <fmt/format.h>

#include <string>

#include "api/mcp/versions.h"

namespace sandglass::api::mcp {
namespace {

constexpr std::string_view kMissing = "(missing)";
constexpr std::string_view kEncodedBegin = "=?base64?", kEncodedEnd = "?=";

// The member that a header repeats.
struct NamedMember {
  std::string_view method, member;
};
constexpr NamedMember kNamed[] = {
    {"tools/call", "name"}, {"prompts/get", "name"}, {"resources/read", "uri"}};

const Json* MetaOf(const Json& params) {
  const Json* meta = params.Find("_meta");
  return meta != nullptr && meta->AsObject() != nullptr ? meta : nullptr;
}

ProtocolError WrongMeta(std::string_view key, std::string_view problem) {
  return {kInvalidParams, fmt::format("_meta: \"{}\" {}", key, problem),
          Json::Object({{"field", fmt::format("_meta.{}", key)}})};
}

ProtocolError Mismatch(std::string_view name, std::string_view header, std::string_view body) {
  return {kHeaderMismatch,
          fmt::format("the header {} says \"{}\", and the message \"{}\"", name, header, body),
          Json::Object({{"mismatch", Json::Object({{"header", header}, {"body", body}})}})};
}

// Names that are no plain text are sent encoded. nullopt: not as they should be.
std::optional<std::string> Decoded(std::string_view value) {
  if (!value.starts_with(kEncodedBegin) || !value.ends_with(kEncodedEnd) ||
      value.size() < kEncodedBegin.size() + kEncodedEnd.size())
    return std::string(value);
  value.remove_prefix(kEncodedBegin.size());
  value.remove_suffix(kEncodedEnd.size());
  auto decoded = Base64Decode(value);
  if (!decoded.ok() || !IsValidUtf8(*decoded)) return std::nullopt;
  return std::move(*decoded);
}

std::optional<ProtocolError> FindNameMismatch(const http::Request& request,
                                              const Message& message) {
  for (const NamedMember& named : kNamed) {
    const Json* member = message.params.Find(named.member);
    if (named.method != message.method || member == nullptr || member->AsString() == nullptr)
      continue;
    const auto given = request.Header("Mcp-Name");
    if (!given) return Mismatch("Mcp-Name", kMissing, *member->AsString());
    if (Decoded(*given) != *member->AsString())
      return Mismatch("Mcp-Name", *given, *member->AsString());
  }
  return std::nullopt;
}

}  // namespace

bool HasEnvelope(const Json& params) {
  const Json* meta = MetaOf(params);
  return meta != nullptr && meta->Find(kVersionKey) != nullptr;
}

std::variant<Envelope, ProtocolError> ParseEnvelope(const Json& params) {
  const Json* meta = MetaOf(params);
  const Json* version = meta != nullptr ? meta->Find(kVersionKey) : nullptr;
  if (version == nullptr) return WrongMeta(kVersionKey, "is missing");
  if (version->AsString() == nullptr) return WrongMeta(kVersionKey, "should be a string");
  const Json* capabilities = meta->Find(kCapabilitiesKey);
  if (capabilities == nullptr) return WrongMeta(kCapabilitiesKey, "is missing");
  if (capabilities->AsObject() == nullptr)
    return WrongMeta(kCapabilitiesKey, "should be an object");
  const Json* client = meta->Find(kClientKey);
  if (client != nullptr && client->AsObject() == nullptr)
    return WrongMeta(kClientKey, "should be an object");
  if (*version->AsString() != kStateless.name)
    return ProtocolError{
        kUnsupportedVersion,
        fmt::format("version \"{}\" of the protocol is not spoken here", *version->AsString()),
        Json::Object({{"supported", Json::Array({kStateless.name})}, {"requested", *version}})};
  return Envelope{*capabilities};
}

std::optional<ProtocolError> FindHeaderMismatch(const http::Request& request,
                                                const Message& message) {
  const Json* meta = MetaOf(message.params);
  const Json* named = meta != nullptr ? meta->Find(kVersionKey) : nullptr;
  const std::string version =
      named != nullptr && named->AsString() != nullptr ? *named->AsString() : std::string(kMissing);
  const auto given_version = request.Header("MCP-Protocol-Version").value_or(kMissing);
  if (given_version != version) return Mismatch("MCP-Protocol-Version", given_version, version);
  if (message.id.is_null()) return std::nullopt;
  const auto given_method = request.Header("Mcp-Method").value_or(kMissing);
  if (given_method != message.method) return Mismatch("Mcp-Method", given_method, message.method);
  return FindNameMismatch(request, message);
}

}  // namespace sandglass::api::mcp
