// The frame of a store on disk: version, lock, the project it belongs to, and the folders of steps.
//
//   version   lock   project   objects   barriers   wal/{in_progress,rewind,aborted}   steps/{id}   redo/{n}   damaged/   trash/   shadows/
//
// Everything that must happen at once is one rename here. Not thread-safe: the UndoLog's lifecycle lock guards it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/io.h"
#include "base/result.h"
#include "undo/journal_view.h"
#include "undo/place.h"
#include "undo/state_files.h"
#include "undo/types.h"

namespace sandglass::undo {

// A step on disk.
struct StepRow {
  std::string folder;  // its name within steps/ or redo/
  JournalHeader header;
  CloseRecord close{};
  bool damaged = false;  // header or end cannot be read
  uint64_t journal_bytes = 0;

  StepInfo Info() const;
  // Does it count as a step for people? In doubt it does.
  bool IsChange() const {
    return damaged || close.protection == Protection::kUnprotected || close.counts.total() > 0;
  }
  // Nothing is on record: no other step is affected if it goes. Not so if it only left everything as it was.
  bool IsEmpty() const;
};

// Names in wal/.
inline constexpr const char* kInProgress = "in_progress";  // the open step
inline constexpr const char* kRewind = "rewind";           // what a rewind under way records
inline constexpr const char* kAborted = "aborted";  // a step that was taken back and goes away
inline constexpr const char* kKeepFile =
    "keep";  // objects that a recovery leaves as a person made them
// In the folder of the open step: objects that people edited while it was open, as far as anybody told.
inline constexpr const char* kTold = "told";
// What such a folder holds only while the step is open, or while an abort of it has not succeeded.
void DropNotesOfOpenStep(int step_dir);
inline constexpr const char* kTarget = "target";  // where a rewind over several steps is going

class StoreFrame {
 public:
  // Checks version and owner, takes the lock, creates what is missing. kInvalid, kVersion, kForeign, kLocked: nothing was changed.
  static Result<std::unique_ptr<StoreFrame>> Open(const Place& place);

  int wal() const { return wal_.get(); }
  int steps() const { return steps_.get(); }
  int redo() const { return redo_.get(); }
  int store() const { return place_.store.get(); }

  // Moves a folder into trash/, from where it is deleted later. One rename.
  Status Discard(int parent_fd, const char* name);
  // The same, but EmptyTrash, which other threads call, leaves it alone until Release.
  Status Hold(int parent_fd, const char* name);
  Result<std::vector<std::string>> Held() const;
  Result<Fd> OpenHeld(const std::string& held) const;
  Status Release(const std::string& held);
  // Moves a folder into damaged/, where it stays for people to look at, and says its name there.
  Result<std::string> SetAside(int parent_fd, const char* name);
  // Deletes what is in trash/.
  Status EmptyTrash();

 private:
  explicit StoreFrame(const Place& place) : place_(place) {}
  Status MoveToTrash(int parent_fd, const char* name, std::string_view prefix);

  const Place& place_;
  Fd lock_, wal_, steps_, redo_, trash_;
  uint64_t next_trash_ = 0;
};

// Held as long as the descriptor is open. kLocked: another process has it.
Result<Fd> TakeStoreLock(const Place& place);

// Is there nothing yet, or a store of this project that this program can use? Changes nothing. kInvalid, kVersion, kForeign.
Status CheckStore(const Place& place);

// Is what was opened as `name` in `parent_fd` still what has that name? An owner drops and renames folders beside its readers.
bool IsStillNamed(int parent_fd, const std::string& name, int dir_fd);
// Rows of steps/ (or redo/), oldest first. Never fails on a damaged step: it is listed as such. One that goes away meanwhile is left out.
Result<std::vector<StepRow>> ListSteps(int folder_fd);
// Those of steps/ and of redo/, for who does not own the store: what a rewind has taken back, and was about to drop, is gone already.
// Is one of them what taking back the step with this uid left? A step with both was killed before it was dropped.
bool IsReversedBy(const std::vector<StepRow>& rows, uint64_t uid);
struct StepLists {
  std::vector<StepRow> steps, redo;
};
Result<StepLists> ListForReader(int store_fd);

// Everything that a store may hold. Nothing else in its folder is ever touched.
inline constexpr const char* kStoreNames[] = {
    "version", "lock",        "project",     "objects",     "barriers",    "wal",
    "steps",   "redo",        "trash",       "shadows",     "damaged",     "probe.a",
    "probe.b", "version.tmp", "project.tmp", "objects.tmp", "barriers.tmp"};
// Empty, or with names of a store only.
Result<bool> LooksLikeStore(int store_fd);
// The same, or other things lie beside a store whose version and project can be read: many a folder has a file `version`.
Result<bool> IsStore(int store_fd);

// The format version of a store; nullopt: the store is empty.
Result<std::optional<uint32_t>> ReadStoreVersion(int store_fd);

// The file `barriers`; none if it is missing. nullopt: what it says is damaged, or more than there can be.
Result<std::optional<std::vector<Barrier>>> ReadBarriers(int store_fd);
// What takes the place of barriers that cannot be read: a barrier that knows no paths, where the newest of them that counts may have been.
// It goes down the history with every step that is taken back across it.
std::vector<Barrier> BarriersInDoubt(const std::vector<StepRow>& steps, size_t redoable);
// More paths than this, in bytes, are the whole tree; and so are the longest barriers while all of them together have more.
inline constexpr size_t kMaxBarrierBytes = 1 << 20;
inline constexpr size_t kMaxBarriersBytes = 16 << 20;
bool IsTooLong(const std::vector<std::string>& paths);
// One for each place in the history, with each path once; the time is that of the newest.
std::vector<Barrier> MergeBarriers(std::vector<Barrier> barriers);
Status SaveBarriers(int store_fd, const std::vector<Barrier>& barriers, FileSync sync);

// History for people: steps and barriers in order.
std::vector<HistoryEntry> MergeHistory(const std::vector<StepRow>& steps,
                                       const std::vector<Barrier>& barriers);

uint64_t RandomId();

}  // namespace sandglass::undo
