#include "tests/mcp_clients/conformance_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sandglass::test {
namespace {

constexpr std::chrono::milliseconds kPause{50};
// One red pixel.
constexpr std::string_view kPng =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
// A WAV file with no sample.
constexpr std::string_view kWav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
constexpr std::string_view kNoArguments = R"({"type":"object","properties":{}})";

Json Parsed(std::string_view text) { return ParseJson(text).value(); }
Json Text(std::string_view text) { return Json::Object({{"type", "text"}, {"text", text}}); }
Json ImageContent() {
  return Json::Object({{"type", "image"}, {"data", kPng}, {"mimeType", "image/png"}});
}
Json ResourceContent(std::string_view uri, std::string_view type, std::string_view text) {
  return Json::Object(
      {{"type", "resource"},
       {"resource", Json::Object({{"uri", uri}, {"mimeType", type}, {"text", text}})}});
}
Json Contents(Json items) { return Json::Object({{"content", std::move(items)}}); }
Json FromUser(Json content) {
  return Json::Object({{"role", "user"}, {"content", std::move(content)}});
}

std::string Argument(const api::mcp::Request& request, std::string_view name) {
  const Json* arguments = request.params().Find("arguments");
  const Json* value = arguments != nullptr ? arguments->Find(name) : nullptr;
  return value != nullptr && value->AsString() != nullptr ? *value->AsString() : "";
}

std::string Param(const api::mcp::Request& request, std::string_view name) {
  const auto value = request.params().GetString(name);
  return value.ok() ? *value : "";
}

void Refuse(api::mcp::Request& request, std::string why) {
  request.Fail({api::ApiCode::kInvalidArgument, std::move(why)});
}

struct Prompt {
  std::string_view name, arguments;
};
constexpr Prompt kPrompts[] = {
    {"test_simple_prompt", "[]"},
    {"test_prompt_with_arguments",
     R"([{"name":"arg1","description":"First","required":true},{"name":"arg2","description":"Second","required":true}])"},
    {"test_prompt_with_embedded_resource",
     R"([{"name":"resourceUri","description":"What to embed","required":true}])"},
    {"test_prompt_with_image", "[]"},
};

Json MessagesOf(const std::string& prompt, const api::mcp::Request& request) {
  if (prompt == "test_simple_prompt")
    return Json::Array({FromUser(Text("This is a simple prompt for testing."))});
  if (prompt == "test_prompt_with_arguments")
    return Json::Array(
        {FromUser(Text(fmt::format("Prompt with arguments: arg1='{}', arg2='{}'",
                                   Argument(request, "arg1"), Argument(request, "arg2"))))});
  if (prompt == "test_prompt_with_image")
    return Json::Array(
        {FromUser(ImageContent()), FromUser(Text("Please analyze the image above."))});
  return Json::Array({FromUser(ResourceContent(Argument(request, "resourceUri"), "text/plain",
                                               "Embedded resource content for testing.")),
                      FromUser(Text("Please process the embedded resource above."))});
}

}  // namespace

const ConformanceService::Method ConformanceService::kMethods[] = {
    {"tools/list", &ConformanceService::ListTools},
    {"tools/call", &ConformanceService::CallTool},
    {"resources/list", &ConformanceService::ListResources},
    {"resources/templates/list", &ConformanceService::ListTemplates},
    {"resources/read", &ConformanceService::ReadResource},
    {"resources/subscribe", &ConformanceService::Acknowledge},
    {"resources/unsubscribe", &ConformanceService::Acknowledge},
    {"prompts/list", &ConformanceService::ListPrompts},
    {"prompts/get", &ConformanceService::GetPrompt},
    {"completion/complete", &ConformanceService::Complete},
    {"logging/setLevel", &ConformanceService::Acknowledge},
};

const ConformanceService::Tool ConformanceService::kTools[] = {
    {"test_simple_text", "A text.", kNoArguments, &ConformanceService::SimpleText},
    {"test_image_content", "An image.", kNoArguments, &ConformanceService::Image},
    {"test_audio_content", "A sound.", kNoArguments, &ConformanceService::Audio},
    {"test_embedded_resource", "A resource.", kNoArguments, &ConformanceService::EmbeddedResource},
    {"test_multiple_content_types", "Several.", kNoArguments, &ConformanceService::MixedContent},
    {"test_tool_with_logging", "Logs.", kNoArguments, &ConformanceService::WithLogging},
    {"test_tool_with_progress", "Tells.", kNoArguments, &ConformanceService::WithProgress},
    {"test_error_handling", "Fails.", kNoArguments, &ConformanceService::Failing},
    {"test_sampling", "Asks the model.",
     R"({"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]})",
     &ConformanceService::Sampling},
    {"test_elicitation", "Asks the user.",
     R"({"type":"object","properties":{"message":{"type":"string"}},"required":["message"]})",
     &ConformanceService::Elicitation},
    {"test_elicitation_sep1034_defaults", "Asks with defaults.", kNoArguments,
     &ConformanceService::ElicitDefaults},
    {"test_elicitation_sep1330_enums", "Asks with choices.", kNoArguments,
     &ConformanceService::ElicitEnums},
    {"test_reconnection", "Takes a moment.", kNoArguments, &ConformanceService::Reconnection},
    {"json_schema_2020_12_tool", "Has a schema of that draft.",
     R"({"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",)"
     R"("$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},)"
     R"("properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false})",
     &ConformanceService::SimpleText},
};

Json ConformanceService::Info(const api::mcp::Version& /*version*/) const {
  return Json::Object({{"name", "sandglass-conformance"}, {"version", "1"}});
}

Json ConformanceService::Capabilities(const api::mcp::Version& /*version*/) const {
  return Parsed(
      R"({"tools":{},"resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{}})");
}

api::mcp::Service::Taken ConformanceService::Take(const Request& request) {
  const auto* method = std::ranges::find(kMethods, request->method(), &Method::name);
  if (method == std::end(kMethods)) return Taken::kNoSuchMethod;
  (this->*method->take)(request);
  return Taken::kYes;
}

// --- Time

void ConformanceService::After(std::chrono::milliseconds time, std::function<void()> then) {
  later_.emplace(clock_.Now() + time, std::move(then));
}

std::optional<Instant> ConformanceService::Deadline() const {
  return later_.empty() ? std::nullopt : std::optional(later_.begin()->first);
}

void ConformanceService::Work() {
  while (!later_.empty() && later_.begin()->first <= clock_.Now()) {
    const auto then = std::move(later_.begin()->second);
    later_.erase(later_.begin());
    then();
  }
}

// --- Methods

void ConformanceService::Acknowledge(const Request& request) { request->Succeed(Json::Object()); }

void ConformanceService::ListTools(const Request& request) {
  Json tools = Json::Array();
  for (const Tool& tool : kTools)
    tools.Append(Json::Object({{"name", tool.name},
                               {"description", tool.description},
                               {"inputSchema", Parsed(tool.schema)}}));
  request->Succeed(Json::Object({{"tools", std::move(tools)}}));
}

void ConformanceService::CallTool(const Request& request) {
  const auto* tool = std::ranges::find(kTools, Param(*request, "name"), &Tool::name);
  if (tool == std::end(kTools)) return Refuse(*request, "there is no such tool");
  (this->*tool->call)(request);
}

void ConformanceService::ListResources(const Request& request) {
  request->Succeed(Parsed(
      R"({"resources":[{"uri":"test://static-text","name":"text","description":"A text","mimeType":"text/plain"},)"
      R"({"uri":"test://static-binary","name":"binary","description":"An image","mimeType":"image/png"},)"
      R"({"uri":"test://watched-resource","name":"watched","description":"A text","mimeType":"text/plain"}]})"));
}

void ConformanceService::ListTemplates(const Request& request) {
  request->Succeed(Parsed(
      R"({"resourceTemplates":[{"uriTemplate":"test://template/{id}/data","name":"template","mimeType":"application/json"}]})"));
}

void ConformanceService::ReadResource(const Request& request) {
  constexpr std::string_view kBegin = "test://template/", kEnd = "/data";
  const std::string uri = Param(*request, "uri");
  Json content = Json::Object({{"uri", uri}});
  if (uri == "test://static-text" || uri == "test://watched-resource") {
    content.Set("mimeType", "text/plain")
        .Set("text", "This is the content of the static text resource.");
  } else if (uri == "test://static-binary") {
    content.Set("mimeType", "image/png").Set("blob", kPng);
  } else if (uri.starts_with(kBegin) && uri.ends_with(kEnd)) {
    const std::string id = uri.substr(kBegin.size(), uri.size() - kBegin.size() - kEnd.size());
    const Json data = Json::Object(
        {{"id", id}, {"templateTest", true}, {"data", fmt::format("Data for ID: {}", id)}});
    content.Set("mimeType", "application/json").Set("text", WriteJson(data));
  } else {
    return Refuse(*request, "there is no such resource");
  }
  request->Succeed(Json::Object({{"contents", Json::Array({std::move(content)})}}));
}

void ConformanceService::ListPrompts(const Request& request) {
  Json prompts = Json::Array();
  for (const Prompt& prompt : kPrompts)
    prompts.Append(Json::Object({{"name", prompt.name},
                                 {"description", "For tests"},
                                 {"arguments", Parsed(prompt.arguments)}}));
  request->Succeed(Json::Object({{"prompts", std::move(prompts)}}));
}

void ConformanceService::GetPrompt(const Request& request) {
  const std::string name = Param(*request, "name");
  if (std::ranges::find(kPrompts, name, &Prompt::name) == std::end(kPrompts))
    return Refuse(*request, "there is no such prompt");
  request->Succeed(Json::Object({{"messages", MessagesOf(name, *request)}}));
}

void ConformanceService::Complete(const Request& request) {
  request->Succeed(Parsed(R"({"completion":{"values":[],"total":0,"hasMore":false}})"));
}

// --- Tools

void ConformanceService::SimpleText(const Request& request) {
  request->Succeed(Contents(Json::Array({Text("This is a simple text response for testing.")})));
}

void ConformanceService::Image(const Request& request) {
  request->Succeed(Contents(Json::Array({ImageContent()})));
}

void ConformanceService::Audio(const Request& request) {
  request->Succeed(Contents(
      Json::Array({Json::Object({{"type", "audio"}, {"data", kWav}, {"mimeType", "audio/wav"}})})));
}

void ConformanceService::EmbeddedResource(const Request& request) {
  request->Succeed(Contents(Json::Array({ResourceContent(
      "test://embedded-resource", "text/plain", "This is an embedded resource content.")})));
}

void ConformanceService::MixedContent(const Request& request) {
  request->Succeed(
      Contents(Json::Array({Text("Multiple content types test:"), ImageContent(),
                            ResourceContent("test://mixed-content-resource", "application/json",
                                            R"({"test":"data","value":123})")})));
}

void ConformanceService::WithLogging(const Request& request) {
  const auto log = [request](std::string_view text) {
    request->Notify("notifications/message", Json::Object({{"level", "info"}, {"data", text}}));
  };
  log("Tool execution started");
  After(kPause, [log] { log("Tool processing data"); });
  After(2 * kPause, [log, request] {
    log("Tool execution completed");
    request->Succeed(Contents(Json::Array({Text("Logged.")})));
  });
}

void ConformanceService::WithProgress(const Request& request) {
  const Json* meta = request->params().Find("_meta");
  const Json* token = meta != nullptr ? meta->Find("progressToken") : nullptr;
  const auto tell = [request, token = token != nullptr ? *token : Json()](int progress) {
    if (token.is_null()) return;
    request->Notify(
        "notifications/progress",
        Json::Object({{"progressToken", token}, {"progress", progress}, {"total", 100}}));
  };
  tell(0);
  After(kPause, [tell] { tell(50); });
  After(2 * kPause, [tell, request] {
    tell(100);
    request->Succeed(Contents(Json::Array({Text("Told.")})));
  });
}

void ConformanceService::Failing(const Request& request) {
  Json result =
      Contents(Json::Array({Text("This tool intentionally returns an error for testing")}));
  request->Succeed(result.Set("isError", true));
}

void ConformanceService::Sampling(const Request& request) {
  if (request->CanAsk("sampling") == nullptr) return Refuse(*request, "the client has no sampling");
  const Json message = FromUser(Text(Argument(*request, "prompt")));
  request->Ask("sampling/createMessage",
               Json::Object({{"messages", Json::Array({message})}, {"maxTokens", 100}}),
               [request](const Json* result) {
                 const Json* content = result != nullptr ? result->Find("content") : nullptr;
                 const Json* text = content != nullptr ? content->Find("text") : nullptr;
                 request->Succeed(Contents(Json::Array({Text(fmt::format(
                     "LLM response: {}", text != nullptr ? WriteJson(*text) : "none"))})));
               });
}

void ConformanceService::Elicit(const Request& request, const Json& params) {
  if (request->CanAsk("elicitation") == nullptr)
    return Refuse(*request, "the client has no elicitation");
  request->Ask("elicitation/create", params, [request](const Json* result) {
    request->Succeed(Contents(Json::Array({Text(
        fmt::format("User response: {}", result != nullptr ? WriteJson(*result) : "none"))})));
  });
}

void ConformanceService::Elicitation(const Request& request) {
  Json params = Parsed(
      R"({"requestedSchema":{"type":"object","properties":{"username":{"type":"string","description":"User's response"},)"
      R"("email":{"type":"string","description":"User's email address"}},"required":["username","email"]}})");
  Elicit(request, params.Set("message", Argument(*request, "message")));
}

void ConformanceService::ElicitDefaults(const Request& request) {
  Elicit(
      request,
      Parsed(
          R"({"message":"Defaults","requestedSchema":{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},)"
          R"("age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},)"
          R"("status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},)"
          R"("verified":{"type":"boolean","default":true}},"required":[]}})"));
}

void ConformanceService::ElicitEnums(const Request& request) {
  Elicit(
      request,
      Parsed(
          R"({"message":"Choices","requestedSchema":{"type":"object","properties":{)"
          R"("untitledSingle":{"type":"string","enum":["option1","option2","option3"]},)"
          R"("titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"}]},)"
          R"("legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},)"
          R"("untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},)"
          R"("titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"}]}}},)"
          R"("required":[]}})"));
}

void ConformanceService::Reconnection(const Request& request) {
  After(2 * kPause, [request] { request->Succeed(Contents(Json::Array({Text("Reconnected.")}))); });
}

}  // namespace sandglass::test
