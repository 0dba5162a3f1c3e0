// What a session and its bridge process say to each other. The first byte chooses the decoder; what is understood must survive being
// said again.
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "session/bridge_messages.h"
#include "session/safeguard_messages.h"

namespace session = sandglass::session;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view frame = sandglass::AsText(sandglass::ByteView(data + 1, size - 1));
  switch (data[0] % 9) {
    case 0:
      if (const auto request = session::DecodeBridgeRequest(frame); request.ok())
        CHECK(session::DecodeBridgeRequest(session::Encode(*request)).value() == *request);
      break;
    case 1:
      if (const auto opened = session::DecodeOpened(frame); opened.ok())
        CHECK(session::DecodeOpened(session::Encode(*opened)).ok());
      break;
    case 2:
      if (const auto closed = session::DecodeClosed(frame); closed.ok())
        CHECK(session::DecodeClosed(session::Encode(*closed)).value().notices == closed->notices);
      break;
    case 3:
      if (const auto position = session::DecodePosition(frame); position.ok())
        CHECK(session::DecodePosition(session::Encode(*position)).value().next == position->next);
      break;
    case 5:
      if (const auto ended = session::DecodeEnded(frame); ended.ok())
        CHECK(session::DecodeEnded(session::Encode(*ended)).value().notices == ended->notices);
      break;
    case 6:
      if (const auto written = session::DecodeWritten(frame); written.ok())
        CHECK(session::DecodeWritten(session::Encode(*written)).value().next == written->next);
      break;
    case 7:
      if (const auto asked = session::DecodeSafeguardAsked(frame); asked.ok())
        CHECK(session::DecodeSafeguardAsked(session::Encode(*asked)).value().key == asked->key);
      break;
    case 8:
      if (const auto answered = session::DecodeSafeguardAnswered(frame); answered.ok())
        CHECK(session::DecodeSafeguardAnswered(session::Encode(*answered)).value().key ==
              answered->key);
      break;
    default:
      if (const auto failed = session::DecodeFailed(frame))
        CHECK(session::DecodeFailed(session::Encode(*failed))->error.code() ==
              failed->error.code());
  }
  return 0;
}
