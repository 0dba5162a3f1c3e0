#include "session/held_requests.h"

#include <utility>

#include "session/safeguard_messages.h"

namespace sandglass::session {
namespace {

constexpr std::string_view kList = "held", kAnswer = "answer";
constexpr size_t kMaxHeld = 1'000;

Result<std::string> IdFrom(const Json& json) {
  TRY_ASSIGN(std::string id, json.GetString("id"));
  if (id.empty() || id.size() > kMaxHeldIdBytes)
    return Error(Code::kLimit, "\"id\" is empty or too long");
  return id;
}

Result<HeldOperation> HeldFrom(const Json& json) {
  HeldOperation held;
  TRY_ASSIGN(held.id, IdFrom(json));
  TRY_ASSIGN(held.question, QuestionFromJson(json));
  TRY_ASSIGN(const int64_t left, json.GetInt("left_ms"));
  held.left = std::chrono::milliseconds(left);
  return held;
}

Result<HeldRequest> AnswerFrom(const Json& json) {
  HeldRequest request;
  TRY_ASSIGN(request.id, IdFrom(json));
  TRY_ASSIGN(const bool allow, json.GetBool("allow"));
  request.decision = allow ? undo::Decision::kAllow : undo::Decision::kDeny;
  return request;
}

}  // namespace

Json ToJson(const HeldOperation& held) {
  Json json = QuestionToJson(held.question);
  return json.Set("id", held.id).Set("left_ms", held.left.count());
}

std::string Encode(const HeldRequest& request) {
  if (request.id.empty()) return WriteJson(Json::Object({{"type", kList}}));
  return WriteJson(Json::Object({{"type", kAnswer},
                                 {"id", request.id},
                                 {"allow", request.decision == undo::Decision::kAllow}}));
}

std::string Encode(const HeldAnswer& answer) {
  if (answer.error) return Encode(Refused(*answer.error));
  Json held = Json::Array();
  for (const HeldOperation& one : answer.held) held.Append(ToJson(one));
  return WriteJson(Json::Object({{"held", std::move(held)}}));
}

Result<HeldAnswer> DecodeHeldAnswer(std::string_view line) {
  TRY_ASSIGN(const Json json, ParseJson(line, kMaxAnswerBytes));
  HeldAnswer answer;
  const Json* list = json.Find("held");
  if (list == nullptr) {
    // A session of another version, too, refuses what it does not know in the one way that all have.
    TRY_ASSIGN(const RewindAnswer refusal, DecodeRewindAnswer(line));
    if (!refusal.error) return Error(Code::kInvalid, "an answer to something else");
    answer.error = refusal.error;
    return answer;
  }
  if (list->AsArray() == nullptr || list->AsArray()->size() > kMaxHeld)
    return Error(Code::kInvalid, "\"held\" is no list");
  for (const Json& item : *list->AsArray()) {
    TRY_ASSIGN(HeldOperation held, HeldFrom(item));
    answer.held.push_back(std::move(held));
  }
  return answer;
}

Result<SessionRequest> DecodeSessionRequest(std::string_view line) {
  TRY_ASSIGN(const Json json, ParseJson(line, kMaxRequestBytes));
  TRY_ASSIGN(const std::string type, json.GetString("type"));
  if (type == kList) return SessionRequest(HeldRequest{});
  if (type == kAnswer) {
    TRY_ASSIGN(HeldRequest request, AnswerFrom(json));
    return SessionRequest(std::move(request));
  }
  TRY_ASSIGN(RewindRequest request, RewindRequestFrom(json));
  return SessionRequest(std::move(request));
}

}  // namespace sandglass::session
