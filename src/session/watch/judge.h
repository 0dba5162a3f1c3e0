// Judge: was it the world, or somebody else? A watcher says where something happened; this looks at the place and into the undo store.
//
//   what is there now, and ...                                      ... whose change it was
//   a step or rewind under way has touched the path or object       the world's
//   it looks as the last step or rewind left it                     the world's
//   it has a signature and looks otherwise                          of a live writer the world's, else somebody else's
//   no signature, and lately a step left this very object there     the world's
//   nothing, and lately a step left nothing there                   the world's
//   nothing, and lately a step put another folder above it          the world's
//   nothing, and it was made since the last look                    nobody's: it came and went
//   found in a folder that is new here, and older than the watcher   nobody's: it came along with the folder
//   anything else                                                   somebody else's
//
// Age plays no part in it, and neither do process ids, which are used again. What somebody else does to a path while a step that
// has touched it is open cannot be told apart and counts as the step's; that it is lost by no undo is not this one's care: a rollback
// compares by itself. One thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "session/watch/own_work.h"
#include "session/watch/pending_changes.h"
#include "undo/looker.h"
#include "undo/place.h"
#include "undo/types.h"

namespace sandglass::session {

// A process of the world may have that object open for writing.
using IsLiveWriter = std::function<bool(dev_t device, ino_t inode)>;

enum class Verdict : uint8_t { kOwn, kExternal };

class Judge {
 public:
  // Both must outlive it.
  Judge(const undo::Place& place, OwnWork& work, undo::SymlinkPolicy symlinks,
        IsLiveWriter is_live_writer)
      : place_(place),
        work_(work),
        symlinks_(symlinks),
        is_live_writer_(std::move(is_live_writer)) {}

  // What is at a path.
  struct Sight {
    std::string path;  // of the topmost folder that is missing, if one is
    ExternalKinds kinds;
    FirstHeard first;
    std::optional<undo::Found> found;
  };
  std::vector<Sight> See(const PathNotes& notes) const;
  // Those of the paths that somebody else has changed, by the last look of the work, which came after the sights. Where a whole folder is
  // gone, that stands for what was in it.
  PathNotes External(const std::vector<Sight>& sights, const PathNotes& notes);

 private:
  static std::string TopmostMissing(undo::Looker& looker, std::string path);
  Verdict OfMissing(const std::string& path, const PathNotes& notes);
  Verdict OfFound(const Sight& sight, const undo::Found& found);
  bool LooksAsLeft(const std::string& path, const undo::Found& found,
                   const undo::Signature& signature) const;
  bool HasLiveWriter(const std::string& path) const;

  const undo::Place& place_;
  OwnWork& work_;
  const undo::SymlinkPolicy symlinks_;
  const IsLiveWriter is_live_writer_;
  const int64_t began_ns_ = StampingNow();
};

}  // namespace sandglass::session
