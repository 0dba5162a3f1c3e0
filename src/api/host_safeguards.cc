// The host's part that asks whether a destructive step may go on.
#include <fmt/format.h>

#include <utility>

#include "api/command_output.h"
#include "api/host.h"

namespace sandglass::api {
namespace {

using undo::SafeguardKind;

template <class Number>
void SetThreshold(const Json& payload, std::string_view key, std::optional<Number>& threshold) {
  const Json* given = payload.Find(key);
  if (given == nullptr) return;
  threshold.reset();
  if (!given->is_null()) threshold = static_cast<Number>(*given->AsUint());
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
  undo::SafeguardConfig config = safeguards_.value_or(undo::SafeguardConfig{});
  SetThreshold(call.payload, "delete_threshold", config.delete_count);
  SetThreshold(call.payload, "rename_over_threshold", config.rename_over_count);
  SetThreshold(call.payload, "overwrite_threshold_bytes", config.overwrite_bytes);
  SetThreshold(call.payload, "overwrite_threshold_bytes", config.truncate_bytes);
  if (const Json* seconds = call.payload.Find("timeout_seconds"))
    config.timeout = std::chrono::seconds(*seconds->AsInt());
  ApplyConfiguration(call, limits_, config);
}

void Host::TellSafeguard(const session::SafeguardAsked& asked) {
  const std::string id = fmt::format("sg_{:03}", next_safeguard_++);
  held_.emplace(id, Held{asked.key, asked.question.step});
  const undo::SafeguardQuestion& question = asked.question;
  Json paths = Json::Array();
  for (const std::string& path : question.sample_paths) paths.Append(BytesToJson(path));
  Json payload = Json::Object({{"step_id", question.step.value}, {"safeguard_id", id}});
  if (question.kind == SafeguardKind::kDeleteCount) payload.Set("delete_count", question.amount);
  payload.Set("sample_paths", std::move(paths)).Set("message", Message(question));
  payload.Set("kind", undo::SafeguardName(question.kind)).Set("amount", question.amount);
  const auto timeout = std::chrono::ceil<std::chrono::seconds>(safeguards_->timeout);
  outlet_.Tell("event.safeguard_triggered", payload.Set("timeout_seconds", timeout.count()));
}

void Host::SettleSafeguard(const session::SafeguardKey& key, undo::Decision decision) {
  for (auto held = held_.begin(); held != held_.end();) {
    if (held->second.key != key) {
      ++held;
      continue;
    }
    const bool is_of_command = running_ && session_->running_step() == held->second.step;
    if (decision == undo::Decision::kDeny && is_of_command) denied_ = held->first;
    held = held_.erase(held);
  }
}

void Host::ConfirmSafeguard(Call call) {
  const auto held = held_.find(*call.payload.Find("safeguard_id")->AsString());
  if (held == held_.end())
    return call.reply(ApiError(ApiCode::kNotFound,
                               "no step waits for that answer; it came too late, or was given"));
  const bool allow = *call.payload.Find("action")->AsString() == "allow";
  const Status answered =
      session_->AnswerSafeguard(session::SafeguardKey(held->second.key),
                                allow ? undo::Decision::kAllow : undo::Decision::kDeny);
  if (!answered.ok()) return call.reply(FromError(answered.error()));
  call.reply(Json::Object());
}

}  // namespace sandglass::api
