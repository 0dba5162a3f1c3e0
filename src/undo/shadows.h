// Shadows: copies of files that some process may still be writing to when a step ends.
//
// Writes through a descriptor that was handed out are native and unseen. So at each step boundary the content of every object with a
// live writer is kept (reflink or copy); what differs from it at the next boundary was written in between and belongs to that interval.
// They live in `shadows/` of the store, each with a note of what it is a copy of, so that what was written before a crash still finds
// its interval when the store is opened again. Thread-safe.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/thread_annotations.h"
#include "undo/metadata.h"
#include "undo/object.h"
#include "undo/place.h"
#include "undo/record.h"

namespace sandglass::undo {

struct Shadow {
  Fd live;        // the object itself, to compare with and to find its name
  Metadata meta;  // as it was when the shadow was taken
  BlobId slot;    // the copy's name in shadows/
  Keeping keeping;
  uint64_t checksum = 0;

  // What a step that adopts it puts on record; `blob` is the copy's name then.
  ContentRecord AsContent(ObjectId object, std::string_view path, BlobId blob) const;
};

class Shadows {
 public:
  explicit Shadows(const Place& place);
  ~Shadows();

  // What the last user of the store left. A shadow without a note, or of an object without a name, goes.
  Status Load();
  // Replaces an older shadow of the same object. kLimit: larger than a shadow may be; what its writer does from now on is unprotected.
  // After any other error an older shadow stays, and without one it is unprotected too.
  Status Take(const OpenObject& object);
  // Is it an object with a live writer? Of one without a shadow, only while the writer lives.
  bool Has(ObjectId object) const;
  // Hands the shadow over; its files stay in shadows/ until removed. nullopt: none.
  std::optional<Shadow> Claim(ObjectId object);
  // Makes the copy a file of a step. The shadow stays, for the case that this process is killed before the step says so.
  Status LinkCopy(const Shadow& shadow, int blobs, BlobId blob);
  void Remove(const Shadow& shadow);
  void PutBack(ObjectId object, Shadow shadow);
  // What is about to happen to the objects is not their writers' doing: a process that is killed before it took new shadows leaves none.
  void Disown();
  // Objects whose content or modification time differs from their shadow now.
  Result<std::vector<ObjectId>> Changed() const;
  // Does the object look as it did when its shadow was taken? Says nothing about stores through a mapping: Changed() compares bytes.
  bool IsCurrent(const OpenObject& object) const;
  std::vector<ObjectId> All() const;
  void Drop(ObjectId object);
  // Where the shadow's object has a name in the project now; "" if none.
  Result<std::string> PathOf(ObjectId object) const;
  Result<OpenObject> Reopen(ObjectId object) const;

 private:
  Result<int> Folder();
  // The shadow with its files, not yet known to anybody. On error nothing is left of it.
  Result<Shadow> Make(const OpenObject& object);
  Status Fill(const OpenObject& object, int folder, Shadow& shadow);
  // It is written to and cannot be watched.
  Status GiveUp(const OpenObject& object, const Error& why);
  Status WriteNote(const OpenObject& object, const Shadow& shadow);
  Status LoadNote(const std::string& name);
  bool IsWritten(const Fd& fd) const;

  const Place& place_;
  mutable Mutex mutex_;
  Fd folder_ GUARDED_BY(mutex_);
  std::unordered_map<ObjectId, Shadow> shadows_ GUARDED_BY(mutex_);
  std::unordered_map<ObjectId, Fd> unwatched_ GUARDED_BY(mutex_);  // written to, and no shadow
  uint32_t next_ GUARDED_BY(mutex_) = 0;
};

// Does anybody have this file open for writing, also by mmap alone? Leases tell; where they cannot, the answer is yes.
bool MayHaveWriter(const OpenObject& object);
// Takes a lease on object.fd that lasts as long as it: kReaders allows other readers, kAlone nobody. False: somebody is there.
enum class LeaseKind : uint8_t { kReaders, kAlone };
bool TakeLease(const OpenObject& object, LeaseKind kind);

// Path from the project's root of an open object; "" when it is the root, nullopt when it has no name below it (any more).
std::optional<std::string> ProjectPathOf(const Place& place, int fd);

// Fills `to` with the content of `from`: a clone if the file system can, else a copy.
struct CopyResult {
  Keeping keeping;
  uint64_t checksum;
  uint64_t copied;  // bytes; none of a clone
  uint64_t
      size;  // of the copy; of a clone it may be another than the caller saw, if somebody writes meanwhile
};
Result<CopyResult> CloneOrCopy(const Place& place, int from, int to, uint64_t size);
// Its two halves, for whom a copy has a price. No clone: the file system has none, or not of this file (NOCOW on btrfs).
std::optional<CopyResult> TryClone(const Place& place, int from, int to);
Result<CopyResult> CopyInFull(const Place& place, int from, int to, uint64_t size);

}  // namespace sandglass::undo
