// A line that an MCP client sends. What is understood has its parts, and whatever is refused can be said back as one line.
#include <cstddef>
#include <cstdint>

#include "api/mcp/messages.h"
#include "api/mcp/resource_uri.h"
#include "api/mcp/tools.h"
#include "base/bytes.h"

namespace mcp = sandglass::api::mcp;
using sandglass::Json;

namespace {

void CheckSayable(const Json& message) {
  const std::string line = sandglass::WriteJson(message);
  CHECK(line.find('\n') == line.npos);
  CHECK(sandglass::ParseJson(line, 64 << 20).ok());
}

void CheckCall(const mcp::Message& message) {
  const Json* name = message.params.Find("name");
  const Json* arguments = message.params.Find("arguments");
  if (name == nullptr || name->AsString() == nullptr || arguments == nullptr) return;
  if (const mcp::Tool* tool = mcp::FindTool(*name->AsString()))
    (void)mcp::FindMismatch(*tool, *arguments);
}

// A name of a resource is read back as it is written.
void CheckResource(const mcp::Message& message) {
  const Json* uri = message.params.Find("uri");
  if (uri == nullptr || uri->AsString() == nullptr) return;
  const auto resource = mcp::ParseUri(*uri->AsString());
  if (!resource) return;
  CHECK(mcp::ParseUri(mcp::UriOf(*resource)) == resource);
  if (const auto* file = std::get_if<mcp::FileResource>(&*resource))
    CHECK(file->path.find('\0') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const mcp::Line line = mcp::ParseLine(sandglass::AsText(sandglass::ByteView(data, size)));
  CHECK(!line.items.empty());
  for (const mcp::Item& item : line.items) {
    if (const auto* refused = std::get_if<mcp::Refused>(&item))
      CheckSayable(mcp::ErrorMessage(*refused));
    const auto* message = std::get_if<mcp::Message>(&item);
    if (message == nullptr) continue;
    CHECK(!message->method.empty() && message->params.AsObject() != nullptr);
    CheckSayable(mcp::ResultMessage(message->id, message->params));
    CheckSayable(mcp::RequestMessage(message->id, message->method, message->params));
    CheckSayable(mcp::NotificationMessage(message->method, message->params));
    CheckCall(*message);
    CheckResource(*message);
  }
  return 0;
}
