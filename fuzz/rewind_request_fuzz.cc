// What another program says to a session, and what a session answers. The first byte chooses the decoder; what is understood must
// survive being said again.
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "session/rewind_request.h"

namespace session = sandglass::session;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view line = sandglass::AsText(sandglass::ByteView(data + 1, size - 1));
  if (data[0] % 2 == 0) {
    const auto request = session::DecodeRewindRequest(line);
    if (request.ok())
      CHECK(session::DecodeRewindRequest(session::Encode(*request)).value() == *request);
  } else if (const auto answer = session::DecodeRewindAnswer(line); answer.ok()) {
    CHECK(session::DecodeRewindAnswer(session::Encode(*answer)).ok());
  }
  return 0;
}
