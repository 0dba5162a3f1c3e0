// FilesystemWatch: fanotify over the whole file system that a project is on, with one mark however many folders there are.
//
// Where a user may have no more inotify watches this is the only way to hear of everything; it takes CAP_SYS_ADMIN, wakes up for
// whatever happens elsewhere on the file system, and tells a folder by its handle, so by where it is when the event is read, not when
// it happened. Hence the second choice. One thread.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "session/watch/event_records.h"
#include "session/watch/exclusions.h"
#include "session/watch/pending_changes.h"

namespace sandglass::session {

class FilesystemWatch {
 public:
  // `project` is the real path of `root_fd`. kDenied: it takes a capability. kUnsupported: not on this file system, or this kernel.
  static Result<FilesystemWatch> Open(int root_fd, std::string project,
                                      const Exclusions& exclusions, PendingChanges& pending);
  int fd() const { return fanotify_.get(); }
  // As of FolderWatch.
  Status Drain();

 private:
  FilesystemWatch(int root_fd, std::string project, const Exclusions& exclusions,
                  PendingChanges& pending, Fd fanotify)
      : root_fd_(root_fd),
        project_(std::move(project)),
        exclusions_(&exclusions),
        pending_(&pending),
        fanotify_(std::move(fanotify)) {}
  void Handle(const FanotifyRecord& record);
  // Relative to the project; nullopt: it is not in it, or gone.
  std::optional<std::string> FolderOf(const FanotifyRecord& record) const;

  int root_fd_;
  std::string project_;
  const Exclusions* exclusions_;
  PendingChanges* pending_;
  Fd fanotify_;
};

}  // namespace sandglass::session
