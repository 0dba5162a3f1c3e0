#include "session/watch/event_records.h"

#include <linux/fanotify.h>
#include <sys/inotify.h>

#include <cstddef>

#include "base/rel_path.h"

namespace sandglass::session {
namespace {

// inotify_event without the name that follows it.
struct InotifyHead {
  int32_t watch;
  uint32_t mask, cookie, name_bytes;
};
static_assert(sizeof(InotifyHead) == sizeof(inotify_event));

// A name in a field of fixed size, filled up with zeros. Of the folder itself fanotify says ".", inotify nothing.
Result<std::string_view> NameIn(ByteView field) {
  std::string_view name = AsText(field);
  name = name.substr(0, name.find('\0'));
  if (name == ".") return std::string_view();
  if (!name.empty() && !IsName(name))
    return Error(Code::kCorrupt, "a change of a name that is none");
  return name;
}

Error BadRecord() { return Error(Code::kCorrupt, "a record of a change is not whole"); }

// The part of a record that says where; `body` begins after its header.
Status TakeFolder(ByteView body, FanotifyRecord& record) {
  ByteCursor in(body);
  TRY(in.Take<__kernel_fsid_t>());
  TRY_ASSIGN(const uint32_t bytes, in.Take<uint32_t>());
  TRY_ASSIGN(record.handle_type, in.Take<int32_t>());
  TRY_ASSIGN(record.handle, in.TakeBytes(bytes));
  TRY_ASSIGN(const ByteView name, in.TakeBytes(in.remaining()));
  TRY_ASSIGN(record.name, NameIn(name));
  return Ok();
}

Status TakeInfo(ByteCursor& in, FanotifyRecord& record) {
  TRY_ASSIGN(const auto head, in.Take<fanotify_event_info_header>());
  if (head.len < sizeof(head)) return BadRecord();
  TRY_ASSIGN(const ByteView body, in.TakeBytes(head.len - sizeof(head)));
  if (head.info_type != FAN_EVENT_INFO_TYPE_DFID_NAME) return Ok();
  return TakeFolder(body, record);
}

Result<FanotifyRecord> TakeFanotify(ByteCursor& in) {
  TRY_ASSIGN(const auto head, in.Take<fanotify_event_metadata>());
  if (head.vers != FANOTIFY_METADATA_VERSION)
    return Error(Code::kVersion, "the kernel has another version of fanotify");
  if (head.metadata_len != sizeof(head) || head.event_len < sizeof(head)) return BadRecord();
  FanotifyRecord record{.mask = head.mask, .pid = head.pid};
  TRY_ASSIGN(const ByteView infos, in.TakeBytes(head.event_len - sizeof(head)));
  ByteCursor rest(infos);
  while (!rest.empty()) TRY(TakeInfo(rest, record));
  return record;
}

}  // namespace

Result<std::vector<InotifyRecord>> ParseInotify(ByteView buffer) {
  std::vector<InotifyRecord> records;
  ByteCursor in(buffer);
  while (!in.empty()) {
    TRY_ASSIGN(const auto head, in.Take<InotifyHead>());
    TRY_ASSIGN(const ByteView field, in.TakeBytes(head.name_bytes));
    TRY_ASSIGN(const std::string_view name, NameIn(field));
    records.push_back(
        {.watch = head.watch, .mask = head.mask, .cookie = head.cookie, .name = name});
  }
  return records;
}

Result<std::vector<FanotifyRecord>> ParseFanotify(ByteView buffer) {
  std::vector<FanotifyRecord> records;
  ByteCursor in(buffer);
  while (!in.empty()) {
    TRY_ASSIGN(const FanotifyRecord record, TakeFanotify(in));
    records.push_back(record);
  }
  return records;
}

}  // namespace sandglass::session
