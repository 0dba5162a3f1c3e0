#include "session/open_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/fd.h"
#include "session/empty_steps.h"
#include "session/former_world.h"
#include "session/request_server.h"

namespace sandglass::session {
namespace {

// As often as it takes until nobody has the store locked, or it is clear that this will not be soon.
template <class Attempt>
auto Soon(const std::string& store, Attempt attempt) {
  constexpr int kTries = 100;
  constexpr std::chrono::milliseconds kPause{20};
  for (int tried = 1;; ++tried) {
    auto result = attempt();
    if (result.ok() || result.error().code() != Code::kLocked || tried == kTries ||
        SessionListens(store))
      return result;
    std::this_thread::sleep_for(kPause);
  }
}

// Under the lock, so that they are no living session's. Whether the folder is a store is not known yet, so whatever else has such a
// name stays. kLocked.
Status RemoveLeftovers(const std::string& store) {
  const Fd folder(::open(store.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Fd lock(::openat(folder.get(), "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!lock) return Ok();  // no session was ever here
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return Error(Code::kLocked, "the undo store is in use");
  struct stat socket{};
  if (::fstatat(folder.get(), kSocketName, &socket, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISSOCK(socket.st_mode))
    ::unlinkat(folder.get(), kSocketName, 0);
  ForgetWorld(store);
  ForgetLeftSteps(folder.get());
  return Ok();
}

}  // namespace

Result<std::unique_ptr<undo::UndoLog>> OpenLogSoon(const undo::UndoPaths& paths,
                                                   const undo::UndoOptions& options) {
  TRY_ASSIGN(auto log, Soon(paths.store, [&] { return undo::UndoLog::Open(paths, options); }));
  // Nothing that could be undone is lost by it.
  if (const Status entered = EnterLeftSteps(paths.store, *log); !entered.ok())
    options.log.Warn("history", {{"why", entered.error().message()}});
  return log;
}

Status DiscardLogSoon(const undo::UndoPaths& paths) {
  TRY(EndFormerWorld(paths.store));
  // Where it stays locked, discarding fails as well, and says by whom.
  (void)Soon(paths.store, [&] { return RemoveLeftovers(paths.store); });
  return undo::UndoLog::Discard(paths);
}

}  // namespace sandglass::session
