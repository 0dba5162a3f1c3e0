// FolderWatch: inotify over all folders of a project, one watch for each.
//
// A folder is watched before it is listed, so what is made in it meanwhile is heard of, listed, or both. A watch belongs to the folder
// and not to its path: who it is below is noted with it, so a rename moves one note however much lies below. Folders are reached
// beneath the project's root only. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "session/watch/event_records.h"
#include "session/watch/exclusions.h"
#include "session/watch/pending_changes.h"

namespace sandglass::session {

enum class Coverage : uint8_t {
  kWhole,
  kPartial,  // the kernel has no more watches for this user
};

class FolderWatch {
 public:
  // `root_fd`, `exclusions` and `pending` must outlive it. kLimit: the user has too many inotify instances. Nothing is watched yet but the root.
  static Result<FolderWatch> Open(int root_fd, const Exclusions& exclusions,
                                  PendingChanges& pending);

  // Readable: Drain() has something to read.
  int fd() const { return inotify_.get(); }
  // Adds everything that has happened to the pending changes, and watches the folders that were made.
  Status Drain();
  // Goes on with the first walk, over so many folders at most.
  enum class Walk : uint8_t { kGoesOn, kDone };
  Walk WalkOn(size_t folders);

  size_t folders() const { return folders_.size(); }
  Coverage coverage() const { return coverage_; }

 private:
  using WatchId = int;
  static constexpr WatchId kNone = -1;
  struct Folder {
    WatchId parent = kNone;
    std::string name;
  };
  enum class Reason : uint8_t {
    kFirstWalk,  // what is in it was there before
    kMade,       // what is in it may be as new as the folder
    kLostTrack,  // what is in it may be new, but that is told otherwise
  };
  struct Task {
    WatchId parent;
    std::string name;
    Reason reason;
  };

  FolderWatch(int root_fd, const Exclusions& exclusions, PendingChanges& pending, Fd inotify)
      : root_fd_(root_fd),
        exclusions_(&exclusions),
        pending_(&pending),
        inotify_(std::move(inotify)) {}

  std::optional<std::string> PathOf(WatchId id) const;
  std::optional<std::string> PathOf(WatchId parent, std::string_view name) const;
  bool IsBelow(WatchId id, WatchId top) const;
  Result<size_t> ReadOnce(Bytes& buffer);
  void Handle(const InotifyRecord& record);
  void HandleOwn(const InotifyRecord& record);
  void HandleName(const InotifyRecord& record);
  void Note(std::string path, const InotifyRecord& record);
  void StartOver();
  void FollowMoves();
  void Forget(WatchId top);
  // The folder's watch; kNone: it is not there any more, or not ours to look into.
  WatchId Watch(const Task& task);
  WatchId AddWatch(const Fd& folder);
  void ListInto(const Fd& folder, WatchId id, const std::string& path, Reason reason);

  int root_fd_;
  const Exclusions* exclusions_;
  PendingChanges* pending_;
  Fd inotify_;
  WatchId root_ = kNone;
  std::unordered_map<WatchId, Folder> folders_;
  std::vector<Task> walk_;      // the first walk, or the one after track was lost
  std::vector<Task> fresh_;     // folders that were made since
  std::vector<WatchId> moved_;  // folders that got another name since
  Coverage coverage_ = Coverage::kWhole;
};

}  // namespace sandglass::session
