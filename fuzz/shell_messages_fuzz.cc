// What a shell, or whatever runs in it, says to the session.
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "session/shell_messages.h"

namespace session = sandglass::session;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto message = session::DecodeShellMessage(sandglass::AsText({data, size}));
  if (!message.ok()) return 0;
  CHECK(!message->tag.empty() && message->tag.size() <= session::kMaxTagBytes);
  if (const auto* typed = std::get_if<session::WordsTyped>(&message->what))
    CHECK(!typed->words.empty());
  CHECK(session::Encode(message->tag, {}).ends_with('\0'));
  return 0;
}
