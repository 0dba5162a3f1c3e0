// What another program says to a session, and what a session answers. The first byte chooses the decoder; what is understood must
// survive being said again.
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "session/held_requests.h"
#include "undo/report_json.h"

namespace session = sandglass::session;
namespace undo = sandglass::undo;

namespace {

void TryRequest(std::string_view line) {
  const auto request = session::DecodeSessionRequest(line);
  if (!request.ok()) return;
  const std::string again =
      std::visit([](const auto& one) { return session::Encode(one); }, *request);
  CHECK(session::DecodeSessionRequest(again).value() == *request);
}

void TryAnswer(std::string_view line) {
  if (const auto answer = session::DecodeRewindAnswer(line); answer.ok())
    CHECK(session::DecodeRewindAnswer(session::Encode(*answer)).ok());
}

void TryProgress(std::string_view line) {
  const auto progress = session::DecodeProgress(line);
  if (!progress) return;
  const auto again = session::DecodeProgress(session::Encode(*progress));
  CHECK(again && again->done == progress->done && again->total == progress->total);
}

void TryRecovery(std::string_view line) {
  const auto json = sandglass::ParseJson(line);
  if (!json.ok()) return;
  if (const auto report = undo::RecoveryReportFromJson(*json); report.ok())
    CHECK(undo::RecoveryReportFromJson(undo::ToJson(*report)).value().step == report->step);
}

void TryHeldAnswer(std::string_view line) {
  if (const auto answer = session::DecodeHeldAnswer(line); answer.ok())
    CHECK(session::DecodeHeldAnswer(session::Encode(*answer)).value().held.size() ==
          answer->held.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  using Try = void (*)(std::string_view);
  constexpr Try kTries[] = {TryRequest, TryAnswer, TryProgress, TryRecovery, TryHeldAnswer};
  kTries[static_cast<uint8_t>(data[0] - '0') % std::size(kTries)](
      sandglass::AsText(sandglass::ByteView(data + 1, size - 1)));
  return 0;
}
