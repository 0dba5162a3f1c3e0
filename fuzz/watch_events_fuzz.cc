// What the kernel tells of changes to files, and what the bridge process tells the session of them. The first byte chooses the decoder.
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/rel_path.h"
#include "session/watch/event_records.h"
#include "session/watch/external_modification.h"

namespace session = sandglass::session;

namespace {

void CheckName(std::string_view name) { CHECK(name.empty() || sandglass::IsName(name)); }

// What is told of many paths is what a reader takes.
void CheckTold(const session::ExternalModification& event) {
  session::ExternalModification told = event;
  told.affected_paths.clear();
  session::SetPaths(event.affected_paths, told);
  CHECK(told.affected == event.affected_paths.size());
  CHECK(session::DecodeExternalModification(session::Encode(told)).value() == told);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const sandglass::ByteView bytes(data + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      if (const auto records = session::ParseInotify(bytes); records.ok())
        for (const session::InotifyRecord& record : *records) CheckName(record.name);
      break;
    case 1:
      if (const auto records = session::ParseFanotify(bytes); records.ok())
        for (const session::FanotifyRecord& record : *records) CheckName(record.name);
      break;
    default:
      if (const auto event = session::DecodeExternalModification(sandglass::AsText(bytes));
          event.ok()) {
        CHECK(session::DecodeExternalModification(session::Encode(*event)).value() == *event);
        CHECK(!session::NoticeOf(*event).empty());
        CheckTold(*event);
      }
  }
  return 0;
}
