#include "undo/journal_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/hash.h"

namespace sandglass::undo {
namespace {

constexpr char kMagic[8] = {'S', 'G', 'U', 'N', 'D', 'O', 'J', '\n'};
constexpr size_t kLabelOffset = 512;
static_assert(sizeof(RawJournalHeader) <= kLabelOffset);
static_assert(kLabelOffset + kMaxLabelBytes <= kJournalHeaderBytes);

uint64_t HeaderChecksum(ByteView page, size_t label_bytes) {
  const uint64_t label = HashBytes64(page.subspan(kLabelOffset, label_bytes));
  return HashBytes64(page.first(offsetof(RawJournalHeader, checksum)), label);
}

// Not in the middle of a character, where it is UTF-8; and whoever reads it sees that there was more.
std::string FittingLabel(const std::string& label) {
  constexpr std::string_view kEllipsis = "\u2026";
  if (label.size() <= kMaxLabelBytes) return label;
  const size_t most = kMaxLabelBytes - kEllipsis.size();
  size_t cut = most;
  while (most - cut < 4 && (static_cast<uint8_t>(label[cut]) & 0xC0) == 0x80) --cut;
  if (most - cut == 4) cut = most;
  return label.substr(0, cut).append(kEllipsis);
}

}  // namespace

void EncodeJournalHeader(const JournalHeader& header, std::span<uint8_t> page) {
  CHECK(page.size() == kJournalHeaderBytes);
  RawJournalHeader raw{};
  std::memcpy(raw.magic, kMagic, sizeof(kMagic));
  raw.format = kFormatVersion;
  raw.kind = static_cast<uint8_t>(header.kind);
  raw.id = header.id.value;
  raw.order = header.order;
  raw.uid = header.uid;
  raw.reverses_uid = header.reverses_uid;
  raw.opened_ns = header.opened_ns;
  raw.heartbeat_ns = header.opened_ns;
  std::memcpy(raw.boot_id, header.boot_id.data(), sizeof(raw.boot_id));
  const std::string label = FittingLabel(header.label);
  raw.label_bytes = static_cast<uint32_t>(label.size());
  std::memcpy(page.data(), &raw, sizeof(raw));
  std::memcpy(page.data() + kLabelOffset, label.data(), raw.label_bytes);
  raw.checksum = HeaderChecksum(page, raw.label_bytes);
  std::memcpy(page.data() + offsetof(RawJournalHeader, checksum), &raw.checksum,
              sizeof(raw.checksum));
}

Result<DecodedJournalHeader> DecodeJournalHeader(ByteView bytes) {
  if (bytes.size() < kJournalHeaderBytes)
    return Error(Code::kCorrupt, "journal is shorter than its header");
  const ByteView page = bytes.first(kJournalHeaderBytes);
  TRY_ASSIGN(RawJournalHeader raw, ByteCursor(page).Take<RawJournalHeader>());
  if (std::memcmp(raw.magic, kMagic, sizeof(kMagic)) != 0)
    return Error(Code::kCorrupt, "not a journal");
  if (raw.format != kFormatVersion)
    return Error(Code::kVersion, "journal of another format version");
  if (raw.label_bytes > kMaxLabelBytes || raw.kind > static_cast<uint8_t>(StepKind::kAmbient) ||
      raw.checksum != HeaderChecksum(page, raw.label_bytes)) {
    return Error(Code::kCorrupt, "journal header fails its checksum");
  }
  DecodedJournalHeader out{.header = {.id = {raw.id},
                                      .kind = static_cast<StepKind>(raw.kind),
                                      .order = raw.order,
                                      .uid = raw.uid,
                                      .reverses_uid = raw.reverses_uid,
                                      .opened_ns = raw.opened_ns},
                           .heartbeat_ns = raw.heartbeat_ns};
  std::memcpy(out.header.boot_id.data(), raw.boot_id, sizeof(raw.boot_id));
  out.header.label.assign(AsText(page.subspan(kLabelOffset, raw.label_bytes)));
  return out;
}

size_t FrameBytes(size_t payload_bytes) {
  return (kFrameHeadBytes + payload_bytes + 7) & ~size_t{7};
}

Result<Bytes> EncodeFrames(std::span<const Record> records) {
  ByteWriter payload, frames;
  for (const Record& record : records) {
    payload.Clear();
    TRY(EncodeRecord(record, payload));
    const size_t end = frames.bytes().size() + FrameBytes(payload.bytes().size());
    frames.Put(static_cast<uint32_t>(payload.bytes().size()));
    frames.Put(FrameChecksum(payload.bytes()));
    frames.PutBytes(payload.bytes());
    frames.PutBytes(Bytes(end - frames.bytes().size()));
  }
  return frames.bytes();
}

uint32_t FrameChecksum(ByteView payload) { return static_cast<uint32_t>(HashBytes64(payload)); }

namespace {

struct Frame {
  uint32_t checksum;
  ByteView payload;
};

Result<Frame> FrameAt(ByteView bytes, size_t at) {
  if (at > bytes.size()) return Error(Code::kCorrupt, "no record there");
  ByteCursor in(bytes.subspan(at));
  TRY_ASSIGN(uint32_t length, in.Take<uint32_t>());
  TRY_ASSIGN(uint32_t checksum, in.Take<uint32_t>());
  TRY_ASSIGN(ByteView payload, in.TakeBytes(length));
  return Frame{checksum, payload};
}

}  // namespace

Result<Record> DecodeFrame(ByteView bytes, size_t at) {
  TRY_ASSIGN(Frame frame, FrameAt(bytes, at));
  if (FrameChecksum(frame.payload) != frame.checksum)
    return Error(Code::kCorrupt, "record fails its checksum");
  return DecodeRecord(frame.payload);
}

Result<std::vector<Record>> DecodeFrames(ByteView bytes) {
  std::vector<Record> records;
  for (size_t at = 0; at < bytes.size();) {
    TRY_ASSIGN(const Frame frame, FrameAt(bytes, at));
    TRY_ASSIGN(records.emplace_back(), DecodeFrame(bytes, at));
    at += FrameBytes(frame.payload.size());
  }
  return records;
}

Result<Record> DecodeScanned(ByteView bytes, size_t at) {
  TRY_ASSIGN(Frame frame, FrameAt(bytes, at));
  return DecodeRecord(frame.payload);
}

FrameScan ScanFrames(ByteView bytes) {
  FrameScan scan;
  size_t at = kJournalHeaderBytes;
  while (at + kFrameHeadBytes <= bytes.size()) {
    uint32_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    if (length == 0) break;
    if (length > kMaxRecordBytes || at + kFrameHeadBytes + length > bytes.size()) {
      ++scan.damaged;
      break;
    }
    if (DecodeFrame(bytes, at).ok()) {
      scan.offsets.push_back(static_cast<uint32_t>(at / 8));
    } else {
      ++scan.damaged;
    }
    at += FrameBytes(length);
  }
  scan.end = at;
  return scan;
}

}  // namespace sandglass::undo
