// ProjectWatch: one project's part of telling people and programs what others did to it. It hears of edits from the watcher, hands them
// to the undo log, and passes on what the log makes of them; and of those that the log finds by itself when a step closes.
//
// Lives in the bridge process, as the log's observer, and so longer than the log. Thread-safe, except Begin and End.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/thread_annotations.h"
#include "session/notices.h"
#include "session/watch/external_modification.h"
#include "session/watch/watch_options.h"
#include "session/watch/watcher.h"
#include "undo/undo_log.h"

namespace sandglass::session {

class ProjectWatch final : public undo::UndoObserver, public WatchListener {
 public:
  // `notices` must outlive it. `tell` may be empty, and is called on any thread.
  ProjectWatch(undo::UndoPaths paths, WatchOptions options, Notices& notices, TellExternal tell)
      : paths_(std::move(paths)),
        options_(std::move(options)),
        notices_(notices),
        tell_(std::move(tell)) {}

  // Everything that is given must live until End().
  void Begin(undo::UndoLog& log, const undo::UndoOptions& undo, const LogActivity& activity,
             session::IsLiveWriter is_live_writer);
  // Returns when nothing is watched any more. Without a Begin nothing happens.
  void End() { watcher_.reset(); }
  bool has_begun() const { return watcher_ != nullptr; }
  WatchStatus status() const { return watcher_ ? watcher_->status() : WatchStatus(); }

  // --- Of the log.
  void OnEvicted(const std::vector<StepId>& steps) override { notices_.OnEvicted(steps); }
  void OnUnprotected(StepId step, std::string_view why) override {
    notices_.OnUnprotected(step, why);
  }
  void OnExternalModification(const undo::Barrier& barrier) override EXCLUDES(mutex_);

  // --- Of the watcher.
  bool IsLiveWriter(dev_t device, ino_t inode) override;
  void OnExternal(const PathNotes& changes) override EXCLUDES(mutex_);
  void OnLostTrack() override EXCLUDES(mutex_);
  void OnState(const WatchStatus& status) override;

 private:
  // What the watcher saw, until the log has told of it.
  enum class Source : uint8_t { kWatcher, kLog };
  Source SourceOf(const std::vector<std::string>& paths) const REQUIRES(mutex_);
  std::vector<std::string> News(const std::vector<std::string>& paths, Source source)
      REQUIRES(mutex_);
  ExternalKinds TakeKinds(const std::vector<std::string>& paths) REQUIRES(mutex_);
  void HandOver(const std::vector<std::string>& paths);

  const undo::UndoPaths paths_;
  const WatchOptions options_;
  Notices& notices_;
  const TellExternal tell_;
  undo::UndoLog* log_ = nullptr;
  session::IsLiveWriter is_live_writer_;
  Mutex mutex_;
  PathNotes telling_ GUARDED_BY(mutex_);
  // Hashes of paths that the watcher told of: the log finds the same edits when a step closes.
  std::unordered_set<uint64_t> told_ GUARDED_BY(mutex_);
  std::unique_ptr<Watcher> watcher_;
};

}  // namespace sandglass::session
