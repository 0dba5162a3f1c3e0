// The host's part that asks whether a destructive step may go on.
#include <fmt/format.h>

#include <utility>

#include "api/command_output.h"
#include "api/host.h"

namespace sandglass::api {
namespace {

using undo::SafeguardKind;

template <class Number>
void SetThreshold(const Json& payload, std::string_view key,
                  GivenSafeguards::Threshold<Number>& threshold) {
  const Json* given = payload.Find(key);
  if (given == nullptr) return;
  threshold.emplace();
  if (!given->is_null()) *threshold = static_cast<Number>(*given->AsUint());
}

std::string Message(const undo::SafeguardQuestion& question) {
  const auto step = question.step.value;
  switch (question.kind) {
    case SafeguardKind::kDeleteCount:
      return fmt::format(
          "Step {} is attempting to delete {} files/directories. Awaiting confirmation.", step,
          question.amount);
    case SafeguardKind::kOverwriteLarge:
      return fmt::format("Step {} is about to overwrite a file of {} bytes. Awaiting confirmation.",
                         step, question.amount);
    case SafeguardKind::kTruncateLarge:
      return fmt::format("Step {} is about to truncate a file of {} bytes. Awaiting confirmation.",
                         step, question.amount);
    case SafeguardKind::kRenameOver:
      return fmt::format(
          "Step {} is about to rename over {} existing files. Awaiting confirmation.", step,
          question.amount);
    case SafeguardKind::kUndoLimit:
      return fmt::format(
          "Step {} needs more room for its undo than one step may have; if it goes on, it cannot "
          "be "
          "undone exactly. Awaiting confirmation.",
          step);
  }
  return "";
}

}  // namespace

void Host::ConfigureSafeguards(Call call) {
  if (running_) return call.reply(RunningError());
  GivenSafeguards given = safeguards_;
  given.configured = true;
  SetThreshold(call.payload, "delete_threshold", given.delete_count);
  SetThreshold(call.payload, "rename_over_threshold", given.rename_over_count);
  SetThreshold(call.payload, "overwrite_threshold_bytes", given.overwrite_bytes);
  if (const Json* seconds = call.payload.Find("timeout_seconds"))
    given.timeout = std::chrono::seconds(*seconds->AsInt());
  ApplyConfiguration(call, limits_, given);
}

void Host::AskByDefault(Call call) {
  if (running_) return call.reply(RunningError());
  GivenSafeguards given = safeguards_;
  given.configured = given.by_default = true;
  ApplyConfiguration(call, limits_, given);
}

void Host::TellSafeguard(const session::HeldOperation& held) {
  const undo::SafeguardQuestion& question = held.question;
  held_.emplace(held.id, question.step);
  Json paths = Json::Array();
  for (const std::string& path : question.sample_paths) paths.Append(BytesToJson(path));
  Json payload = Json::Object({{"step_id", question.step.value}, {"safeguard_id", held.id}});
  if (question.kind == SafeguardKind::kDeleteCount) payload.Set("delete_count", question.amount);
  payload.Set("sample_paths", std::move(paths)).Set("message", Message(question));
  payload.Set("kind", undo::SafeguardName(question.kind)).Set("amount", question.amount);
  const auto timeout = std::chrono::ceil<std::chrono::seconds>(held.left);
  outlet_.Tell("event.safeguard_triggered", payload.Set("timeout_seconds", timeout.count()));
}

void Host::SettleSafeguard(const std::string& id, undo::Decision decision) {
  const auto held = held_.find(id);
  if (held == held_.end()) return;
  const bool is_of_command = running_ && session_->running_step() == held->second;
  if (decision == undo::Decision::kDeny && is_of_command) denied_ = id;
  held_.erase(held);
}

void Host::ConfirmSafeguard(Call call) {
  const std::string id = *call.payload.Find("safeguard_id")->AsString();
  if (!held_.contains(id))
    return call.reply(ApiError(ApiCode::kNotFound,
                               "no step waits for that answer; it came too late, or was given"));
  const bool allow = *call.payload.Find("action")->AsString() == "allow";
  const Status answered =
      session_->AnswerSafeguard(id, allow ? undo::Decision::kAllow : undo::Decision::kDeny);
  if (!answered.ok()) return call.reply(FromError(answered.error()));
  call.reply(Json::Object());
}

}  // namespace sandglass::api
