// Reading a step's journal: whole, through a private mapping or as a copy, or only its two ends.
//
// A journal may be read while its writer appends: the reader sees the whole records that were there
// when it opened. The views in a record live as long as the JournalView. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "undo/journal_format.h"
#include "undo/record.h"

namespace sandglass::undo {

class JournalView {
 public:
  // kCorrupt: the header is damaged. kVersion: another format. kNotFound.
  static Result<JournalView> Open(int dir_fd, const char* name);
  // The same without a mapping, for a journal whose writer lives: it cuts the file when the step closes, and reading on in a mapping
  // would end the process.
  static Result<JournalView> Read(int dir_fd, const char* name);
  // For bytes that are in memory already (fuzzing, tests).
  static Result<JournalView> Parse(ByteView bytes);
  JournalView(JournalView&&) noexcept;
  JournalView& operator=(JournalView&&) noexcept;
  ~JournalView();

  const JournalHeader& header() const { return decoded_.header; }
  // When the writer last said that it was alive.
  int64_t heartbeat_ns() const { return decoded_.heartbeat_ns; }
  size_t size() const { return scan_.offsets.size(); }
  Result<Record> At(size_t index) const;
  // Whether the record is one of these types. Costs nothing compared with decoding it.
  template <class... Types>
  bool IsOneOf(size_t index) const {
    const uint8_t type = TypeAt(index);
    return ((type == RecordType<Types>()) || ...);
  }
  // Calls `each(record, index)` for the whole records of these types in order, with little of a large journal in memory. The others are
  // passed over without being decoded.
  template <class... Types, class Each>
  void ForEach(Each each) const {
    for (size_t i = 0; i < size(); ++i) {
      if (i % kRecordsBetweenUnloads == kRecordsBetweenUnloads - 1) Unload();
      if (!IsOneOf<Types...>(i)) continue;
      if (auto record = At(i); record.ok()) each(*record, i);
    }
    Unload();
  }
  template <class T, class Each>
  void ForEachOf(Each each) const {
    ForEach<T>([&](const Record& record, size_t index) { each(std::get<T>(record), index); });
  }
  // Forgets the last `count` records.
  void Shorten(size_t count);
  // Where the next record would go.
  size_t end() const { return scan_.end; }
  // Damaged records that were passed over. A torn last record of a killed writer is not damage.
  size_t damaged() const { return scan_.damaged; }
  // The closing record; kCorrupt: the journal has none, i.e. the step never finished or its end is
  // lost.
  Result<CloseRecord> Close() const;

 private:
  static constexpr size_t kRecordsBetweenUnloads = 1 << 14;

  JournalView() = default;
  uint8_t TypeAt(size_t index) const;
  // Gives the memory of what was read back; reading on brings it in again.
  void Unload() const;

  ByteView bytes_;
  Bytes copy_;
  void* map_ = nullptr;
  size_t map_bytes_ = 0;
  DecodedJournalHeader decoded_;
  FrameScan scan_;
};

// Of a step's folder or journal that could not be opened: is it what the store holds that is wrong? Everything else (no descriptors, no
// memory, a disk that does not answer) may be better the next time, and must not cost anything now.
bool IsDamage(const Error& error);

// The journal of the step in `folder` of `parent_fd`. nullopt: there is none, or it is damaged.
Result<std::optional<JournalView>> FindJournal(int parent_fd, const char* folder);

// Header and closing record only: what a history needs, in two reads.
struct JournalSummary {
  JournalHeader header;
  CloseRecord close;
  uint64_t bytes;  // of the whole file
};
// Of a closed one without any other record.
uint64_t EmptyJournalBytes();
Result<JournalSummary> ReadJournalSummary(int dir_fd, const char* name);

}  // namespace sandglass::undo
