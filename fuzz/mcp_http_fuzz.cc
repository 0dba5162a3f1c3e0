// What a client of the HTTP server sends, up to what the message in its body says of it. Whatever is understood can be judged, and what is refused has a
// status.
#include <cstddef>
#include <cstdint>

#include "api/http/message.h"
#include "api/mcp/envelope.h"
#include "api/mcp/http_rules.h"
#include "api/mcp/messages.h"
#include "base/bytes.h"

namespace http = sandglass::api::http;
namespace mcp = sandglass::api::mcp;

namespace {

void CheckHeaders(const http::Request& request) {
  for (const auto& [name, value] : request.headers) {
    // A name of this machine stays one behind a scheme, and nothing else becomes one there.
    CHECK(mcp::IsLoopbackHost(value) == mcp::IsLoopbackOrigin("http://" + value));
    (void)mcp::IsLoopbackOrigin(value);
    (void)mcp::HasMediaType(value, "application/json");
    if (const auto id = mcp::ParseEventId(value)) {
      const auto again = mcp::ParseEventId(mcp::ToText(*id));
      CHECK(again && again->stream == id->stream && again->event == id->event);
    }
  }
  (void)mcp::HasToken(request, "0123456789abcdef");
  CHECK(http::Head(200, {}, http::Framing::kClose).ends_with("\r\n\r\n"));
  CHECK(http::Chunk(request.body).ends_with("\r\n"));
  CHECK(http::Head(200, request.headers, http::Framing::kChunks).ends_with("\r\n\r\n"));
  CHECK(!request.Header("Host") || request.Count("host") == 1);
}

// What the body says of its client agrees with the headers, or there is a number for why not.
void CheckBody(const http::Request& request) {
  for (const mcp::Item& item : mcp::ParseLine(request.body).items) {
    const auto* message = std::get_if<mcp::Message>(&item);
    if (message == nullptr) continue;
    const auto mismatch = mcp::FindHeaderMismatch(request, *message);
    if (mismatch) CHECK(mismatch->number == mcp::kHeaderMismatch);
    const auto envelope = mcp::ParseEnvelope(message->params);
    if (!mcp::HasEnvelope(message->params))
      CHECK(std::get<mcp::ProtocolError>(envelope).number == mcp::kInvalidParams);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr http::Limits kLimits{.head_bytes = 4096, .body_bytes = 4096};
  http::Reader reader(kLimits);
  std::string bytes(sandglass::AsText(sandglass::ByteView(data, size)));
  while (true) {
    const auto outcome = reader.Next(bytes);
    (void)reader.TakeExpectation();
    if (outcome.bad) {
      CHECK(outcome.bad->status >= 400 && outcome.bad->status < 500);
      CHECK(http::Head(outcome.bad->status, {}, http::Framing::kLength, 1).ends_with("\r\n\r\n"));
    }
    if (!outcome.request) return 0;
    CHECK(!reader.inside_request());
    CHECK(outcome.request->body.size() <= kLimits.body_bytes);
    CheckHeaders(*outcome.request);
    CheckBody(*outcome.request);
  }
}
