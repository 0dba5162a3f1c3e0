// The durable table of objects: how each object that we ever left behind looked when we did, and which object took whose place.
//
// A signature tells an edit by somebody else without any watcher, also between two runs of the program. A successor is noted
// when a rewind had to make an object anew (a removed directory gets a new inode): older journals know it by its old identity.
// On disk: fixed-size entries, appended; the last one for a key counts. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "base/fd.h"
#include "base/io.h"
#include "base/result.h"
#include "base/thread_annotations.h"
#include "undo/object.h"
#include "undo/objects_format.h"

namespace sandglass::undo {

class ObjectsTable {
 public:
  ObjectsTable() = default;
  // Reads `objects` of the store; a torn tail is dropped, damaged entries are passed over.
  // `sync` is what every write of the table survives.
  Status Load(int store_fd, FileSync sync);
  // The same for who does not own the store: nothing may be put into the table. An empty one if the store has none yet.
  Status LoadToRead(int store_fd);
  // Entries were passed over: what they said is missing.
  bool damaged() const;

  // The object that `recorded` is today.
  ObjectId Current(ObjectId recorded) const;
  std::optional<Signature> Find(ObjectId current) const;
  // Of a folder that a step changed itself: its HashAttributes then. nullopt: not known.
  std::optional<uint64_t> FindAttributes(ObjectId current) const;

  // The after-states of the step with this uid are in the table.
  void MarkAdopted(uint64_t step_uid);
  bool IsAdopted(uint64_t step_uid) const;
  // Buffered until Flush.
  void Put(ObjectId current, const Signature& signature);
  void PutAttributes(ObjectId current, std::optional<uint64_t> hash);
  void Succeed(ObjectId recorded, ObjectId successor);
  // kNoSpace etc.: the buffer is kept and tried again by the next Flush.
  Status Flush();

  // Worth a Compact()?
  bool Bloated() const;
  // Rewrites the file with only what `live` (identities in retained journals, as recorded) can lead to, and "adopted" of `steps` alone.
  Status Compact(const std::unordered_set<ObjectId>& live,
                 const std::unordered_set<uint64_t>& steps);

 private:
  Status ReadEntries(int file);
  Status OpenLocked() REQUIRES(mutex_);
  Status AppendLocked() REQUIRES(mutex_);

  Fd store_;
  Fd file_;  // none after a Compact(), until something is written
  FileSync sync_ = FileSync::kNone;
  mutable Mutex mutex_;
  ObjectsContent content_ GUARDED_BY(mutex_);
  std::string pending_ GUARDED_BY(mutex_);
  uint64_t file_bytes_ GUARDED_BY(mutex_) = 0;
  uint64_t compacted_bytes_ GUARDED_BY(mutex_) = 0;  // what the last Compact left; 0: none yet
};

}  // namespace sandglass::undo
