// A line that a client sends. What is understood fits its envelope, and whatever is refused can be said back as one line.
#include <cstddef>
#include <cstdint>

#include "api/stdio/messages.h"
#include "base/bytes.h"

namespace api = sandglass::api;

namespace {

void CheckLine(const std::string& line) {
  CHECK(!line.empty() && line.back() == '\n' && line.find('\n') == line.size() - 1);
  CHECK(sandglass::ParseJson(std::string_view(line).substr(0, line.size() - 1), 64 << 20).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = api::stdio::ParseRequest(sandglass::AsText(sandglass::ByteView(data, size)));
  if (const auto* refused = std::get_if<api::stdio::Refused>(&parsed)) {
    CheckLine(api::stdio::EncodeRefusal(*refused));
    return 0;
  }
  const auto& request = std::get<api::stdio::Request>(parsed);
  CHECK(request.operation != nullptr && !request.request_id.empty());
  CHECK(request.payload.AsObject() != nullptr);
  (void)api::FindMismatch(*request.operation->request, request.payload);
  CheckLine(api::stdio::EncodeResponse(request.request_id, request.payload));
  return 0;
}
