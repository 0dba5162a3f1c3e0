// BridgeServer: what the bridge process does. It owns the undo logs and the supervisor; nobody else touches the projects while it
// lives. Requests come one at a time; the supervisor's threads serve the commands meanwhile. One thread.
//
// What makes nobody wait is done while nothing is asked for: a command gets its threads with its first call, and steps that changed
// nothing their entries in the history when it has been quiet for a moment.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "bridge/supervise/supervisor.h"
#include "session/asking_safeguards.h"
#include "session/bridge_messages.h"
#include "session/notices.h"
#include "session/step_book.h"
#include "session/watch/project_watch.h"
#include "undo/undo_log.h"

namespace sandglass::session {

class BridgeServer {
 public:
  // Recovers the projects. They are watched from when the first command runs. `tell` may be empty, and is called on any thread.
  // `questions` is the socket for those of safeguards; -1: nobody is asked.
  static Result<std::unique_ptr<BridgeServer>> Open(const std::vector<undo::UndoPaths>& projects,
                                                    undo::UndoOptions options,
                                                    const WatchOptions& watch, TellExternal tell,
                                                    int questions);
  BridgeServer(const BridgeServer&) = delete;
  BridgeServer& operator=(const BridgeServer&) = delete;
  ~BridgeServer();

  Opened opened() const;
  // A frame that goes before an answer.
  using SendBefore = std::function<void(const std::string& frame)>;
  // The frame that answers it; nullopt: it needs none. `passed` came with the request, and may be none.
  std::optional<std::string> Answer(const BridgeRequest& request, Fd passed,
                                    const SendBefore& send);
  // Until there is something to be read from `channel`. An error: a command makes calls and cannot be served. To be told, as a Failed.
  Status AwaitRequest(int channel);

 private:
  BridgeServer() = default;
  struct Project {
    std::string path;
    std::unique_ptr<ProjectWatch> watch;  // the log's observer
    std::unique_ptr<undo::UndoLog> log;
  };

  Status Do(const Supervise& ask, Fd listener);
  Status Do(const Forget& ask, Fd);
  Status Do(const Announce& ask, Fd);
  Result<Closed> Do(const CloseStep& ask, Fd);
  Result<Position> Do(const AskPosition&, Fd);
  Result<Position> Do(const EnterSteps&, Fd);
  Result<Written> Do(const WriteRequest& ask, Fd content);
  Result<Ended> Do(const End&, Fd);
  RewindAnswer Do(const RewindRequest& request, Fd);
  void Tell(const undo::RewindProgress& progress);
  // The command whose calls the calling thread serves, if it was not forgotten; else 0. Any thread.
  StepId CommandServedHere() const EXCLUDES(commands_mutex_);
  int Patience() const;
  void StartWatching();

  const SendBefore* send_ = nullptr;  // while a rewind is at work of which somebody wants to know
  SteadyClock clock_;
  Instant told_{};
  Notices notices_;
  PastClock past_clock_;
  undo::UndoOptions options_;
  Watching watching_ = Watching::kOff;
  LogActivity activity_;
  std::unique_ptr<AskingSafeguards> asking_;  // null: nobody is asked
  std::vector<Project> projects_;
  StepBook book_{notices_, past_clock_, activity_};
  std::unique_ptr<bridge::Supervisor> supervisor_;
  // Changed by the one thread, under the lock, which others need to look.
  mutable Mutex commands_mutex_;
  std::map<StepId, std::unique_ptr<bridge::SupervisedCommand>> commands_;
};

}  // namespace sandglass::session
