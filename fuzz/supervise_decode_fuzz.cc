// Everything that the supervisor decodes from a task's memory or from /proc. The first byte chooses the decoder.
#include <cstddef>
#include <cstdint>

#include "bridge/supervise/decode.h"

namespace bridge = sandglass::bridge;

namespace {

void CheckTimes(sandglass::ByteView bytes, bridge::TimeLayout layout) {
  CHECK(bytes.size() >= bridge::TimesSize(layout) || !bridge::DecodeTimes(bytes, layout).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const sandglass::ByteView bytes(data + 1, size - 1);
  const std::string_view text = sandglass::AsText(bytes);
  switch (data[0] % 9) {
    case 0:
      if (const auto how = bridge::DecodeOpenHow(bytes); how.ok()) (void)bridge::CheckOpenHow(*how);
      break;
    case 1:
      CheckTimes(bytes, bridge::TimeLayout::kTimespec);
      break;
    case 2:
      CheckTimes(bytes, bridge::TimeLayout::kTimeval);
      break;
    case 3:
      CheckTimes(bytes, bridge::TimeLayout::kSeconds);
      break;
    case 4:
      (void)bridge::DecodeUnixPath(bytes);
      break;
    case 8:
      (void)bridge::IsModeAsAcl(bytes);
      break;
    case 5:
      (void)bridge::DecodeStatus(text);
      break;
    case 6:
      (void)bridge::DecodeFileSizeLimit(text);
      break;
    case 7:
      (void)bridge::DecodeMountInfo(text);
      break;
  }
  return 0;
}
