#include "session/open_log.h"

#include <chrono>
#include <thread>

#include "session/request_server.h"

namespace sandglass::session {

Result<std::unique_ptr<undo::UndoLog>> OpenLogSoon(const undo::UndoPaths& paths,
                                                   const undo::UndoOptions& options) {
  constexpr int kTries = 100;
  constexpr std::chrono::milliseconds kPause{20};
  for (int tried = 1;; ++tried) {
    auto log = undo::UndoLog::Open(paths, options);
    if (log.ok() || log.error().code() != Code::kLocked || tried == kTries ||
        SessionListens(paths.store))
      return log;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace sandglass::session
