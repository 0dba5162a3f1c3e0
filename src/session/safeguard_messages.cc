#include "session/safeguard_messages.h"

#include <array>
#include <limits>
#include <utility>

namespace sandglass::session {
namespace {

using undo::SafeguardKind;

constexpr std::array kKinds = {SafeguardKind::kDeleteCount, SafeguardKind::kOverwriteLarge,
                               SafeguardKind::kTruncateLarge, SafeguardKind::kRenameOver,
                               SafeguardKind::kUndoLimit};
constexpr size_t kMaxSamples = 64;

Result<SafeguardKind> KindFrom(const std::string& name) {
  for (const SafeguardKind kind : kKinds) {
    if (undo::SafeguardName(kind) == name) return kind;
  }
  return Error(Code::kInvalid, "no safeguard has that name");
}

Json KeyToJson(const SafeguardKey& key) {
  return Json::Object({{"project", key.project}, {"question", key.question}});
}

Result<SafeguardKey> KeyFrom(const Json& json) {
  SafeguardKey key;
  TRY_ASSIGN(const uint64_t project, json.GetUint("project"));
  if (project > std::numeric_limits<uint32_t>::max())
    return Error(Code::kInvalid, "there is no such project");
  key.project = static_cast<uint32_t>(project);
  TRY_ASSIGN(key.question, json.GetUint("question"));
  return key;
}

Result<std::vector<std::string>> SamplesFrom(const Json& json) {
  const Json* list = json.Find("sample_paths");
  if (list == nullptr || list->AsArray() == nullptr || list->AsArray()->size() > kMaxSamples)
    return Error(Code::kInvalid, "\"sample_paths\" is no list");
  std::vector<std::string> paths;
  for (const Json& item : *list->AsArray()) {
    TRY_ASSIGN(std::string path, BytesFromJson(item));
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace

Json QuestionToJson(const undo::SafeguardQuestion& question) {
  Json paths = Json::Array();
  for (const std::string& path : question.sample_paths) paths.Append(BytesToJson(path));
  return Json::Object({{"kind", undo::SafeguardName(question.kind)},
                       {"step_id", question.step.value},
                       {"amount", question.amount},
                       {"sample_paths", std::move(paths)}});
}

Result<undo::SafeguardQuestion> QuestionFromJson(const Json& json) {
  undo::SafeguardQuestion question;
  TRY_ASSIGN(const std::string kind, json.GetString("kind"));
  TRY_ASSIGN(question.kind, KindFrom(kind));
  TRY_ASSIGN(question.step.value, json.GetInt("step_id"));
  TRY_ASSIGN(question.amount, json.GetUint("amount"));
  TRY_ASSIGN(question.sample_paths, SamplesFrom(json));
  return question;
}

std::string Encode(const SafeguardAsked& asked) {
  Json json = QuestionToJson(asked.question);
  return WriteJson(json.Set("project", asked.key.project)
                       .Set("question", asked.key.question)
                       .Set("command", asked.command.value));
}

std::string Encode(const SafeguardAnswered& answered) {
  Json json = KeyToJson(answered.key);
  return WriteJson(json.Set("allow", answered.decision == undo::Decision::kAllow));
}

Result<SafeguardAsked> DecodeSafeguardAsked(std::string_view frame) {
  TRY_ASSIGN(const Json json, ParseJson(frame, kMaxQuestionBytes));
  SafeguardAsked asked;
  TRY_ASSIGN(asked.key, KeyFrom(json));
  TRY_ASSIGN(asked.question, QuestionFromJson(json));
  TRY_ASSIGN(asked.command.value, json.GetInt("command"));
  asked.question.id = asked.key.question;
  return asked;
}

Result<SafeguardAnswered> DecodeSafeguardAnswered(std::string_view frame) {
  TRY_ASSIGN(const Json json, ParseJson(frame, kMaxQuestionBytes));
  SafeguardAnswered answered;
  TRY_ASSIGN(answered.key, KeyFrom(json));
  TRY_ASSIGN(const bool allow, json.GetBool("allow"));
  answered.decision = allow ? undo::Decision::kAllow : undo::Decision::kDeny;
  return answered;
}

}  // namespace sandglass::session
