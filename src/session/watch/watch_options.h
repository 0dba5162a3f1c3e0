// How the projects of a session are watched, as the section `file_watcher` of a configuration says, and the policy for what is seen.
// Value types and pure functions; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "undo/types.h"

namespace sandglass::session {

// What is not judged yet. Beyond it the watcher has lost track.
struct PendingLimits {
  size_t max_paths = size_t{1} << 18;
  size_t max_bytes = size_t{64} << 20;
};

enum class Watching : uint8_t { kOff, kOn };

// What an edit from outside becomes.
enum class WatchPolicy : uint8_t {
  kBarrier,  // a barrier in the history: undo does not cross it without force
  kWarn,     // it is told and nothing else
  kLock,     // it is refused: no kernel can do that for us, see UndoPolicyFor
};
Result<WatchPolicy> ParseWatchPolicy(std::string_view name);
// What the undo log makes of it. kUnsupported: kLock, and why.
Result<undo::ExternalPolicy> UndoPolicyFor(WatchPolicy policy);

// By which means the kernel tells. What cannot be had is replaced by the other one.
enum class WatchMeans : uint8_t {
  kFolders,  // inotify, a watch for each folder
  kFilesystem,  // fanotify, one mark for the whole file system: for root, and woken by whatever happens on it
};

struct WatchOptions {
  Watching watching = Watching::kOn;
  WatchPolicy policy = WatchPolicy::kBarrier;
  // What happens within this time of the change before is told together with it, but after five times as long at the latest.
  std::chrono::milliseconds debounce{100};
  // A command that has ended by then costs nothing.
  std::chrono::milliseconds start_delay{50};
  // Lines as in a .gitignore of the root. Folders that match are not looked into either.
  std::vector<std::string> exclude_patterns = {".git/objects", ".git/logs", ".git/refs",
                                               "node_modules"};
  undo::GitignoreMode gitignore = undo::GitignoreMode::kOff;  // what git ignores is not told
  PendingLimits pending;
  WatchMeans means = WatchMeans::kFolders;
};

}  // namespace sandglass::session
