// OwnWork: what steps and rewinds have done to a project lately, read from its store beside the log that owns it.
//
// An event of the kernel is about the past, and by the time it is read the step that caused it may be over, or taken back. So work is
// remembered until every event that it can have caused has been read: that is what the count of drains is for. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "session/watch/journal_tail.h"
#include "session/watch/signatures.h"
#include "undo/place.h"
#include "undo/step_view.h"

namespace sandglass::session {

class OwnWork {
 public:
  // `place` must outlive it. What is in the store now is not of interest: its events were before.
  static Result<OwnWork> Open(const undo::Place& place);

  // What is seen of the project from now on is to be judged by the next look. That order is what makes it sound: the journal had the
  // intent of whatever was seen, and if a step was over in between, IsSettled tells.
  void Mark() { stamp_ = StampNow(); }
  // What has happened until now. `drains`: how often all events had been read before.
  Status Look(uint64_t drains);
  // Work that was over two drains before cannot have caused what is read from now on.
  void Forget(uint64_t drains);

  // A step or rewind that is under way has touched it.
  bool IsTouched(std::string_view path, undo::ObjectId object) const;
  // The same of a folder above it, which it made, removed or renamed.
  bool IsReplacedAbove(std::string_view path) const;
  // The same of one that was aborted, which left everything as it had been.
  bool WasTakenBack(std::string_view path, undo::ObjectId object) const;
  // What the last step or rewind that is over left there; kNoObject: nothing, or it put another folder above it. nullopt: none of them
  // lately had to do with the path.
  std::optional<undo::ObjectId> LeftAt(std::string_view path);
  const Signatures& signatures() const { return signatures_; }

  // A step or rewind is under way.
  bool has_open_work() const { return tails_[0].open || tails_[1].open; }
  // Nothing in the store is halfway from one state to the next, nor has been since the mark.
  bool IsSettled() const;

 private:
  struct Tail {
    const char* folder;
    std::optional<JournalTail> open;
  };
  // Is no more in wal/, and not in the history either.
  struct Ended {
    JournalTail tail;
    uint64_t drains;
  };
  struct Finished {
    Fd dir;
    uint64_t uid;
    int64_t closed_ns;
    uint64_t drains;
    bool is_step;  // not a reversal, which has no place in the history
    std::optional<undo::StepView> view;
  };
  // A folder of the shelf as it was when its journal was read: only what has changed since is read again.
  struct Known {
    uint64_t inode;
    int64_t ctime_ns;
    uint64_t uid;
  };
  struct Shelf {
    Fd dir;
    int64_t ctime_ns = 0;  // when it was listed
    std::map<std::string, Known> known;
  };
  // Moves with everything that happens in the store, except that a journal or the table grows.
  struct Stamp {
    uint64_t open_uid = 0, rewind_uid = 0;
    int64_t steps_ns = 0, redo_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };

  explicit OwnWork(const undo::Place& place) : place_(&place) {}
  void LookAt(Tail& tail, uint64_t drains);
  void LookAt(Shelf& shelf, uint64_t drains);
  // The uid of the step in that folder; nullopt: it was dropped a moment ago, or is damaged.
  std::optional<uint64_t> Meet(Shelf& shelf, const std::string& name, const undo::FileStat& stat,
                               uint64_t drains);
  Stamp StampNow() const;
  bool IsOnShelf(uint64_t uid) const;

  const undo::Place* place_;
  Fd wal_;
  Shelf steps_, redo_;
  Tail tails_[2];
  std::vector<Ended> ended_;
  std::vector<Finished> finished_;
  Signatures signatures_;
  Stamp stamp_;
};

}  // namespace sandglass::session
