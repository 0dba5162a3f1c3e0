// A step's journal: a page of header, then records, each with its length and checksum.
//
// It is appended through a shared mapping: a record costs a memcpy and no system call, and what was copied survives the death of
// the process, because the pages belong to the kernel. The length of a record is stored last, so that a reader sees whole records
// only. Space is allocated ahead, since a full disk must be an error here and not a SIGBUS later.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/thread_annotations.h"
#include "undo/record.h"
#include "undo/types.h"

namespace sandglass::undo {

inline constexpr uint32_t kFormatVersion = 1;
inline constexpr size_t kJournalHeaderBytes = 4096;
inline constexpr size_t kMaxLabelBytes = 3072;

// What is known about a step from the start.
struct JournalHeader {
  StepId id;
  StepKind kind = StepKind::kCommand;
  uint64_t order = 0;         // position in the history; ids of ambient steps are negative, this always grows
  uint64_t uid = 0;           // unique for every journal ever written
  uint64_t reverses_uid = 0;  // of a rewind: the uid of the journal that it takes back
  int64_t opened_ns = 0;
  std::array<uint8_t, 16> boot_id{};
  std::string label;
};

// Writes one journal. Append is thread-safe.
class JournalWriter {
 public:
  // kNoSpace: not even the first pages fit.
  static Result<std::unique_ptr<JournalWriter>> Create(int dir_fd, const char* name, const JournalHeader& header);
  ~JournalWriter();

  // kNoSpace: the record was not written and the journal is as before.
  Status Append(const Record& record);
  // "Still alive at": see JournalView::heartbeat_ns.
  void Beat(int64_t now_ns);
  // Cuts the unused space off. No Append after it.
  Status Finish();
  // Durability::kPower: everything appended so far is on disk when this returns.
  Status Sync();
  uint64_t size() const;

 private:
  JournalWriter() = default;
  Status Reserve(size_t bytes) REQUIRES(mutex_);
  Status AppendPayload(const Bytes& payload) REQUIRES(mutex_);

  Fd fd_;
  mutable Mutex mutex_;
  uint8_t* map_ GUARDED_BY(mutex_) = nullptr;
  size_t capacity_ GUARDED_BY(mutex_) = 0;
  size_t used_ GUARDED_BY(mutex_) = 0;
  ByteWriter scratch_ GUARDED_BY(mutex_);
#ifdef SANDGLASS_MUTANT_journal_after_operation
  std::vector<Bytes> late_ GUARDED_BY(mutex_);
#endif
};

// Reads a journal through a private mapping; the records' views live as long as it does. One thread.
class JournalView {
 public:
  // kCorrupt: the header is damaged. kVersion: another format. kNotFound.
  static Result<JournalView> Open(int dir_fd, const char* name);
  // For bytes that are in memory already (fuzzing, tests).
  static Result<JournalView> Parse(ByteView bytes);
  JournalView(JournalView&&) noexcept;
  JournalView& operator=(JournalView&&) noexcept;
  ~JournalView();

  const JournalHeader& header() const { return header_; }
  int64_t heartbeat_ns() const { return heartbeat_ns_; }
  size_t size() const { return offsets_.size(); }
  Result<Record> At(size_t index) const;
  // Where the next record would go.
  size_t end() const { return end_; }
  // Damaged records that were passed over. A torn last record of a killed writer is not damage.
  size_t damaged() const { return damaged_; }
  // The closing record; kCorrupt: the journal has none, i.e. the step never finished or its end is lost.
  Result<CloseRecord> Close() const;

 private:
  JournalView() = default;
  Status Scan();

  ByteView bytes_;
  void* map_ = nullptr;
  size_t map_bytes_ = 0;
  JournalHeader header_;
  int64_t heartbeat_ns_ = 0;
  std::vector<uint32_t> offsets_;  // in units of 8 bytes
  size_t damaged_ = 0;
  size_t end_ = 0;
};

// Cuts a dead writer's journal behind its last whole record and appends one more.
Status AppendToFinishedJournal(int dir_fd, const char* name, const Record& record);

// Header and closing record only: what a history needs, in two reads.
struct JournalSummary {
  JournalHeader header;
  CloseRecord close;
};
Result<JournalSummary> ReadJournalSummary(int dir_fd, const char* name);

// The cursor of a raw rewind lives in the header: how many records from the end were taken back already.
class CursorFile {
 public:
  static Result<CursorFile> Open(int dir_fd, const char* name);
  CursorFile(CursorFile&&) noexcept;
  ~CursorFile();
  uint64_t Get() const;
  void Set(uint64_t undone);

 private:
  CursorFile() = default;
  void* map_ = nullptr;
};

}  // namespace sandglass::undo
