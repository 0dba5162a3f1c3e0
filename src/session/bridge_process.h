// BridgeProcess: the session's end of the process that changes the projects and keeps their undo logs.
//
// It reads what hostile commands hand in, so it is a process of its own with as few rights as the work allows (bridge/confinement.h).
// It is forked, not executed: it needs nothing that the session does not have at that moment, and starts in less than a millisecond.
// It ends with the session. If it dies, every call here says so; commands cannot change the projects then, and the next session
// recovers. Blocks while it waits for answers. One thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "session/bridge_messages.h"
#include "undo/undo_log.h"

namespace sandglass::session {

// What `ps` shows of it.
inline constexpr char kBridgeName[] = "sg-bridge";

class BridgeProcess {
 public:
  // Returns when the projects are recovered and their logs are open. The calling process has one thread.
  static Result<std::unique_ptr<BridgeProcess>> Start(const std::vector<undo::UndoPaths>& projects,
                                                      const undo::UndoOptions& options);
  BridgeProcess(const BridgeProcess&) = delete;
  BridgeProcess& operator=(const BridgeProcess&) = delete;
  // Has it close the logs and end. What is to be supervised has ended before.
  ~BridgeProcess();

  const std::vector<undo::RecoveryReport>& recoveries() const { return recoveries_; }
  pid_t pid() const { return pid_; }
  // Hung up: it has died.
  int fd() const { return channel_.get(); }
  // Says how, once it has.
  Error Death() const;

  Status Supervise(StepId command, const Fd& listener, pid_t world);
  Status Forget(StepId command);
  Status Announce(StepId step, const std::string& label, undo::IfUnchanged if_unchanged);
  Result<std::vector<std::string>> CloseStep();
  Result<Position> AskPosition();
  RewindAnswer Rewind(const RewindRequest& request);

 private:
  BridgeProcess(pid_t pid, Fd channel) : pid_(pid), channel_(std::move(channel)) {}
  // The frame that answers it.
  Result<std::string> Ask(const BridgeRequest& request, std::span<const int> passed = {});
  Result<std::string> NextFrame();

  const pid_t pid_;
  Fd channel_;
  std::vector<undo::RecoveryReport> recoveries_;
};

}  // namespace sandglass::session
