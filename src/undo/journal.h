// Writing a step's journal (journal_format.h has its bytes, journal_view.h reads it).
//
// It is appended through a shared mapping: a record costs a memcpy and no system call, and what was copied survives the death of
// the process, because the pages belong to the kernel. The length of a record is stored last, so that a reader sees whole records
// only. Space is allocated ahead, since a full disk must be an error here and not a SIGBUS later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/thread_annotations.h"
#include "undo/journal_format.h"
#include "undo/record.h"

namespace sandglass::undo {

// Writes one journal. Append is thread-safe.
class JournalWriter {
 public:
  // kNoSpace: not even the first pages fit.
  static Result<std::unique_ptr<JournalWriter>> Create(int dir_fd, const char* name,
                                                       const JournalHeader& header);
  ~JournalWriter();

  // kNoSpace; kNotRestorable: no reader would take it. The record was not written and the journal is as before.
  Status Append(const Record& record);
  // "Still alive at": see JournalView::heartbeat_ns. The latest time counts, whatever a clock that was set back says now: what was
  // written before that has later stamps.
  void Beat(int64_t now_ns);
  // How much of the file is in use.
  uint64_t bytes() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return used_;
  }
  // Gives the memory of what was written back to the kernel, which has it in its cache anyway.
  void Unload();
  // Cuts the unused space off. No Append after it.
  Status Finish();
  // Durability::kPower: everything appended so far is on disk when this returns.
  Status Sync();

 private:
  JournalWriter() = default;
  Status Reserve(size_t bytes) REQUIRES(mutex_);
  Status AppendPayload(const Bytes& payload) REQUIRES(mutex_);
  void UnloadLocked() REQUIRES(mutex_);

  Fd fd_;
  mutable Mutex mutex_;
  uint8_t* map_ GUARDED_BY(mutex_) = nullptr;
  size_t capacity_ GUARDED_BY(mutex_) = 0;
  size_t used_ GUARDED_BY(mutex_) = 0;
  int64_t latest_beat_ns_ GUARDED_BY(mutex_) = 0;
  ByteWriter scratch_ GUARDED_BY(mutex_);
#ifdef SANDGLASS_MUTANT_journal_after_operation
  std::vector<Bytes> late_ GUARDED_BY(mutex_);
#endif
};

// Cuts a dead writer's journal behind its last whole record and appends more. Reads all of it: not for one record at a time.
Status AppendToFinishedJournal(int dir_fd, const char* name, std::span<const Record> records);

// The header of a journal that somebody else wrote, or still does. The cursor of a raw rewind lives there: how many records from the end
// were taken back already.
class CursorFile {
 public:
  static Result<CursorFile> Open(int dir_fd, const char* name);
  CursorFile(CursorFile&&) noexcept;
  ~CursorFile();
  uint64_t Get() const;
  void Set(uint64_t undone);
  // As JournalWriter::Beat.
  void Beat(int64_t now_ns);

 private:
  CursorFile() = default;
  void* map_ = nullptr;
};

}  // namespace sandglass::undo
