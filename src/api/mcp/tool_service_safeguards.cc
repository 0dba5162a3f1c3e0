// The service's part that lets a person decide what a safeguard holds.
#include <fmt/format.h>

#include <utility>

#include "api/mcp/param_checks.h"
#include "api/mcp/tool_service.h"
#include "base/printable.h"

namespace sandglass::api::mcp {
namespace {

// A client may be able to ask by a form, by a page of its own, or both; what declares neither has forms.
bool HasForms(const Json& elicitation) {
  return elicitation.Find("form") != nullptr || elicitation.Find("url") == nullptr;
}

bool CanAskUser(const Request& request) {
  const Json* elicitation = request.CanAsk("elicitation");
  return elicitation != nullptr && HasForms(*elicitation);
}

// A person decides by this text, and a model chose the command and the names: each is one line, and no long one pushes the others out
// of sight. Who deletes may also be a process that an earlier command left behind.
std::string OneLine(std::string_view text) {
  constexpr size_t kLongest = 400;
  const std::string line = PrintableName(text);
  return line.size() <= kLongest ? line : PrintableName(text.substr(0, kLongest)) + " ...";
}

std::string QuestionText(const Json& payload, const Json& arguments) {
  std::string text = fmt::format("{}\n\nRunning now: {}\n", TextOf(payload, "message"),
                                 OneLine(TextOf(arguments, "command")));
  const Json::Items& paths = *payload.Find("sample_paths")->AsArray();
  if (!paths.empty()) text += "Among them:\n";
  for (const Json& path : paths) {
    const auto name = BytesFromJson(path);
    text += fmt::format("  {}\n", name.ok() ? OneLine(*name) : WriteJson(path));
  }
  return text + "If it is not allowed, the command ends and all that it did is taken back.";
}

Json Form() {
  Json decision =
      Json::Object({{"type", "string"},
                    {"title", "Decision"},
                    {"description", "allow: the command goes on. deny: it ends, undone."},
                    {"enum", Json::Array({"deny", "allow"})},
                    {"default", "deny"}});
  return Json::Object({{"type", "object"},
                       {"properties", Json::Object({{"decision", std::move(decision)}})},
                       {"required", Json::Array({"decision"})}});
}

// Whatever is not clearly a yes is a no.
bool IsAllowed(const Json* answer) {
  if (answer == nullptr || TextOf(*answer, "action") != "accept") return false;
  const Json* content = answer->Find("content");
  return content != nullptr && TextOf(*content, "decision") == "allow";
}

}  // namespace

bool ToolService::WantsSafeguards(const Call& call) const {
  return !has_safeguards_ && !project_.empty() && call.tool->operation == "agent.execute" &&
         CanAskUser(*call.request);
}

void ToolService::TurnSafeguardsOn(const std::string& key) {
  const auto done = [this, key](const Answer& answer) {
    // Without them nothing runs that they are for.
    if (std::holds_alternative<ApiError>(answer)) return Finish(key, answer);
    has_safeguards_ = true;
    backlog_.emplace_front([this, key] { Run(key); });
  };
  loop_.host().AskByDefault({key, Json::Object(), done});
}

void ToolService::TellHeld(Call& call, const Json& payload) {
  const std::string what = TextOf(payload, "message");
  if (CanAskUser(*call.request)) {
    call.held.push_back(fmt::format("held: {}\nThe user was asked, and did not allow it.\n", what));
    return AskUser(call, payload);
  }
  call.held.push_back(fmt::format(
      "held: {}\nOnly a person can allow that, outside of the world, with `sandglass approve {}` "
      "within {} seconds; no tool can. Tell the user, and run the command again when they are "
      "ready to answer.\n",
      what, TextOf(payload, "safeguard_id"), payload.GetInt("timeout_seconds").value()));
}

void ToolService::AskUser(Call& call, const Json& payload) {
  Json params = Json::Object(
      {{"message", QuestionText(payload, call.arguments)}, {"requestedSchema", Form()}});
  call.request->Ask("elicitation/create", std::move(params),
                    [this, id = TextOf(payload, "safeguard_id")](const Json* answer) {
                      Confirm(id, IsAllowed(answer) ? "allow" : "deny");
                    });
}

void ToolService::Confirm(const std::string& safeguard, std::string_view action) {
  loop_.log().Info("the user has decided", {{"safeguard", safeguard}, {"action", action}});
  // It may be too late; then the step was denied.
  loop_.host().Take(
      *FindOperation("safeguard.confirm"),
      {fmt::format("mcp-{}", next_key_++),
       Json::Object({{"safeguard_id", safeguard}, {"action", action}}), [](const Answer&) {}});
}

}  // namespace sandglass::api::mcp
