// Watcher: tells of every change to a project that its session's world did not make, soon after it was made.
//
// Two threads of its own: one reads what the kernel tells, for its queue is short, and one judges and tells, which may have to wait for
// a rollback. Neither wakes up while nothing happens. Starting returns at once: the folders are walked in the background, and until that
// is done what happens in folders not reached yet is missed; so it is after any failure. Nothing depends on it: what undo would
// overwrite it finds by comparing, with a watcher or without.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/result.h"
#include "base/thread_annotations.h"
#include "session/watch/folder_watch.h"
#include "session/watch/judge.h"
#include "session/watch/log_activity.h"
#include "session/watch/pending_changes.h"
#include "session/watch/watch_options.h"
#include "undo/undo_log.h"

namespace sandglass::session {

enum class WatchState : uint8_t {
  kWaiting,  // for the start delay to pass
  kWalking,  // some folders are watched already
  kReady,    // all folders are
  kPartial,  // there are more than the kernel lets this user watch
  kFailed,
};

struct WatchStatus {
  WatchState state = WatchState::kWaiting;
  size_t folders = 0;  // watched
  std::string why;     // kPartial, kFailed
};

// Called on the watcher's threads, with nothing held; may block. Thread-safe.
class WatchListener {
 public:
  virtual ~WatchListener() = default;
  virtual bool IsLiveWriter(dev_t device, ino_t inode) = 0;
  virtual void OnExternal(const PathNotes& changes) = 0;
  // Events were lost: anything may have changed.
  virtual void OnLostTrack() = 0;
  // Ready, or not watched in full from now on.
  virtual void OnState(const WatchStatus&) {}
};

class Watcher {
 public:
  // `activity` and `listener` must outlive it.
  Watcher(undo::UndoPaths paths, WatchOptions options, const undo::UndoOptions& undo,
          const LogActivity& activity, WatchListener& listener);
  // Ends both threads; returns when they have.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  WatchStatus status() const EXCLUDES(mutex_);

 private:
  void Read();
  Status ReadAll();
  Status ReadByAnyMeans(const undo::Place& place, const Exclusions& exclusions);
  Status ReadFolders(FolderWatch& watch);
  // To its end; nullopt: this means cannot be had.
  std::optional<Status> ReadFilesystem(const undo::Place& place, const Exclusions& exclusions);
  enum class Wake : uint8_t { kNothing, kEvents, kStop };
  Result<Wake> AwaitEvents(int events, int timeout_ms) const;
  bool AwaitStop(std::chrono::milliseconds time) const;
  void SetState(WatchStatus status) EXCLUDES(mutex_);
  void NoteWalk(const FolderWatch& watch, FolderWatch::Walk walk);
  void NotePartial(const FolderWatch& watch);

  void JudgeAll(const undo::Place& place, OwnWork& work);
  void JudgeBatch(OwnWork& work, Judge& judge, PendingChanges::Batch batch);

  const undo::UndoPaths paths_;
  const WatchOptions options_;
  const undo::UndoOptions undo_;
  const LogActivity& activity_;
  WatchListener& listener_;
  const Fd stop_;  // an eventfd
  PendingChanges pending_;
  std::atomic<bool> tells_late_{false};  // paths are those of the moment in which an event is read
  mutable Mutex mutex_;
  WatchStatus status_ GUARDED_BY(mutex_);
  std::thread reader_;  // starts the one that judges
};

}  // namespace sandglass::session
