// The bytes of a journal: a page of header, then records, each in a frame with its length and
// checksum. docs/formats/undo.md is their description.
//
// Pure functions over bytes, no I/O. Decoding never reads past its input and allocates no more than
// a small multiple of it: the input may be damaged, or written by someone hostile. Value types; any
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "undo/record.h"
#include "undo/types.h"

namespace sandglass::undo {

inline constexpr uint32_t kFormatVersion = 1;
inline constexpr size_t kJournalHeaderBytes = 4096;
inline constexpr size_t kMaxLabelBytes = 3072;
inline constexpr size_t kFrameHeadBytes = 8;  // u32 length of the payload, u32 checksum of it

// What is known about a step from the start.
struct JournalHeader {
  StepId id;
  StepKind kind = StepKind::kCommand;
  uint64_t order =
      0;  // position in the history; ids of ambient steps are negative, this always grows
  uint64_t uid = 0;           // unique for every journal ever written
  uint64_t reverses_uid = 0;  // of a rewind: the uid of the journal that it takes back
  int64_t opened_ns = 0;
  std::array<uint8_t, 16> boot_id{};
  std::string label;
};

// The fixed part of the header page. `checksum` covers everything before it and the label; what
// follows it changes while the step is open and proves nothing by itself.
struct RawJournalHeader {
  char magic[8];
  uint32_t format;
  uint8_t kind;
  uint8_t reserved[3];
  int64_t id;
  uint64_t order;
  uint64_t uid;
  uint64_t reverses_uid;
  int64_t opened_ns;
  uint8_t boot_id[16];
  uint32_t label_bytes;
  uint32_t reserved2;
  uint64_t checksum;
  int64_t heartbeat_ns;
  uint64_t cursor;
};

struct DecodedJournalHeader {
  JournalHeader header;
  int64_t heartbeat_ns = 0;
};

// `page` has kJournalHeaderBytes, all zero. A label longer than kMaxLabelBytes is cut, and ends in an ellipsis.
void EncodeJournalHeader(const JournalHeader& header, std::span<uint8_t> page);
// kCorrupt: too short, not a journal, or damaged. kVersion: another format.
Result<DecodedJournalHeader> DecodeJournalHeader(ByteView bytes);

// Frames start at multiples of 8: the room that one takes with a payload of that size.
size_t FrameBytes(size_t payload_bytes);
uint32_t FrameChecksum(ByteView payload);
// The records in their frames, back to back. kNotRestorable: see EncodeRecord.
Result<Bytes> EncodeFrames(std::span<const Record> records);
// And back; views of the records point into `bytes`. kCorrupt: a frame that is not whole.
Result<std::vector<Record>> DecodeFrames(ByteView bytes);
// The frame that starts at `at`. kCorrupt.
Result<Record> DecodeFrame(ByteView bytes, size_t at);
// The same of a frame that a scan found whole: its checksum is not computed again.
Result<Record> DecodeScanned(ByteView bytes, size_t at);

// Where the whole records of a journal start.
struct FrameScan {
  std::vector<uint32_t> offsets;  // in units of 8 bytes
  size_t damaged = 0;             // records that were passed over
  size_t end = 0;                 // where the next record would go
};
// `bytes` is a whole journal with its header page. A damaged record is counted and passed over by
// its length, as long as that leads to another one: what stands behind it can still be taken back.
FrameScan ScanFrames(ByteView bytes);

}  // namespace sandglass::undo
