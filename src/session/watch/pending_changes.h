// PendingChanges: paths at which something happened, between the thread that reads the kernel's events and the one that judges them.
//
// The reader never waits, for the kernel's queue is short; what nobody takes in time is bounded here: then all paths are forgotten, and
// only that track was lost is known. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/thread_annotations.h"
#include "session/watch/external_modification.h"
#include "session/watch/watch_options.h"

namespace sandglass::session {

// The first that was heard of a path.
enum class FirstHeard : uint8_t {
  kItWasThere,
  kItWasMade,   // if nothing is there any more, it came and went, and nothing has changed
  kItWasFound,  // the same, in a folder that is new here; it may have come along with the folder, and be as old as it likes
};

struct ChangeNote {
  ExternalKinds kinds;
  FirstHeard first = FirstHeard::kItWasThere;
};
// In the order of paths: neighbours are looked at together.
using PathNotes = std::map<std::string, ChangeNote, std::less<>>;

class PendingChanges {
 public:
  explicit PendingChanges(PendingLimits limits = {}) : limits_(limits) {}

  // --- For the reader.
  void Add(std::string path, const ChangeNote& note) EXCLUDES(mutex_);
  void LoseTrack() EXCLUDES(mutex_);
  // Every event that had happened when it began to read has been added.
  void NoteDrained() EXCLUDES(mutex_);

  // --- For the judge.
  struct Batch {
    PathNotes notes;
    Extent extent = Extent::kPaths;
    uint64_t drains = 0;  // how often everything had been read when it was taken
  };
  uint64_t drains() const EXCLUDES(mutex_);
  // Until there is something; false: stopped.
  bool Await() EXCLUDES(mutex_);
  // When nothing was added for `quiet`, or five times as long after it was called; nullopt: stopped.
  std::optional<Batch> TakeWhenQuiet(std::chrono::milliseconds quiet) EXCLUDES(mutex_);
  // To be taken again, before what was added meanwhile.
  void PutBack(PathNotes notes) EXCLUDES(mutex_);

  // Nobody waits any more, from now on.
  void Stop() EXCLUDES(mutex_);

 private:
  bool HasSomething() const REQUIRES(mutex_) {
    return !notes_.empty() || extent_ == Extent::kWholeTree;
  }
  void LoseTrackLocked() REQUIRES(mutex_);

  const PendingLimits limits_;
  mutable Mutex mutex_;
  CondVar changed_;
  PathNotes notes_ GUARDED_BY(mutex_);
  size_t bytes_ GUARDED_BY(mutex_) = 0;
  Extent extent_ GUARDED_BY(mutex_) = Extent::kPaths;
  uint64_t additions_ GUARDED_BY(mutex_) = 0;
  uint64_t drains_ GUARDED_BY(mutex_) = 0;
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace sandglass::session
