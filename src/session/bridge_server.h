// BridgeServer: what the bridge process does. It owns the undo logs and the supervisor; nobody else touches the projects while it
// lives. Requests come one at a time; the supervisor's threads serve the commands meanwhile. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "bridge/supervise/supervisor.h"
#include "session/bridge_messages.h"
#include "session/notices.h"
#include "undo/undo_log.h"

namespace sandglass::session {

class BridgeServer {
 public:
  // Recovers the projects.
  static Result<std::unique_ptr<BridgeServer>> Open(const std::vector<undo::UndoPaths>& projects,
                                                    undo::UndoOptions options);
  BridgeServer(const BridgeServer&) = delete;
  BridgeServer& operator=(const BridgeServer&) = delete;
  ~BridgeServer();

  Opened opened() const;
  // A frame that goes before an answer.
  using SendBefore = std::function<void(const std::string& frame)>;
  // The frame that answers it. `passed` came with the request, and may be none.
  std::string Answer(const BridgeRequest& request, Fd passed, const SendBefore& send);
  // Does what the last answer left for later; to be called when that has been sent.
  void Settle();

 private:
  BridgeServer() = default;
  struct Project {
    std::string path;
    std::unique_ptr<undo::UndoLog> log;
    bool has_step = false;  // that begins with its first change, or has begun
  };

  Result<Done> Do(const Supervise& ask, Fd listener);
  Result<Done> Do(const Forget& ask, Fd);
  Result<Done> Do(const Announce& ask, Fd);
  Result<Closed> Do(const CloseStep& ask, Fd);
  Result<Position> Do(const AskPosition&, Fd);
  Result<Ended> Do(const End&, Fd);
  RewindAnswer Do(const RewindRequest& request, Fd);
  void Tell(const undo::RewindProgress& progress);
  Status CloseAll();
  bool HasBegun() const;
  bool MayHaveChanged() const;
  bool IsEmptyForSure() const;
  StepId NextId() const;

  const SendBefore* send_ = nullptr;  // while a rewind is at work of which somebody wants to know
  SteadyClock clock_;
  Instant told_{};
  Notices notices_;
  std::vector<Project> projects_;
  Announce announced_;         // the last one
  bool closes_later_ = false;  // the step of the last announcement, which is empty
  std::unique_ptr<bridge::Supervisor> supervisor_;
  std::map<StepId, std::unique_ptr<bridge::SupervisedCommand>> commands_;
};

}  // namespace sandglass::session
